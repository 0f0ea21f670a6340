"""A library on disk: what is written comes back, and half of a video never does."""

from __future__ import annotations

import pickle
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context

import lancedb
import pytest

from kinodex.index.errors import LibraryError, NotALibrary, SettingsMismatch, SpaceMismatch, StorageError
from kinodex.index.library import Library
from kinodex.index.store.schema import table_schemas
from kinodex.index.sweep import audit
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, run_together, write


def _write_without_end(uri: str) -> None:
    library = Library.open(uri)
    for number in range(1000):
        write(library, made(f"video{number:04d}", 40, seed=number))


@pytest.mark.slow
def test_a_killed_writer_leaves_only_whole_videos(library):
    writer = get_context("spawn").Process(target=_write_without_end, args=(library.uri,))
    writer.start()
    while len(library.videos()) < 3:
        assert writer.is_alive()
    writer.kill()
    writer.join()
    rows = library.videos()
    assert len(rows) >= 3
    for row in rows:
        assert len(library.vectors(row.video_id).frame_no) == row.frames == 40
        assert library.frames(row.video_id, [39])[0].jpeg == f"jpeg {row.video_id} 39".encode()


def test_a_library_can_be_sent_to_another_process(library):
    write(library, made("aaaa", 3, seed=1))
    assert pickle.loads(pickle.dumps(library)).has_video("aaaa")


def _append(uri: str, worker: int) -> None:
    library = Library.open(uri)
    for number in range(4):
        write(library, made(f"w{worker}v{number}", 20, seed=number))


@pytest.mark.slow
def test_workers_append_at_once(library):
    context = get_context("spawn")
    run_together([context.Process(target=_append, args=(library.uri, worker)) for worker in range(3)])
    assert len(library.videos()) == 12
    assert all(len(library.vectors(row.video_id).frame_no) == 20 for row in library.videos())


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


def test_places(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    library = Library.create("films", SETTINGS, fingerprint())
    assert library.uri == str(tmp_path / "films")
    assert Library.open(f"file://{tmp_path}/films").uri == library.uri
    with pytest.raises(StorageError, match="weird"):
        Library.open("weird://somewhere/films")


def test_another_kind_of_uri(tmp_path):
    """Anything with a scheme goes to Lance as it is; this one takes its way to object stores, on local files."""
    uri = f"file-object-store://{tmp_path}/library"
    assert not Library.exists(uri)
    library = Library.open_or_create(uri, SETTINGS, fingerprint())
    write(library, made("aaaa", 5, seed=1))
    assert library.uri == uri
    assert [row.video_id for row in Library.open(uri).videos()] == ["aaaa"]
    assert Library.open(f"{tmp_path}/library").has_video("aaaa")


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
