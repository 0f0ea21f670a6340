"""Frames with their times, pictures without a gap, sound cut to the sample, and the form that players expect."""

from __future__ import annotations

import io
from fractions import Fraction
from itertools import pairwise

import av
import numpy as np
import pytest

from kinodex.pipeline.decoding.clock import UNBROKEN
from kinodex.pipeline.decoding.stream import choose_stream
from kinodex.pipeline.media.encoding import TICK_S, add_pictures, player_frame
from kinodex.pipeline.media.pictures import timed_frames
from kinodex.pipeline.media.sound import choose_sound, trimmed_sound
from kinodex.pipeline.media.source import open_source
from tests.support.libraries.play_library import FPS, SOUND_HZ, write_film


def test_pictures_follow_one_another_and_sound_is_cut_to_the_sample(tmp_path):
    write_film(tmp_path / "film.mp4", "mpeg4", "aac", length_s=3)
    film = str(tmp_path / "film.mp4")
    with open_source(film) as source:
        shown = list(timed_frames(source, choose_stream(source, "film")))
    assert len(shown) == 3 * FPS
    assert all(until == begin for (_, until, _), (begin, _, _) in pairwise(shown))
    assert float(shown[-1][1]) == pytest.approx(3.0, abs=1 / FPS)
    for start_s, end_s, at_s, samples in ((0.5, 1.25, 7.0, 0.75 * SOUND_HZ), (1.0, None, 0.0, 2 * SOUND_HZ)):
        with open_source(film) as source:
            track = choose_sound(source)
            assert track is not None
            frames = list(trimmed_sound(source, track, UNBROKEN, start_s, end_s, at_s=at_s))
        assert sum(frame.samples for frame in frames) == pytest.approx(samples, abs=3000 if end_s is None else 0.5)
        assert frames[0].time == pytest.approx(at_s, abs=1 / SOUND_HZ)


def test_a_picture_is_made_even_and_timed_in_ticks():
    rgb = np.zeros((31, 41, 3), np.uint8)
    with av.open(io.BytesIO(), "w", format="mp4") as target:
        stream = add_pictures(target, "libx264", {}, 41, 31)
        frame = player_frame(rgb, stream, Fraction(1, 3), 0.5)
        assert (stream.width, stream.height) == (frame.width, frame.height) == (40, 30)
        assert (frame.pts, frame.time_base, frame.duration) == (30_000, TICK_S, 15_000)
        assert frame.format.name == "yuv420p"
        for packet in (*stream.encode(frame), *stream.encode()):
            target.mux(packet)
