"""Arrays in one file of the safetensors layout, mapped into memory: only pages that are looked at are read."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinodex.index.errors import BadCheckpoint

TYPES = {"F64": "<f8", "U64": "<u8", "F32": "<f4", "U32": "<u4", "F16": "<f2", "U16": "<u2", "U8": "|u1", "I8": "|i1"}
CODES = {np.dtype(kind): code for code, kind in TYPES.items()}
LONGEST_HEADER = 100_000_000
Place = tuple[np.dtype[Any], tuple[int, ...], int]
"""Type, shape and place in the file."""


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays to a file, wide types first so that all are aligned."""
    order = sorted(arrays, key=lambda name: -arrays[name].itemsize)
    header, place = {}, 0
    for name in order:
        end = place + arrays[name].nbytes
        header[name] = {
            "dtype": CODES[arrays[name].dtype],
            "shape": list(arrays[name].shape),
            "data_offsets": [place, end],
        }
        place = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            file.write(np.ascontiguousarray(arrays[name]).data)


class ArrayFile:
    """The arrays of one file."""

    def __init__(self, path: Path) -> None:
        """Read the header; raises BadCheckpoint if the file is not of this layout or is cut short."""
        self.path = path
        try:
            with path.open("rb") as file:
                length = int.from_bytes(file.read(8), "little")
                header: dict[str, Any] = json.loads(file.read(length) if length <= LONGEST_HEADER else b"")
            header.pop("__metadata__", None)
            self._places = {name: _place(each, length + 8) for name, each in header.items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise BadCheckpoint(f"cannot read {path}: {error}; make the text tower again") from error
        ends = [start + math.prod(shape) * kind.itemsize for kind, shape, start in self._places.values()]
        size = path.stat().st_size
        if size != max(ends, default=length + 8):
            what = f"{path} has {size} bytes, and its header speaks of {max(ends, default=length + 8)}"
            raise BadCheckpoint(f"{what}; make the text tower again")

    def place(self, name: str) -> int:
        """Return the place in the file at which an array begins."""
        return self._found(name)[2]

    def map(self, name: str) -> NDArray[Any]:
        """Map an array into memory; raises BadCheckpoint if there is none of that name."""
        kind, shape, start = self._found(name)
        if not math.prod(shape):
            return np.empty(shape, kind)
        return np.asarray(np.memmap(self.path, kind, "r", start, shape))  # a plain view: memmap's own is slow to index

    def _found(self, name: str) -> Place:
        if name not in self._places:
            raise BadCheckpoint(f"{self.path} holds no array {name}; make the text tower again")
        return self._places[name]


def _place(entry: Mapping[str, Any], data_start: int) -> Place:
    return np.dtype(TYPES[entry["dtype"]]), tuple(map(int, entry["shape"])), data_start + int(entry["data_offsets"][0])
