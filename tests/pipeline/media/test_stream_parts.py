"""Parts of a stream: the encoder, the order of packets, and sizes."""

from __future__ import annotations

import io
from fractions import Fraction

import av

from pipeline.decoding.video_stream import choose_stream
from pipeline.media.player_form import order_s
from pipeline.media.source import open_source
from pipeline.media.stream_parts import encoded_pictures, encoder_name, shown_pictures
from tests.support.libraries.play_library import FPS, WIDTH_PX, write_film


def test_pictures_are_encoded_from_a_time_on_with_even_sides_and_in_order(tmp_path):
    write_film(tmp_path / "film.avi", "mpeg4", None, length_s=3)
    with open_source(str(tmp_path / "film.avi")) as source, av.open(io.BytesIO(), "w", format="mp4") as target:
        stream = choose_stream(source, "film")
        shown = list(shown_pictures(source, stream, 1.05))
        assert shown[0][0] <= Fraction(105, 100) < shown[0][1]
        packets = list(encoded_pictures(shown, stream, target, 1.05))
        orders = [order_s(packet) for packet in packets]
        assert orders == sorted(orders) and orders[0] == 0.0 and len(packets) == len(shown) >= 2 * FPS - 1
        assert target.streams.video[0].width == WIDTH_PX
        assert target.streams.video[0].codec_context.name == encoder_name()
        for packet in packets:
            target.mux(packet)
