"""Moments of real searches of a small library: what found them, like a frame, and within limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kinodex.index.errors import QueryError, TimeOutside, UnknownVideo
from kinodex.index.spaces.space import load_space
from kinodex.web.search import KINDS, MIN_GAP_S, SearchRequest, find_moments, moments_like, needs_vector, stored_vector
from tests.support.libraries.viewer_library import SCENE_S


@pytest.fixture(scope="module")
def embed():
    space = load_space("builtin", device="cpu", towers="text")
    return lambda text: space.embed_text([text])[0]


def test_a_moment_of_several_searches_names_the_hits_of_each(shown, embed):
    moments = find_moments(shown.library, SearchRequest("a yellow boat at sea"), embed, shown.library.fingerprint)
    best = moments[0]
    assert best.hit.source == "both" and best.frame is not None and best.caption is not None
    assert SCENE_S <= best.hit.time_s < 2 * SCENE_S and best.frame.frame_no == best.hit.frame_no
    said = next(moment for moment in moments if moment.line)
    assert said.line is not None and (said.line.text or "").startswith("we are at sea")
    assert all(each.line is each.caption is None for each in moments if each.hit.source == "frame")


def test_words_are_found_without_embedding_anything(shown):
    def no_tower(text):
        raise AssertionError(text)

    for kind, text in (("words", "sea"), ("transcript", "sea"), ("text", "sea"), ("detections", "shoe")):
        find_moments(shown.library, SearchRequest(text, kind), no_tower, shown.library.fingerprint)


def test_a_vector_is_needed_where_pictures_or_captions_of_the_same_space_are_searched(shown):
    space = shown.library.fingerprint
    other = replace(space, weights_sha256="0" * 64)
    needed = [kind for kind in KINDS if needs_vector(shown.library, SearchRequest("boat", kind), space)]
    assert needed == ["together", "frames", "captions"]
    assert not needs_vector(shown.library, SearchRequest("boat", "captions"), other)
    assert not needs_vector(shown.library, SearchRequest(" "), space)
    assert not needs_vector(shown.library, SearchRequest(like=(shown.video_id, 0)), space)


@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_search_is_refused(shown, embed, text):
    with pytest.raises(QueryError, match="empty"):
        find_moments(shown.library, SearchRequest(text), embed, shown.library.fingerprint)


def test_frames_like_one_are_those_of_its_scene_without_itself_and_its_neighbours(shown):
    space = shown.library.fingerprint
    vector = stored_vector(shown.library, shown.video_id, 30, space)
    moments = moments_like(shown.library, vector, SearchRequest(like=(shown.video_id, 30), most=5), space)
    times_s = [moment.hit.time_s for moment in moments]
    assert len(times_s) == 5 and all(SCENE_S <= time_s < 2 * SCENE_S for time_s in times_s)
    assert min(abs(time_s - 30.0) for time_s in times_s) >= MIN_GAP_S
    late = SearchRequest(like=(shown.video_id, 30), start_s=40.0)
    assert all(each.hit.time_s >= 40 for each in moments_like(shown.library, vector, late, space))


def test_a_frame_or_video_that_is_not_there_is_named(shown):
    space = shown.library.fingerprint
    with pytest.raises(TimeOutside, match="no such frame"):
        stored_vector(shown.library, shown.video_id, 999, space)
    with pytest.raises(UnknownVideo):
        stored_vector(shown.library, "nobody", 0, space)
    assert np.linalg.norm(stored_vector(shown.library, shown.video_id, 0, space)) == pytest.approx(1, abs=1e-2)
