"""A library on disk: what is written comes back, and half of a video never does."""

from __future__ import annotations

import re
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from kinodex.index.errors import LibraryError, NotALibrary, SettingsMismatch, SpaceMismatch, StorageError, UnknownVideo
from kinodex.index.library import Library
from kinodex.index.rows import NoteRow
from kinodex.index.sweep import audit
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, write


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


def test_not_a_library(library, tmp_path, monkeypatch):
    with pytest.raises(LibraryError, match="a library already"):
        Library.create(library.uri, SETTINGS, fingerprint())
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
    monkeypatch.chdir(tmp_path)
    made_here = Library.create("empty", SETTINGS, fingerprint())
    assert made_here.uri == str(empty) == Library.open(f"file://{empty}").uri
    with pytest.raises(StorageError, match="weird"):
        Library.open("weird://somewhere/films")


def test_a_creation_that_ended_at_its_last_table_is_no_library_and_goes_on(tmp_path):
    """The folder of `videos` is there, and nothing was committed to it."""
    place = tmp_path / "library"
    Library.create(str(place), SETTINGS, fingerprint())
    shutil.rmtree(place / "videos.lance" / "_versions")
    assert not Library.exists(str(place))
    assert Library.open_or_create(str(place), SETTINGS, fingerprint()).videos() == []


@pytest.mark.slow
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


# Readers see complete videos, each frame once, and nothing of others.


def test_leftovers_are_invisible_and_discarded(library):
    kept, broken = (
        made("aaaa", 10, seed=1, lines=((0.0, 2.0, "kite"),)),
        made("bbbb", 50, 2, lines=((0.0, 2.0, "kite"),)),
    )
    write(library, kept)
    write(library, broken, complete=False)
    assert not library.has_video("bbbb")
    assert [row.video_id for row in library.videos()] == ["aaaa"]
    query = broken.vectors[0].astype(np.float32)
    assert {hit.video_id for hit in library.search.frames(query, k=5)} == {"aaaa"}
    assert len(library.search.frames(query, k=10)) == 10
    assert {hit.video_id for hit in library.search.lines("speech", "kite")} == {"aaaa"}
    for read in (library.vectors, library.segments, library.speech):
        with pytest.raises(UnknownVideo):
            read("bbbb")
    library.writer.discard("bbbb")
    write(library, broken)
    assert len(library.vectors("bbbb").frame_no) == 50
    assert library.search.frames(query, k=1)[0].video_id == "bbbb"


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["", "file-object-store://"])
def test_a_library_that_was_made_again_with_as_many_commits_is_another(tmp_path, scheme):
    place = tmp_path / "library"
    with_clips = Library.create(str(place), SETTINGS, fingerprint())
    write(with_clips, made("aaaa", 3, seed=1))
    with_clips.notes.add([NoteRow("aaaa", "m", 0.0, 1.0, "a kite", None, 2)])
    reader = Library.open(f"{scheme}{place}")
    assert [row.video_id for row in reader.videos()] == ["aaaa"]
    assert len(reader.vectors("aaaa").frame_no) == 3 and reader.tables.has("notes")
    shutil.rmtree(place)
    write(Library.create(str(place), SETTINGS, fingerprint()), made("bbbb", 5, seed=2))
    assert [row.video_id for row in reader.videos()] == ["bbbb"]
    assert not reader.has_video("aaaa")
    assert len(reader.vectors("bbbb").frame_no) == 5 and not reader.tables.has("notes")
    shutil.rmtree(place)
    write(Library.create(str(place), SETTINGS | {"fps": 2.0}, fingerprint()), made("cccc", 5, seed=3))
    for _ in range(2):
        with pytest.raises(LibraryError, match="made again with another model or settings; open it again"):
            reader.videos()
