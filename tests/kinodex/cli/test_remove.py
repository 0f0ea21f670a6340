"""`kinodex remove`: what is taken out is gone for every reader, and nothing else is."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kinodex.index.library import Library
from kinodex.index.rows import FailureRow, NoteRow, SourceRow
from kinodex.index.sweep import audit
from tests.support.command import bad
from tests.support.libraries.agent_library import make_library
from tests.support.libraries.random_library import caption

FILMS = {"one.mp4": ["a red kite"] * 20, "two.mp4": ["a blue boat"] * 20, "three.mp4": ["a cat"] * 20}


@pytest.fixture
def library(tmp_path) -> Library:
    """Three videos with captions by two models, and a clip that an agent had captioned of each."""
    library = make_library(tmp_path / "library", FILMS)
    ids = [row.video_id for row in library.videos()]
    for model in ("m1", "m2"):
        library.additions.add_captions({video_id: [caption(0, f"by {model}")] for video_id in ids}, model)
        assert library.additions.complete("captions", model, dict.fromkeys(ids, 1), {}) == ()
    library.notes.add([NoteRow(video_id, "m1", 0.0, 4.0, "a clip", None, 4) for video_id in ids])
    return library


def held(library: Library) -> dict[tuple[str, str], tuple[int, int]]:
    return {(each.stage, each.model): (each.videos, each.rows) for each in library.info().added}


def test_videos_go_with_all_that_was_added_and_what_failed_in_them(library, kinodex):
    """But not what failed in a source that holds something else by now, nor the video that a part of a title means."""
    before, uris = held(library), {row.title: row.uri for row in library.videos()}
    remove, yes = ("remove", "videos", library.uri), "--yes"
    for names, says in (
        (("one.mp4", "nine.mp4", yes), "nine.mp4"),
        (("one", yes), "got video 'one'"),
        (("one.mp4",), "give --yes"),
    ):
        bad(kinodex, *remove, *names, code=2, says=says)
    assert (len(library.videos()), held(library)) == (3, before)
    library.ingest_log.add_sources([SourceRow(uris["two.mp4"], "", 10, "later", datetime.now(UTC))])
    library.ingest_log.add_failures(
        [FailureRow(uri, "speech", "Bad", "no sound", 1, datetime.now(UTC)) for uri in uris.values()]
    )
    ran = kinodex(*remove, "one.mp4", "two.mp4", "one.mp4", yes)
    assert ran.code == 0 and "2 videos removed, 1 left" in ran.out
    assert [row.title for row in library.videos()] == ["three.mp4"]
    assert held(library) == {("captions", "m1"): (1, 1), ("captions", "m2"): (1, 1), ("notes", "m1"): (1, 1)}
    assert [row.uri for row in library.ingest_log.failures()] == sorted([uris["two.mp4"], uris["three.mp4"]])
    assert audit(library).problems == ()


def test_what_one_model_added_goes_alone_or_of_one_video(library, kinodex):
    uri, left = library.uri, held(library)
    bad(kinodex, "remove", "added", uri, "speech", "m1", "--yes", code=2, says="added to it: captions m1, captions m2")
    for stage in ("captions", "notes"):
        ran = kinodex("remove", "added", uri, stage, "m1", "--yes")
        assert (ran.code, ran.out.strip()) == (0, f"3 {stage} removed")
        del left[stage, "m1"]
        assert held(library) == left
    assert kinodex("remove", "added", uri, "captions", "m2", "--video", "one.mp4", "--yes").code == 0
    assert held(library) == {("captions", "m2"): (2, 2)} and len(library.videos()) == 3
    assert audit(library).problems == ()


def test_a_video_whose_file_holds_another_by_now_is_pointed_out(library, kinodex):
    library.ingest_log.add_sources([SourceRow("one.mp4", "f" * 32, 10, "later", datetime.now(UTC))])
    old = library.video("one.mp4").video_id[:12]
    assert f"{old}: one.mp4 holds another video by now" in kinodex("info", library.uri).out
    assert kinodex("remove", "videos", library.uri, "o*", "--yes").code == 0
    assert "by now" not in kinodex("info", library.uri).out
