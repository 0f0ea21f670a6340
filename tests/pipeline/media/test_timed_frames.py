"""Frames with their times: pictures without a gap, sound cut to the sample."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kinodex.pipeline.decoding.stream import choose_stream
from kinodex.pipeline.media.source import choose_sound, open_source, timed_frames, trimmed_sound
from tests.support.libraries.play_library import FPS, SOUND_HZ, write_film


@pytest.fixture
def film(tmp_path):
    write_film(tmp_path / "film.mp4", "mpeg4", "aac", length_s=3)
    return str(tmp_path / "film.mp4")


def test_each_picture_is_shown_until_the_next(film):
    with open_source(film) as source:
        shown = list(timed_frames(source, choose_stream(source, "film")))
    assert len(shown) == 3 * FPS
    assert all(until == begin for (_, until, _), (begin, _, _) in pairwise(shown))
    assert float(shown[-1][1]) == pytest.approx(3.0, abs=1 / FPS)


def test_sound_is_cut_to_the_sample_and_placed(film):
    with open_source(film) as source:
        track = choose_sound(source)
        assert track is not None
        frames = list(trimmed_sound(source, track, 0.5, 1.25, at_s=7.0))
    assert sum(frame.samples for frame in frames) == round(0.75 * SOUND_HZ)
    assert frames[0].time == pytest.approx(7.0, abs=1 / SOUND_HZ)


def test_without_an_end_all_that_follows_is_the_sound(film):
    with open_source(film) as source:
        track = choose_sound(source)
        assert track is not None
        frames = list(trimmed_sound(source, track, 1.0))
    assert sum(frame.samples for frame in frames) == pytest.approx(2 * SOUND_HZ, abs=3000)
    assert frames[0].time == pytest.approx(0.0, abs=1 / SOUND_HZ)
