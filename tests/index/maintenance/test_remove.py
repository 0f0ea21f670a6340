"""Videos and additions are removed with all their rows, and beside no run that writes the same."""

from __future__ import annotations

import pytest

from kinodex.index.errors import LibraryBusy, LibraryError
from kinodex.index.library import Library
from kinodex.index.maintain import remove_added, remove_videos
from kinodex.index.rows import ClipRow, FailureRow, SourceRow
from kinodex.index.sweep import audit
from tests.support.libraries.random_library import WHEN, detection, made, write


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
        library.additions.add_detections({"aaaa": [detection(0, "kite", 0.5)]}, model)
        assert library.additions.complete("detections", model, {"aaaa": 1}, {}) == ()
        library.clips.add([ClipRow("aaaa", model, 0.0, 1.0, "a kite", None, 1)])
    remove_added(library, "detections", "first", "aaaa")
    remove_added(library, "clips", "second", "aaaa")
    assert [row.model for row in library.detections("aaaa")] == ["second"]
    assert [len(library.clips.read("aaaa", model)) for model in ("first", "second")] == [1, 0]
    with library.lease("add detections", "a run"), pytest.raises(LibraryBusy):
        remove_added(library, "detections", "second", "aaaa")
    with pytest.raises(LibraryError, match="own: every frame has its vector"):
        remove_added(library, "vectors", library.fingerprint.digest, "aaaa")
