"""Files of arrays: the layout of safetensors, half precision, rows and parts, and damage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from kinodex.index.errors import BadCheckpoint
from kinodex.index.spaces.towers import PART_NUMBERS, ArrayFile, write_arrays

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


def test_the_package_safetensors_reads_the_same_arrays(path):
    found = load_file(path)
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[name], array)
        np.testing.assert_array_equal(ArrayFile(path).map(name), array)


def test_a_matrix_comes_in_parts_and_by_rows(path):
    assert ARRAYS["matrix"].size > PART_NUMBERS
    with ArrayFile(path).reader() as reader:
        parts = [(first, part.copy()) for first, part in reader.parts("matrix")]
        rows = reader.rows("matrix", np.array([[3, 699], [3, 0]]))
        small = reader.whole("row")
        with pytest.raises(BadCheckpoint, match="got row 700 of matrix, which has 700"):
            reader.rows("matrix", np.array([700]))
    assert [first for first, _ in parts] == [0, PART_NUMBERS // 600]
    np.testing.assert_array_equal(np.concatenate([part for _, part in parts]), ARRAYS["matrix"])
    np.testing.assert_array_equal(rows, ARRAYS["matrix"][[[3, 699], [3, 0]]])
    np.testing.assert_array_equal(small, ARRAYS["row"])


def test_every_finite_half_is_read_exactly(tmp_path):
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves)]
    write_arrays(tmp_path / "halves", {"all": halves.astype(np.float32)}, "F16")
    with ArrayFile(tmp_path / "halves").reader() as reader:
        np.testing.assert_array_equal(reader.whole("all"), halves.astype(np.float32))


def test_a_file_cut_short_or_of_another_kind_is_refused(path):
    whole = path.read_bytes()
    unknown_type = (20).to_bytes(8, "little") + b'{"a": {"dtype":"X"}}'
    for content in (b"", whole[:5], whole[:40], whole[:-1], b"x" * 100, unknown_type, b"\x02" + b"\0" * 7):
        path.write_bytes(content)
        with pytest.raises(BadCheckpoint, match="make the text tower again"):
            ArrayFile(path)


def test_an_array_that_is_missing_has_a_clear_error(path):
    with ArrayFile(path).reader() as reader:
        assert not reader.has("other")
        with pytest.raises(BadCheckpoint, match="holds no array other"):
            reader.whole("other")
