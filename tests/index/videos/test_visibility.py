"""Complete videos and additions are looked up again whenever the tables change."""

from __future__ import annotations

import pytest

from index.errors import LibraryError
from index.library import Library
from index.videos.visibility import MANY, VisibilityCache
from tests.support.random_library import detection, made, write


def test_a_reader_sees_what_another_handle_completes(library):
    reader = Library.open(library.uri)
    assert reader.videos() == []
    write(library, made("aaaa", 4, seed=1))
    assert reader.has_video("aaaa")
    library.writer.discard("aaaa")
    assert not reader.has_video("aaaa")


def test_only_what_is_asked_for_is_read(library: Library) -> None:
    for video_id in ("aaaa", "bbbb"):
        write(library, made(video_id, 2, seed=1))
    visible = VisibilityCache(library.tables)
    assert visible.videos(["aaaa", "nothing"]).keys() == {"aaaa"}
    assert visible.videos(["bbbb"]).keys() == {"bbbb"}
    assert visible.videos().keys() == {"aaaa", "bbbb"}
    assert visible.videos([f"{number}" for number in range(MANY + 1)]) == {}


def test_models_of_a_stage_are_those_that_completed_it(library: Library) -> None:
    write(library, made("aaaa", 2, seed=1))
    visible = VisibilityCache(library.tables)
    library.additions.add_detections({"aaaa": [detection(0, "kite", 0.5)]}, "first")
    assert visible.models("detections", ["aaaa"]) == {}
    library.additions.complete("detections", "first", {"aaaa": 1}, {})
    library.additions.complete("detections", "second", {"aaaa": 0}, {})
    assert visible.models("detections", ["aaaa"]) == {"aaaa": ("first", "second")}
    with pytest.raises(LibraryError, match="got stage 'smells'; it is one of captions, detections, speech, vectors"):
        visible.models("smells", ["aaaa"])
