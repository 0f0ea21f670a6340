"""The environment of an agent: frames, their times, and the words spoken, of its videos and no others."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from kinodex.index.rows import TranscriptRow
from tests.support.libraries.agent_library import environment_of, film, make_library


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    films = {"first": film(2, 60), "second": film(3, 90, {40: ("red kite desert", 10)})}
    library = make_library(tmp_path_factory.mktemp("environment"), films)
    line = SimpleNamespace(
        start_s=41.0, end_s=44.0, text="Look at that kite", source="sidecar", language="en", speaker=None
    )
    library.writer.add_transcript({library.video("second").video_id: [line]})
    return library


@pytest.fixture(scope="module")
def environment(library):
    return environment_of(library)


def test_search_keeps_matches_apart_and_texts_on_one_scale(environment):
    second = environment.videos[1].video_id
    found = environment.search(["red kite desert", "white submarine"], second, k=3, min_gap_s=4.0)
    kites = [match for match in found if match.query == "red kite desert"]
    assert {40 <= match.time_s < 50 for match in kites[:2]} == {True}
    assert min(np.diff(sorted(match.time_s for match in kites))) >= 4.0
    assert kites[0].similarity > max(match.similarity for match in found if match.query == "white submarine")


def test_frames_come_once_each_in_time_order(environment):
    frames = environment.frames(environment.videos[0].video_id, [30.2, 5.0, 29.9])
    assert [(frame.frame_no, frame.time_s) for frame in frames] == [(5, 5.0), (30, 30.0)]
    assert environment.frames(environment.videos[0].video_id, []) == ()


LINES = [(6.0 * at, f"we went on to the next house {at}") for at in range(60)]
SPOKEN = (200.0, "Now the captain hides her silver compass")


@pytest.fixture(scope="module")
def narrated(tmp_path_factory):
    """A film that shows a red kite in the desert once, and in which a captain and a compass are only spoken of."""
    library = make_library(tmp_path_factory.mktemp("narrated"), {"film": film(5, 400, {80: ("red kite desert", 10)})})
    said = [
        TranscriptRow(library.video("film").video_id, start_s, start_s + 3.0, text, "sidecar")
        for start_s, text in sorted([*LINES, SPOKEN])
    ]
    library.writer.add_transcript({library.video("film").video_id: said})
    return library


def anchor_times(environment, query, kind):
    video_id = environment.videos[0].video_id
    found = environment.search([query], video_id, 4, 4.0, anchors_from=kind)
    return [each.time_s for each in found if each.similarity > 0.4], found


def test_what_is_said_is_found_where_pictures_show_nothing_of_it(narrated):
    """Also what is spoken of counts as much as it is rare: not by the share of words alone."""
    environment = environment_of(narrated)
    said, best = anchor_times(environment, "the captain hides a compass", "both")
    assert said == [201.0]
    assert best[0].by_words
    assert anchor_times(environment, "the captain hides a compass", "pictures")[0] == []
    assert anchor_times(environment, "the captain hides a compass", "words")[0] == [201.0]
