"""Arrays in one file of the safetensors layout, read a part at a time so that memory never holds the whole of it.

The layout: 8 bytes that give the header's length (little-endian), a JSON header of each array's type, shape and place,
then the arrays. The package safetensors reads these files too; the query side does without it.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinodex.index.errors import BadCheckpoint

TYPES = {"F64": "<f8", "U64": "<u8", "F32": "<f4", "U32": "<u4", "F16": "<f2", "U16": "<u2", "U8": "|u1"}
CODES = {np.dtype(kind): code for code, kind in TYPES.items()}
LONGEST_HEADER = 100_000_000
PART_NUMBERS = 1 << 18
"""Numbers that are read at once: a mebibyte of float32, which stays in a core's own cache until it is used."""
Place = tuple[np.dtype[Any], tuple[int, ...], int]
"""Type, shape and place in the file."""
HALF_TO_SINGLE = np.float32(2.0**112)


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]], floats: str = "") -> None:
    """Write `arrays`, those of float32 as the code `floats` ("F16"), wide types first so that all are aligned."""
    codes = {
        name: floats if floats and each.dtype == np.float32 else CODES[each.dtype] for name, each in arrays.items()
    }
    order = sorted(arrays, key=lambda name: -np.dtype(TYPES[codes[name]]).itemsize)
    header, place = {}, 0
    for name in order:
        end = place + arrays[name].size * np.dtype(TYPES[codes[name]]).itemsize
        header[name] = {"dtype": codes[name], "shape": list(arrays[name].shape), "data_offsets": [place, end]}
        place = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            file.write(np.ascontiguousarray(arrays[name], TYPES[codes[name]]).data)


class ArrayFile:
    """The arrays of one file, read whole, by rows or in parts; several threads may read, each by its own `reader`."""

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

    def names(self) -> list[str]:
        """List the arrays of the file."""
        return list(self._places)

    def map(self, name: str) -> NDArray[Any]:
        """Map an array into memory, for a few of its numbers to be read."""
        kind, shape, start = _found(self._places, name, self.path)
        if not math.prod(shape):
            return np.empty(shape, kind)
        return np.memmap(self.path, kind, "r", start, shape)

    def reader(self) -> ArrayReader:
        """Open the file for one thread's reading."""
        return ArrayReader(self.path.open("rb", buffering=0), self._places)


class ArrayReader:
    """An open file of arrays, whose numbers come as float32, in buffers that the next part uses again."""

    def __init__(self, file: io.FileIO, places: Mapping[str, Place]) -> None:
        self._file = file
        self._places = places
        self._raw = np.empty(0, np.uint8)
        self._numbers = np.empty(0, np.float32)

    def __enter__(self) -> ArrayReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def has(self, name: str) -> bool:
        """Return True if there is an array of that name."""
        return name in self._places

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of an array; raises BadCheckpoint if there is none of that name."""
        return self._place(name)[1]

    def whole(self, name: str) -> NDArray[np.float32]:
        """Read an array whole."""
        kind, shape, start = self._place(name)
        numbers: NDArray[np.float32] = self._floats(kind, start, math.prod(shape)).reshape(shape).copy()
        return numbers

    def rows(self, name: str, numbers: NDArray[np.integer]) -> NDArray[np.float32]:
        """Read rows of a matrix by their numbers [...], as float32 [..., columns]."""
        kind, (count, columns), start = self._place(name)
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < count:
            raise BadCheckpoint(f"got row {numbers.max()} of {name}, which has {count}; its tokenizer is another's")
        needed, where = np.unique(numbers, return_inverse=True)
        found = np.empty((len(needed), columns), np.float32)
        for row, number in zip(found, needed.tolist(), strict=True):
            row[:] = self._floats(kind, start + number * columns * kind.itemsize, columns)
        in_place: NDArray[np.float32] = found[where.reshape(numbers.shape)]
        return in_place

    def parts(self, name: str) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Read a matrix some rows at a time: the number of the first, and the rows, which the next part overwrites."""
        kind, (count, columns), start = self._place(name)
        step = max(1, PART_NUMBERS // columns)
        for first in range(0, count, step):
            rows = min(step, count - first)
            yield first, self._floats(kind, start + first * columns * kind.itemsize, rows * columns).reshape(rows, -1)

    def _place(self, name: str) -> Place:
        return _found(self._places, name, self._file.name)

    def _floats(self, kind: np.dtype[Any], start: int, count: int) -> NDArray[np.float32]:
        if self._numbers.size < count:
            self._raw, self._numbers = np.empty(count * 4, np.uint8), np.empty(count, np.float32)
        raw = self._raw[: count * kind.itemsize]
        self._file.seek(start)
        if self._file.readinto(raw.data) != len(raw):
            raise BadCheckpoint(f"{self._file.name} is cut short; make the text tower again")
        if kind == np.float16:
            return _single(raw.view("<i2"), self._numbers[:count])
        numbers = self._numbers[:count]
        numbers[:] = raw.view(kind)
        return numbers


def _found(places: Mapping[str, Place], name: str, path: object) -> Place:
    if name not in places:
        raise BadCheckpoint(f"{path} holds no array {name}; make the text tower again")
    return places[name]


def _place(entry: Mapping[str, Any], data_start: int) -> Place:
    return np.dtype(TYPES[entry["dtype"]]), tuple(map(int, entry["shape"])), data_start + int(entry["data_offsets"][0])


def _single(half: NDArray[np.int16], numbers: NDArray[np.float32]) -> NDArray[np.float32]:
    """Make float32 of finite float16, given as their bits, four times as quick as numpy's own conversion.

    The bits of a half-precision number, shifted to the places of a single-precision one, are that number times 2^-112.
    """
    bits = numbers.view(np.int32)
    np.left_shift(half, 13, out=bits, dtype=np.int32)
    bits &= np.int32(-0x70002000)  # 0x8FFFE000: three copies of the sign above the exponent go
    numbers *= HALF_TO_SINGLE
    return numbers
