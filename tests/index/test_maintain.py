"""Maintenance deletes what no run explains, and leaves what a run at work may be writing."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kinodex.index.errors import LibraryBusy, LibraryError
from kinodex.index.lease_holders import INGEST, MAINTENANCE
from kinodex.index.library import Library
from kinodex.index.maintain import health, maintain
from kinodex.index.purge import holds_deleted, purge_table
from kinodex.index.remove import remove_added, remove_videos
from kinodex.index.rows import FailureRow, NoteRow, SourceRow
from kinodex.index.store.indexes import Thresholds, refresh
from kinodex.index.sweep import audit
from tests.support.command import bad, runner
from tests.support.libraries.random_library import (
    SETTINGS,
    WHEN,
    add_stage,
    caption,
    detection,
    fingerprint,
    made,
    unit_vectors,
    write,
)


@pytest.mark.slow
def test_leftovers_go_unless_a_run_may_be_writing_them(library: Library) -> None:
    write(library, made("aaaa", 3, seed=1))
    write(library, made("left", 3, seed=2), complete=False)
    with library.lease(INGEST, "a run"):
        assert health(library).problems == ()
        assert health(library).audit.orphans == ("left",)
        report = maintain(library)
        assert report.removed.orphans == ()
        assert "a run on" in report.notes[0]
    assert health(library).problems == ("video left has rows but is not complete",)
    steps: list[str] = []
    report = maintain(library, on_step=steps.append)
    assert (report.removed.orphans, report.notes, report.after.problems) == (("left",), (), ())
    assert len(steps) == 3
    assert library.video_ids() == {"aaaa"}


def test_only_one_at_a_time_and_alone_without_older_versions(library: Library) -> None:
    with library.lease(MAINTENANCE, "another"), pytest.raises(LibraryBusy, match="another on"):
        maintain(library)
    with library.lease("add speech", "a run"), pytest.raises(LibraryBusy, match="a run on"):
        maintain(library, keep_s=0.0)
    assert health(library).at_work == ()


# `kinodex maintain --purge`: what was removed is in no file any more, and all else is as it was.

FRAMES = 4
VIDEOS = 30
GONE = 12
EAGER = Thresholds(scalar_rows=10, vector_rows=20)


def id_of(number: int) -> str:
    return f"{number:02d}" + "".join(f"{byte:02x}" for byte in np.random.default_rng(number).bytes(15))


def words_of(number: int) -> str:
    """A text of its own, which no compression shortens much."""
    return "".join(chr(letter) for letter in np.random.default_rng(100 + number).integers(0x4E00, 0x9FA0, 300))


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty videos with captions, lines, detections and clips, in one file a table, with all kinds of indexes."""
    thirty = Library.create(str(tmp_path_factory.mktemp("original") / "library"), SETTINGS, fingerprint())
    ids = [id_of(number) for number in range(VIDEOS)]
    videos = [made(id_, FRAMES, n, lines=((0.0, 1.0, words_of(n)),)) for n, id_ in enumerate(ids)]
    thirty.writer.add_frames({video.video_id: video.frame_rows() for video in videos})
    thirty.writer.add_speech({video.video_id: video.speech() for video in videos})
    assert thirty.writer.complete([video.video_row(words_of(n)) for n, video in enumerate(videos)]) == ()
    vectors = unit_vectors(VIDEOS, 5)
    add_stage(thirty, "captions", "m", {id_: [caption(0, words_of(n), vectors[n])] for n, id_ in enumerate(ids)})
    add_stage(thirty, "detections", "m", {id_: [detection(0, "kite", 0.9)] for id_ in ids})
    thirty.notes.add([NoteRow(id_, "m", 0.0, 1.0, words_of(n), None, 2) for n, id_ in enumerate(ids)])
    thirty.ingest_log.add_sources([SourceRow(words_of(n), id_, None, "", WHEN) for n, id_ in enumerate(ids)])
    refresh(thirty.tables, EAGER)
    return Path(thirty.uri)


@pytest.fixture
def thirty(original: Path, tmp_path: Path) -> Library:
    return Library.open(str(shutil.copytree(original, tmp_path / "library")))


def traces(thirty: Library, number: int) -> list[str]:
    """The files that hold a piece of a video."""
    id_ = id_of(number).encode()
    words = [words_of(number)[at : at + 4].encode() for at in range(0, 300, 4)]
    pieces = [b"jpeg " + id_, id_, *words]
    files = {path: path.read_bytes() for path in Path(thirty.uri).rglob("*") if path.is_file()}
    return [path.name for path, content in files.items() if any(piece in content for piece in pieces)]


KILLED = """
import os, sys
from kinodex.index.library import Library
from kinodex.index.maintain import maintain
def on_step(step):
    if step.startswith("writing"):
        os.kill(os.getpid(), 9)
maintain(Library.open(sys.argv[1]), 0.0, purge=True, on_step=on_step)
"""


@pytest.mark.slow
def test_nothing_of_a_removed_video_is_left(monkeypatch, capsys, thirty: Library) -> None:
    kinodex = runner(monkeypatch, capsys)
    kept = [id_of(number) for number in range(VIDEOS) if number != GONE]
    assert kinodex("remove", "videos", thirty.uri, id_of(GONE), "--yes").code == 0
    assert subprocess.run([sys.executable, "-c", KILLED, thirty.uri], check=False).returncode == -9
    assert len(traces(thirty, GONE)) >= 3  # joining files is not enough, and this test could fail
    done = kinodex("maintain", thirty.uri, "--purge", "--keep-minutes", "0")
    assert (done.code, "warn" in done.err.lower()) == (0, False)
    assert traces(thirty, GONE) == []
    assert {row.video_id for row in thirty.videos()} == {*kept}
    assert thirty.frames(kept[5], [3])[0].jpeg == f"jpeg {kept[5]} 3".encode()
    assert [hit.video_id for hit in thirty.search.lines("speech", words_of(5), k=1)] == [kept[5]]
    with thirty.lease("add captions", "a run"):
        bad(kinodex, "maintain", thirty.uri, "--keep-minutes", "0", code=4, says="add captions is at work")
        assert kinodex("maintain", thirty.uri, "--purge").code == 0
    bad(kinodex, "maintain", thirty.uri, "--keep-minutes", "0.5", code=2, says="or 0 if nobody")
    bad(kinodex, "maintain", thirty.uri, "--check", "--purge", code=2, says="--check, which deletes nothing")


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, VIDEOS - 1])
def test_wherever_it_was_in_its_file(thirty: Library, number: int) -> None:
    """At a file's end nothing is seen to be missing."""
    tables = thirty.tables
    before = {each.name: each.segments[0].uuid for each in tables["captions"].describe_indices()}
    remove_videos(thirty, id_of(number))
    for name in ("captions", "frames"):
        assert holds_deleted(tables, name)
        purge_table(tables, name)
        assert not holds_deleted(tables, name)
    indexes = {each.name: each.segments[0].uuid for each in tables["captions"].describe_indices()}
    assert sorted(indexes) == ["by_terms", "by_video_id"], "indexes keep words and vectors of rows that are gone"
    assert not {*indexes.values()} & {*before.values()}
    refresh(thirty.tables, EAGER)
    now = {each.name for each in tables["captions"].describe_indices()}
    assert now == {*before} == {"by_terms", "by_vector", "by_video_id"}
    query = unit_vectors(VIDEOS, 5)[9].astype(np.float32)
    assert thirty.search.captions("nothing", query, k=1)[0].video_id == id_of(9)
    assert audit(thirty).problems == ()


# Videos and additions are removed with all their rows, and beside no run that writes the same.


def test_a_video_goes_with_all_that_is_known_of_its_sources(library: Library) -> None:
    for video_id in ("aaaa", "bbbb"):
        write(library, made(video_id, 3, seed=1))
    library.ingest_log.add_sources([SourceRow("/a", "aaaa", None, "", WHEN), SourceRow("/b", "bbbb", None, "", WHEN)])
    library.ingest_log.add_failures([FailureRow(uri, "subtitles", "X", "no", 1, WHEN) for uri in ("/a", "/b")])
    remove_videos(library, "aaaa")
    assert library.video_ids() == {"bbbb"}
    assert list(library.ingest_log.sources()) == ["/b"]
    assert [row.uri for row in library.ingest_log.failures()] == ["/b"]
    assert audit(library).problems == ()
    with library.lease("ingest", "a run"), pytest.raises(LibraryBusy, match="ingest is at work"):
        remove_videos(library, "bbbb")


def test_an_addition_goes_and_others_stay(library: Library) -> None:
    write(library, made("aaaa", 3, seed=1))
    for model in ("first", "second"):
        add_stage(library, "detections", model, {"aaaa": [detection(0, "kite", 0.5)]})
        library.notes.add([NoteRow("aaaa", model, 0.0, 1.0, "a kite", None, 1)])
    remove_added(library, "detections", "first", "aaaa")
    remove_added(library, "notes", "second", "aaaa")
    assert [row.model for row in library.detections("aaaa")] == ["second"]
    assert [len(library.notes.read("aaaa", model)) for model in ("first", "second")] == [1, 0]
    with library.lease("add detections", "a run"), pytest.raises(LibraryBusy):
        remove_added(library, "detections", "second", "aaaa")
    with pytest.raises(LibraryError, match="own: every frame has its vector"):
        remove_added(library, "vectors", library.fingerprint.digest, "aaaa")
