"""Evidence along a video: averaged over a window, and on a scale that is the space's and not the text's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kinodex.agent.environment import NO_MATCH, Environment
from kinodex.jobs.ground import LEAST_OF_ALL, Usual, shown_times, smoothed, usual_cosines, video_evidence
from kinodex.jobs.open import open_environment


@pytest.fixture(scope="module")
def environment(library: Path) -> Environment:
    return open_environment(str(library))


def test_a_window_weighs_each_frame_by_its_time_in_it() -> None:
    start_s, end_s = np.array([0.0, 1.0, 5.0]), np.array([1.0, 5.0, 6.0])
    values = np.array([[1.0, 0.0], [2.0, 0.0], [6.0, 3.0]])
    # around 0.5 s: [0, 1.5) = 1 s of 1 and 0.5 s of 2; around 3 s all of 2; around 5.5 s: [4.5, 6) = 0.5 of 2, 1 of 6
    expected = [[(1 + 0.5 * 2) / 1.5, 0.0], [2.0, 0.0], [(0.5 * 2 + 6) / 1.5, 3 / 1.5]]
    assert smoothed(values, start_s, end_s, 2.0) == pytest.approx(np.array(expected))
    assert smoothed(values[:, 0], start_s, end_s, 2.0) == pytest.approx(np.array(expected)[:, 0])


def test_a_window_gives_what_adding_up_small_steps_gives() -> None:
    chance = np.random.default_rng(4)
    edges = np.cumsum(chance.uniform(0.1, 3.0, 40))
    start_s, end_s, values = edges[:-1], edges[1:], chance.normal(size=39)
    fine_s = np.arange(edges[0], edges[-1], 0.001) + 0.0005
    fine = values[np.searchsorted(start_s, fine_s, side="right") - 1]
    slow = [fine[np.abs(fine_s - middle) <= 1.0].mean() for middle in (start_s + end_s) / 2]
    assert smoothed(values, start_s, end_s, 2.0) == pytest.approx(np.array(slow), abs=0.01)


def test_frames_are_shown_until_the_next_and_the_last_until_the_end(environment: Environment) -> None:
    video = environment.videos[0]
    start_s, end_s = shown_times(environment, video.video_id)
    assert (start_s[1:] == end_s[:-1]).all()
    assert end_s[-1] == pytest.approx(video.end_s)


def test_the_spread_is_that_of_everyday_texts_and_the_median_the_text_s_own(environment: Environment) -> None:
    videos = [video.video_id for video in environment.videos]
    first, second = (usual_cosines(environment, text, videos, videos) for text in ("a blue boat", "the moon"))
    assert first.spread == pytest.approx(second.spread)
    assert first.least == pytest.approx(second.least)
    assert first.median != second.median
    everything = np.concatenate([environment.cosines("the moon", each) for each in videos])
    assert second.median == pytest.approx(float(np.median(everything)), abs=1e-6)
    assert usual_cosines(environment, "the moon", videos[:1], videos).least <= second.least


def test_words_count_for_the_whole_time_of_their_line_and_may_be_left_out(environment: Environment) -> None:
    (spoken,) = (video for video in environment.videos if environment.transcript(video.video_id, 0.0, 1e6))
    line = environment.transcript(spoken.video_id, 0.0, 1e6)[0]
    usual, videos = Usual(0.0, 1.0, LEAST_OF_ALL), [video.video_id for video in environment.videos]
    words = video_evidence(environment, line.text, spoken.video_id, usual, videos, "words")
    said = (words.start_s < line.end_s) & (words.end_s > line.start_s)
    assert (words.deviation[said] > 2).all()
    assert words.by_words[said].all()
    pictures = video_evidence(environment, line.text, spoken.video_id, usual, videos, "pictures")
    assert not pictures.by_words.any()
    assert np.isfinite(pictures.deviation).all()
    nothing = video_evidence(environment, "zzz qqq", spoken.video_id, usual, videos, "words")
    assert (nothing.deviation == NO_MATCH).all()
