"""The environment of an agent: frames, their times, and the words spoken, of its videos and no others."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from kinodex.agent.environment import AnchorsFrom, Environment
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


def test_a_frame_stands_for_the_time_until_the_next(environment):
    frame, last = environment.frames(environment.videos[0].video_id, [30.0, 59.0])
    assert environment.shown_range(frame) == (30.0, 31.0)
    assert environment.shown_range(last) == (59.0, 60.0)


def test_what_is_said(environment):
    second = environment.videos[1].video_id
    assert [line.text for line in environment.transcript(second, 40.0, 50.0)] == ["Look at that kite"]
    assert environment.transcript(second, 0.0, 40.0) == []
    assert [hit.time_s for hit in environment.search_transcript("kite", 5)] == [41.0]


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


def test_what_is_shown_is_found_by_pictures_and_not_by_words(narrated):
    environment = environment_of(narrated)
    shown, best = anchor_times(environment, "red kite desert", "both")
    assert 80 <= shown[0] < 90
    assert not best[0].by_words
    assert anchor_times(environment, "red kite desert", "words")[0] == []


def test_a_line_of_common_words_does_not_beat_a_picture(narrated):
    """By the share of words alone, each of 60 lines about a house would be worth 0.6."""
    environment = environment_of(narrated)
    found = environment.search(["the next red house"], environment.videos[0].video_id, 16, 4.0, anchors_from="words")
    assert max(each.similarity for each in found) < 0.3


def test_pictures_alone_are_matched_as_if_there_were_no_words(narrated):
    said, silent = environment_of(narrated), environment_of(narrated, subtitles=False)
    video_id = said.videos[0].video_id
    pairs: list[tuple[Environment, AnchorsFrom]] = [(said, "pictures"), (silent, "both")]
    searches = [each.search(["red kite desert"], video_id, 8, 4.0, anchors_from=kind) for each, kind in pairs]
    assert searches[0] == searches[1]
