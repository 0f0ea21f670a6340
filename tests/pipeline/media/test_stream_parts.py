"""Parts of a stream: the encoder, the order of packets, and sizes."""

from __future__ import annotations

import io
from contextlib import ExitStack
from fractions import Fraction

import av

from kinodex.pipeline.media.play import encoded_pictures, encoder_name
from kinodex.pipeline.media.source import frames_from, open_source, order_s
from tests.support.libraries.play_library import FPS, WIDTH_PX, write_film


def test_pictures_are_encoded_from_a_time_on_with_even_sides_and_in_order(tmp_path):
    write_film(tmp_path / "film.avi", "mpeg4", None, length_s=3)
    with ExitStack() as opened, av.open(io.BytesIO(), "w", format="mp4") as target:
        stream, pictures = frames_from(opened, lambda: open_source(str(tmp_path / "film.avi")), "film", 1.05)
        shown = list(pictures)
        assert shown[0][0] <= Fraction(105, 100) < shown[0][1]
        packets = list(encoded_pictures(shown, stream, target, 1.05))
        orders = [order_s(packet) for packet in packets]
        assert orders == sorted(orders) and orders[0] == 0.0 and len(packets) == len(shown) >= 2 * FPS - 1
        assert target.streams.video[0].width == WIDTH_PX
        assert target.streams.video[0].codec_context.name == encoder_name()
        for packet in packets:
            target.mux(packet)
