"""Ways to play a file, by its container and codecs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kinodex.pipeline.media.play import playable, plays_by_name
from kinodex.pipeline.media.source import MediaFacts

MP4, WEBM = "mov,mp4,m4a,3gp,3g2,mj2", "matroska,webm"
H264 = MediaFacts(MP4, "h264", "High", "yuv420p", False, False, 0, "aac", True, True)


@pytest.mark.parametrize(
    ("facts", "way", "why"),
    [
        (H264, "file", "browsers play H.264 with AAC"),
        (replace(H264, sound=None, hdr=True), "file", "high dynamic range"),
        (replace(H264, rotation_deg=-90), "file", "browsers play"),
        (replace(H264, container=WEBM, codec="vp8", sound="vorbis"), "file", "VP8 with Vorbis"),
        (replace(H264, container=WEBM), "remuxed", "Matroska"),
        (replace(H264, container="mpegts"), "remuxed", "MPEGTS"),
        (replace(H264, container="avi"), "remuxed", "AVI"),
        (replace(H264, sound="ac3"), "remuxed", "AC-3"),
        (replace(H264, is_first_video=False), "remuxed", "several video tracks"),
        (replace(H264, container="avi", codec="vp8"), "transcoded", "AVI"),
        (replace(H264, container="avi", has_times=False), "transcoded", "do not say when"),
        (replace(H264, codec="hevc"), "transcoded", "HEVC"),
        (replace(H264, codec="mpeg2video"), "transcoded", "no decoder for MPEG-2"),
        (replace(H264, codec="prores"), "transcoded", "no decoder for ProRes"),
        (replace(H264, pix_fmt="yuv420p10le"), "transcoded", "ten bits"),
        (replace(H264, pix_fmt="yuv444p"), "transcoded", "more colour"),
        (replace(H264, interlaced=True), "transcoded", "interlaced"),
    ],
)
def test_the_least_work_that_makes_it_play(facts, way, why):
    choice = playable(facts)
    assert choice.way == way and why in choice.why


def test_a_browser_that_has_hevc_gets_the_file():
    assert playable(replace(H264, codec="hevc"), can_hevc=True).way == "file"
    assert playable(replace(H264, codec="hevc", container="mpegts"), can_hevc=True).way == "remuxed"


def test_ways_that_failed_are_left_out():
    failed = [frozenset(), frozenset({"file"}), frozenset({"file", "remuxed"})]
    assert [playable(H264, failed=each).way for each in failed] == ["file", "remuxed", "transcoded"]
    vp8 = replace(H264, container=WEBM, codec="vp8", sound=None)
    assert playable(vp8, failed=failed[1]).way == "transcoded", "MP4 does not take VP8"


def test_names_and_codecs_are_all_there_is_without_pyav():
    assert plays_by_name("h264", ".MP4") and plays_by_name("vp9", ".webm")
    assert not plays_by_name("h264", ".mkv") and not plays_by_name("hevc", ".mp4") and not plays_by_name("h264", "")
