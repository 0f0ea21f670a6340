"""Places that hold no library, another one, a newer one or a damaged one: each gives one clear line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import lancedb
import numpy as np
import pyarrow as pa
import pytest

from index.errors import (
    NewerLibrary,
    NotALibrary,
    OlderLibrary,
    StorageError,
    StorageFull,
)
from index.library import Library
from index.store.schema import FORMAT_KEY, table_schemas
from tests.support.random_library import SETTINGS, fingerprint, made, write


def test_somebody_elses_database(tmp_path):
    lancedb.connect(tmp_path / "theirs").create_table("videos", pa.table({"id": [1]}))
    with pytest.raises(NotALibrary, match="did not make"):
        Library.open(str(tmp_path / "theirs"))
    lancedb.connect(tmp_path / "wine").create_table("bottles", pa.table({"id": [1]}))
    with pytest.raises(NotALibrary, match="bottles"):
        Library.create(str(tmp_path / "wine"), SETTINGS, fingerprint())


def test_other_formats_are_refused(tmp_path):
    schema = table_schemas(SETTINGS, fingerprint())["videos"]
    for name, version in (("newer", b"7"), ("older", b"1")):
        marked = schema.with_metadata(schema.metadata | {FORMAT_KEY: version})
        lancedb.connect(tmp_path / name).create_table("videos", schema=marked)
    with pytest.raises(NewerLibrary, match="has format 7, and this kinodex reads 2; update"):
        Library.open(str(tmp_path / "newer"))
    with pytest.raises(OlderLibrary, match="has format 1, and this kinodex reads 2; ingest its videos into a new"):
        Library.open(str(tmp_path / "older"))


def _cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


@pytest.mark.parametrize("harm", [_cut, Path.unlink])
@pytest.mark.parametrize("what", ["data/*.lance", "_versions/*.manifest"])
def test_what_is_cut_off_or_gone_is_said_with_a_way_out(library, harm, what):
    write(library, made("aaaa", 3, seed=1))
    for file in Path(library.uri, "frames.lance").glob(what):
        harm(file)
    with pytest.raises(StorageError, match=r"missing or cut off \(.*restore it from a copy"):
        Library.open(library.uri).frames("aaaa", [1])


def test_a_damaged_library_says_so(library):
    write(library, made("aaaa", 20, seed=1))
    (data,) = (Path(library.uri) / "frames.lance" / "data").iterdir()
    data.write_bytes(data.read_bytes()[:100])
    shutil.rmtree(Path(library.uri) / "transcript.lance")
    damaged = Library.open(library.uri)
    for read in (lambda: damaged.frames("aaaa", [3]), lambda: damaged.transcript("aaaa")):
        with pytest.raises(StorageError, match=f"cannot use {library.uri}: ") as error:
            read()
        assert ".rs:" not in str(error.value)
    assert len(damaged.vectors("aaaa").frame_no) == 20


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a tmpfs")
def test_a_full_disk_leaves_a_readable_library(small_disk: Path):
    library = Library.create(str(small_disk / "library"), SETTINGS, fingerprint())
    first = made("aaaa", 10, seed=1)
    write(library, first)
    big = [replace(row, jpeg=os.urandom(400_000)) for row in made("bbbb", 20, seed=2).frame_rows()]
    with pytest.raises(StorageFull, match=r"no room is left for .*disk/library"):
        library.writer.add_frames({"bbbb": big})
    assert [row.video_id for row in Library.open(library.uri).videos()] == ["aaaa"]
    np.testing.assert_array_equal(library.vectors("aaaa").vectors, first.vectors)
