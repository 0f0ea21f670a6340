"""`kinodex maintain --purge`: what was removed is in no file any more, and all else is as it was."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kinodex.index.errors import LibraryBusy
from kinodex.index.library import Library
from kinodex.index.maintain import holds_deleted, maintain, purge_table, remove_videos
from kinodex.index.rows import ClipRow, SourceRow
from kinodex.index.store.database import Tables
from kinodex.index.store.indexes import Thresholds, refresh
from kinodex.index.sweep import audit
from tests.support.command import Kinodex, bad, runner
from tests.support.libraries.random_library import SETTINGS, WHEN, caption, detection, fingerprint, made, unit_vectors

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
    library = Library.create(str(tmp_path_factory.mktemp("original") / "library"), SETTINGS, fingerprint())
    ids = [id_of(number) for number in range(VIDEOS)]
    videos = [made(id_, FRAMES, n, lines=((0.0, 1.0, words_of(n)),)) for n, id_ in enumerate(ids)]
    library.writer.add_frames({video.video_id: video.frame_rows() for video in videos})
    library.writer.add_transcript({video.video_id: video.transcript() for video in videos})
    assert library.writer.complete([video.video_row(words_of(n)) for n, video in enumerate(videos)]) == ()
    vectors = unit_vectors(VIDEOS, 5)
    library.additions.add_captions({id_: [caption(0, words_of(n), vectors[n])] for n, id_ in enumerate(ids)}, "m")
    library.additions.complete("captions", "m", dict.fromkeys(ids, 1), {})
    library.additions.add_detections({id_: [detection(0, "kite", 0.9)] for id_ in ids}, "m")
    library.additions.complete("detections", "m", dict.fromkeys(ids, 1), {})
    library.clips.add([ClipRow(id_, "m", 0.0, 1.0, words_of(n), None, 2) for n, id_ in enumerate(ids)])
    library.ingest_log.add_sources([SourceRow(words_of(n), id_, None, "", WHEN) for n, id_ in enumerate(ids)])
    refresh(library.tables, EAGER)
    return Path(library.uri)


@pytest.fixture
def library(original: Path, tmp_path: Path) -> Library:
    return Library.open(str(shutil.copytree(original, tmp_path / "library")))


def traces(library: Library, number: int) -> list[str]:
    """The files that hold a piece of a video."""
    id_ = id_of(number).encode()
    words = [words_of(number)[at : at + 4].encode() for at in range(0, 300, 4)]
    pieces = [b"jpeg " + id_, id_, *words]
    files = [path for path in Path(library.uri).rglob("*") if path.is_file()]
    return [path.name for path in files if any(piece in path.read_bytes() for piece in pieces)]


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
def test_nothing_of_a_removed_video_is_left(monkeypatch, capsys, library: Library) -> None:
    kinodex = runner(monkeypatch, capsys)
    kept = [id_of(number) for number in range(VIDEOS) if number != GONE]
    assert kinodex("remove", "videos", library.uri, id_of(GONE), "--yes").code == 0
    assert subprocess.run([sys.executable, "-c", KILLED, library.uri], check=False).returncode == -9
    assert len(traces(library, GONE)) >= 3  # joining files is not enough, and this test could fail
    done = kinodex("maintain", library.uri, "--purge", "--keep-minutes", "0")
    assert (done.code, "warn" in done.err.lower()) == (0, False)
    assert traces(library, GONE) == []
    assert {row.video_id for row in library.videos()} == {*kept}
    assert library.frames(kept[5], [3])[0].jpeg == f"jpeg {kept[5]} 3".encode()
    assert [hit.video_id for hit in library.search.transcript(words_of(5), k=1)] == [kept[5]]


@pytest.mark.parametrize("number", [0, GONE, VIDEOS - 1])
def test_wherever_it_was_in_its_file(library: Library, tables: Tables, number: int) -> None:
    """At a file's end nothing is seen to be missing."""
    before = {each.name for each in tables["captions"].describe_indices()}
    remove_videos(library, id_of(number))
    for name in ("captions", "frames"):
        assert holds_deleted(tables, name)
        purge_table(tables, name)
        assert not holds_deleted(tables, name)
    refresh(library.tables, EAGER)
    now = {each.name for each in tables["captions"].describe_indices()}
    assert now == before == {"by_text", "by_vector", "by_video_id"}
    query = unit_vectors(VIDEOS, 5)[9].astype(np.float32)
    assert library.search.captions("nothing", query, k=1)[0].video_id == id_of(9)
    assert audit(library).problems == ()


def test_indexes_are_made_anew(library: Library, tables: Tables) -> None:
    """They keep words and vectors of rows that are gone, as long as the table has files that stay."""
    before = {each.name: each.segments[0].uuid for each in tables["captions"].describe_indices()}
    purge_table(tables, "captions")
    now = {each.name: each.segments[0].uuid for each in tables["captions"].describe_indices()}
    assert sorted(before) == ["by_text", "by_vector", "by_video_id"]
    assert sorted(now) == ["by_text", "by_video_id"]
    assert not {*now.values()} & {*before.values()}


def test_without_older_states_only_alone(monkeypatch, capsys, library: Library) -> None:
    kinodex: Kinodex = runner(monkeypatch, capsys)
    with library.lease("add captions", "a run"):
        with pytest.raises(LibraryBusy):
            maintain(library, 0.0)
        bad(kinodex, "maintain", library.uri, "--keep-minutes", "0", code=4, says="add captions is at work")
        assert kinodex("maintain", library.uri, "--purge").code == 0
    bad(kinodex, "maintain", library.uri, "--keep-minutes", "0.5", code=2, says="or 0 if nobody")
    bad(kinodex, "maintain", library.uri, "--check", "--purge", code=2, says="--check, which deletes nothing")
