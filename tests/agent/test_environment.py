"""The environment of an agent: frames, their times, and the words spoken, of its videos and no others."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from agent.environment import calibrate
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


def test_videos_and_their_frames(environment):
    assert [(video.title, video.start_s, video.end_s) for video in environment.videos] == [
        ("first", 0.0, 60.0),
        ("second", 0.0, 90.0),
    ]
    assert environment.index_frames == 150


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


def test_calibration_tells_a_match_from_noise():
    noise = np.random.default_rng(0).normal(size=3600)
    assert calibrate(noise).max() < 0.4
    assert np.median(calibrate(noise)) < 0.01
    assert calibrate(np.asarray([12.0]))[0] > 0.6
    strong = calibrate(np.asarray([-1e9, 30.0, 60.0, 120.0, 1e9]))
    assert strong[0] == 0.0
    assert (np.diff(strong) > 0).all()
    assert strong[-1] <= 1.0
