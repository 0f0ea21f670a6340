"""The form that players expect: even sides, the usual colours, times in whole ticks."""

from __future__ import annotations

import io
from fractions import Fraction

import av
import numpy as np
import pytest

from kinodex.pipeline.errors import VideoError
from kinodex.pipeline.media.source import TICK_S, add_pictures, player_frame


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


def test_a_picture_without_a_second_row_is_refused():
    with av.open(io.BytesIO(), "w", format="mp4") as target, pytest.raises(VideoError, match="640 x 1 pixels"):
        add_pictures(target, "libx264", {}, 640, 1)
