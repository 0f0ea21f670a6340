"""Files of arrays: the layout of safetensors, and damage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kinodex.index.errors import BadCheckpoint
from kinodex.index.spaces.arrays import ArrayFile, write_arrays

NUMBERS = np.random.default_rng(0)
ARRAYS: dict[str, Any] = {
    "odd": np.frombuffer(b"abc", np.uint8),
    "matrix": NUMBERS.standard_normal((700, 600)).astype(np.float32),
    "row": NUMBERS.standard_normal(5).astype(np.float32),
    "hashes": NUMBERS.integers(0, 1 << 63, 4).astype(np.uint64),
    "none": np.empty(0, np.uint32),
}


@pytest.fixture
def path(tmp_path) -> Path:
    file: Path = tmp_path / "arrays.safetensors"
    write_arrays(file, ARRAYS)
    return file


def test_a_file_cut_short_or_of_another_kind_is_refused(path):
    with pytest.raises(BadCheckpoint, match="holds no array other"):
        ArrayFile(path).map("other")
    whole = path.read_bytes()
    unknown_type = (20).to_bytes(8, "little") + b'{"a": {"dtype":"X"}}'
    for content in (b"", whole[:5], whole[:40], whole[:-1], b"x" * 100, unknown_type, b"\x02" + b"\0" * 7):
        path.write_bytes(content)
        with pytest.raises(BadCheckpoint, match="make the text tower again"):
            ArrayFile(path)


def test_arrays_are_read_as_they_were_written_by_others_too(path):
    from safetensors.numpy import load_file

    file, theirs = ArrayFile(path), load_file(path)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(file.map(name), array)
        np.testing.assert_array_equal(theirs[name], array)
    start = file.place("row")
    assert path.read_bytes()[start : start + 20] == ARRAYS["row"].tobytes()
