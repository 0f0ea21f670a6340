"""Places that hold no library, another one, a newer one or a damaged one: each gives one clear line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import lancedb
import numpy as np
import pyarrow as pa
import pytest

from index.errors import (
    LibraryError,
    NewerLibrary,
    NotALibrary,
    OlderLibrary,
    SettingsMismatch,
    SpaceMismatch,
    StorageError,
    StorageFull,
)
from index.library import Library
from index.maintenance.sweep import audit
from index.store.schema import FORMAT_KEY, table_schemas
from tests.support.random_library import SETTINGS, fingerprint, made, write


@pytest.fixture
def library(tmp_path) -> Library:
    return Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())


def test_open_or_create_refuses_other_settings_and_spaces(tmp_path):
    uri = str(tmp_path / "library")
    Library.open_or_create(uri, SETTINGS, fingerprint())
    moved = fingerprint(name="local-dir:/elsewhere/tiny")
    assert Library.open_or_create(uri, SETTINGS, moved).space_name == "local-dir:/models/tiny"
    with pytest.raises(SettingsMismatch, match=r"got fps=2.0, but .* was made with fps=1.0"):
        Library.open_or_create(uri, SETTINGS | {"fps": 2.0}, fingerprint())
    other = fingerprint(weights="b" * 64)
    with pytest.raises(SpaceMismatch) as refused:
        Library.open_or_create(uri, SETTINGS, other)
    assert fingerprint().digest in str(refused.value)
    assert other.digest in str(refused.value)


def test_one_place_holds_one_library(library):
    with pytest.raises(LibraryError, match="a library already"):
        Library.create(library.uri, SETTINGS, fingerprint())


def test_not_a_library(tmp_path):
    file, folder, empty = tmp_path / "file", tmp_path / "folder", tmp_path / "empty"
    file.write_text("hello")
    folder.mkdir()
    empty.mkdir()
    (folder / "holiday.mp4").write_bytes(b"")
    for place in (file, folder, empty, tmp_path / "nothing"):
        assert not Library.exists(str(place))
        with pytest.raises(NotALibrary, match=str(place)):
            Library.open(str(place))
    for place in (file, folder):
        with pytest.raises(NotALibrary, match="new or empty"):
            Library.create(str(place), SETTINGS, fingerprint())
    assert sorted(path.name for path in folder.iterdir()) == ["holiday.mp4"]
    assert not (tmp_path / "nothing").exists()
    Library.create(str(empty), SETTINGS, fingerprint())


def test_somebody_elses_database(tmp_path):
    lancedb.connect(tmp_path / "theirs").create_table("videos", pa.table({"id": [1]}))
    with pytest.raises(NotALibrary, match="did not make"):
        Library.open(str(tmp_path / "theirs"))
    lancedb.connect(tmp_path / "wine").create_table("bottles", pa.table({"id": [1]}))
    with pytest.raises(NotALibrary, match="bottles"):
        Library.create(str(tmp_path / "wine"), SETTINGS, fingerprint())


def test_an_interrupted_creation_is_finished(tmp_path):
    schemas = table_schemas(SETTINGS, fingerprint())
    database = lancedb.connect(tmp_path / "library")
    for name in list(schemas)[:4]:
        database.create_table(name, schema=schemas[name])
    library = Library.open_or_create(str(tmp_path / "library"), SETTINGS, fingerprint())
    write(library, made("aaaa", 3, seed=1))
    assert library.has_video("aaaa")


def test_several_that_make_one_library_at_once(tmp_path):
    def make_and_write(number: int) -> bool:
        start.wait()
        try:
            made_here = Library.open_or_create(uri, SETTINGS, fingerprint())
        except LibraryError as error:
            return not re.search("is at work already|run again|a library already", str(error))
        write(made_here, made(f"{number:04d}", 3, seed=number))
        wrote.append(number)
        return False

    for turn in range(4):
        uri, start = str(tmp_path / f"library {turn}"), threading.Barrier(3)
        wrote: list[int] = []
        with ThreadPoolExecutor(3) as pool:
            assert not any(pool.map(make_and_write, range(3)))
        library = Library.open(uri)
        assert sorted(row.video_id for row in library.videos()) == [f"{number:04d}" for number in sorted(wrote)] != []
        assert audit(library).problems == ()


def test_other_formats_are_refused(tmp_path):
    schema = table_schemas(SETTINGS, fingerprint())["videos"]
    for name, version in (("newer", b"7"), ("older", b"1")):
        marked = schema.with_metadata(schema.metadata | {FORMAT_KEY: version})
        lancedb.connect(tmp_path / name).create_table("videos", schema=marked)
    with pytest.raises(NewerLibrary, match="has format 7, and this kinodex reads 2; update"):
        Library.open(str(tmp_path / "newer"))
    with pytest.raises(OlderLibrary, match="has format 1, and this kinodex reads 2; ingest its videos into a new"):
        Library.open(str(tmp_path / "older"))


def test_places(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    library = Library.create("films", SETTINGS, fingerprint())
    assert library.uri == str(tmp_path / "films")
    assert Library.open(f"file://{tmp_path}/films").uri == library.uri
    with pytest.raises(StorageError, match="weird"):
        Library.open("weird://somewhere/films")


def test_another_kind_of_uri(tmp_path):
    """Anything with a scheme goes to LanceDB as it is; this one takes its way to object stores, on local files."""
    uri = f"file-object-store://{tmp_path}/library"
    assert not Library.exists(uri)
    library = Library.open_or_create(uri, SETTINGS, fingerprint())
    write(library, made("aaaa", 5, seed=1))
    assert library.uri == uri
    assert [row.video_id for row in Library.open(uri).videos()] == ["aaaa"]
    assert Library.open(f"{tmp_path}/library").has_video("aaaa")


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
