"""Spans read one by one give the samples of a whole pass, to the last bit."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from kinodex.pipeline.decoding.open import SHORTEST_SPAN_S, SPANS_A_SHARER, open_video, span_count, split_video
from kinodex.pipeline.decoding.stream import Span, SpanDamaged, VideoReader
from tests.support.ffmpeg import MADE, ffmpeg, make, needs_ffmpeg

Shown = list[tuple[int, float, str]]


def shown(video: VideoReader, fps: float, span: Span | None = None) -> Shown:
    """Number, time and fingerprint of each sample."""
    return [
        (s.number, s.time_s, hashlib.md5(s.frame.to_ndarray().tobytes()).hexdigest()) for s in video.samples(fps, span)
    ]


def assert_joined_spans_are_the_whole(path: Path, fps: float, span_s: float) -> tuple[Span, ...]:
    spans = split_video(path, path.name, fps, span_s)
    with open_video(path) as video:
        whole = shown(video, fps)
        whole_end_s = video.end_s
    joined: Shown = []
    for span in spans:
        with open_video(path) as video:
            part = shown(video, fps, span)
            end_s = video.end_s
        until = span.until_number if span.until_number is not None else whole[-1][0] + 1
        assert all(span.first_number <= number < until for number, _, _ in part)
        joined += part
    assert joined == whole
    assert end_s == whole_end_s
    assert [span.until_pts for span in spans[:-1]] == [span.first_pts for span in spans[1:]]
    assert [span.until_number for span in spans[:-1]] == [span.first_number for span in spans[1:]]
    assert (spans[0].first_number, spans[-1].until_pts, spans[-1].until_number) == (0, None, None)
    return spans


@needs_ffmpeg
@pytest.mark.parametrize("fps", [0.5, 4])
@pytest.mark.parametrize("kind", sorted(set(MADE) - {"mpeg2.mpg"}))
def test_joined_spans_are_the_whole(media: Path, tmp_path: Path, kind: str, fps: float) -> None:
    spans = assert_joined_spans_are_the_whole(make(kind, media, tmp_path), fps, span_s=2)
    assert 3 <= len(spans) <= 6


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["clips/moviepy__clip1024.flv", "clips/mediabunny__cursed-vfr.mp4", "awkward/torchcodec__var_fps_video.mp4",
     "clips/torchcodec__nasa_13013.mp4", "clips/moviepy__big_buck_bunny_0_30.webm"],
)  # fmt: skip
def test_joined_spans_of_real_files_are_the_whole(media: Path, name: str) -> None:
    assert len(assert_joined_spans_are_the_whole(media / name, 1, span_s=3)) > 1


def test_a_short_video_is_not_cut(media: Path) -> None:
    path = media / "clips" / "moviepy__big_buck_bunny_0_30.webm"  # 30 s
    assert split_video(path, path.name, 1, span_s=25) == ()
    assert len(split_video(path, path.name, 1, span_s=12)) == 2


def test_a_video_that_several_workers_share_is_split_further(media: Path) -> None:
    path = media / "clips" / "moviepy__sintel_trailer_52s.mp4"
    assert split_video(path, path.name, 1, span_s=300) == ()
    halves = split_video(path, path.name, 1, span_s=300, sharers=2)
    assert [span.first_number for span in halves] == [0, halves[0].until_number]
    assert len(split_video(path, path.name, 1, span_s=300, sharers=50)) == 52 // SHORTEST_SPAN_S


def test_each_sharer_gets_as_many_spans_unless_they_become_too_short() -> None:
    assert span_count(300.0, 1) == 1
    assert span_count(300.0, 2) == 2 * SPANS_A_SHARER
    assert span_count(300.0, 8) == 16  # 18.75 s each; three for each would be too short
    assert span_count(300.0, 1000) == 300 // int(SHORTEST_SPAN_S)
    assert span_count(10.0, 8) == 1


@pytest.mark.parametrize("name", ["mediabunny__hevc-aac.avi", "simpl__track_audiosprites_video.webm"])
def test_a_video_whose_times_mislead_is_not_cut(media: Path, name: str) -> None:
    assert split_video(media / "awkward" / name, name, 1, span_s=0.2) == ()


@needs_ffmpeg
def test_damage_in_a_span_is_told(media: Path, tmp_path: Path) -> None:
    path = make("h264.mp4", media, tmp_path)
    spans = split_video(path, path.name, 30, 2)
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 4000] = bytes(4000)
    path.write_bytes(data)
    outcomes = []
    for span in spans:
        with open_video(path) as video:
            try:
                outcomes.append(len(shown(video, 30, span)))
            except SpanDamaged as damage:
                assert path.name in str(damage)
                outcomes.append(0)
    assert outcomes.count(0) in (1, 2)
    assert outcomes[0] > 0
    assert outcomes[-1] > 0


@needs_ffmpeg
def test_key_frames_that_are_none_are_told(media: Path, tmp_path: Path) -> None:
    path = tmp_path / "refresh.mkv"
    clip = media / "clips" / "torchcodec__dog_eating_854132.mp4"
    ffmpeg(
        "-i", clip, "-an", "-vf", "scale=160:90", "-c:v", "libx264", "-x264-params", "keyint=30:intra-refresh=1", path
    )
    spans = split_video(path, path.name, 1, 2)
    with open_video(path) as video, pytest.raises(SpanDamaged):
        shown(video, 1, spans[1])


def test_a_span_of_another_file_is_told(media: Path) -> None:
    spans = split_video(media / "clips" / "moviepy__big_buck_bunny_0_30.webm", "bunny", 1, 6)
    with open_video(media / "clips" / "simpl__gbike_ride_31s.webm") as video, pytest.raises(SpanDamaged):
        shown(video, 1, spans[2])
