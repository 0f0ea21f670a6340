"""Every clip gives the frames that ffmpeg shows, at the times that ffprobe prints; spans joined are the whole."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from kinodex.pipeline.decoding.open import choose_decoder, open_video
from kinodex.pipeline.decoding.readers import Span, SpanDamaged, VideoReader
from kinodex.pipeline.decoding.spans import SHORTEST_SPAN_S, SPANS_A_SHARER, span_count, split_video
from tests.support.ffmpeg import MADE, needs_ffmpeg


@pytest.mark.slow
def test_the_frame_of_an_instant_is_exact(media: Path) -> None:
    """Against every frame decoded by itself: bit for bit the last one whose time is not after the instant."""
    import av

    for name in ("awkward/pyscenedetect__counter.mp4", "awkward/mediabunny__frames.webm",
                 "awkward/pixeltable__test_13_frames.mp4", "clips/torchcodec__dog_eating_854132.mp4"):  # fmt: skip
        with av.open(media / name) as container:
            everything = [
                (Fraction(frame.time).limit_denominator(10**6), frame.to_ndarray())
                for frame in container.decode(video=0)
            ]
        for fps in (0.001, 0.5, 7, 29.97):
            with open_video(media / name) as video:
                ours = {sample.number: (sample.time_s, sample.frame.to_ndarray()) for sample in video.samples(fps)}
                end = Fraction(video.end_s).limit_denominator(10**6)
            number, row = 0, None
            while (instant := everything[0][0] + number / Fraction(str(fps))) < end:
                time, pixels = [pair for pair in everything if pair[0] <= instant][-1]
                row = ours.get(number, row)
                assert row is not None and row[0] == pytest.approx(float(time), abs=1e-9), (name, fps, number)
                assert np.array_equal(row[1], pixels), (name, fps, number)
                number += 1
            assert max(ours) < number and len({time_s for time_s, _ in ours.values()}) == len(ours), (name, fps)
    with open_video(media / "awkward" / "pyscenedetect__counter.mp4") as video:
        assert [round(sample.time_s * 10) for sample in video.samples(1000)] == list(range(30)), "all frames"


def test_unknown_decoders_are_refused_and_auto_is_settled_by_what_was_measured(media: Path) -> None:
    path = media / "clips" / "moviepy__chaplin.mp4"
    with (
        pytest.raises(ValueError, match="'opencv' is unknown; choose one of auto, pyav"),
        open_video(path, decoder="opencv"),
    ):
        pass
    with open_video(path, decoder="auto") as video:
        assert next(sample.number for sample in video.samples(1)) == 0
        assert video.decoder == choose_decoder("auto") == "pyav"
        assert video.fell_back is None


Shown = list[tuple[int, float, int]]


def fingerprints(video: VideoReader, fps: float, span: Span | None = None) -> Shown:
    """Number, time and fingerprint of each sample."""
    samples = [(each.number, each.time_s, each.frame.to_ndarray()) for each in video.samples(fps, span)]
    return [(number, time_s, zlib.crc32(np.ascontiguousarray(pixels).data)) for number, time_s, pixels in samples]


def assert_joined_spans_are_the_whole(path: Path, fps: float, span_s: float) -> tuple[Span, ...]:
    spans = split_video(path, path.name, fps, span_s)
    with open_video(path) as video:
        whole = fingerprints(video, fps)
        whole_end_s = video.end_s
    joined: Shown = []
    for span in spans:
        with open_video(path) as video:
            part = fingerprints(video, fps, span)
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


@pytest.mark.slow
@needs_ffmpeg
@pytest.mark.parametrize("kind", MADE)
def test_neither_a_plan_nor_a_span_changes_a_bit(made: Callable[[str], Path], kind: str) -> None:
    """Frames that are not shown are skipped; spans are read one by one."""
    path = made(kind)
    with open_video(path) as video:
        every = {time_s: print_ for _, time_s, print_ in fingerprints(video, 1000)}
    for fps in (0.2, 6):
        with open_video(path) as video:
            some = {time_s: print_ for _, time_s, print_ in fingerprints(video, fps)}
        assert len(some) >= 9.9 * fps
        assert some == {time_s: every[time_s] for time_s in some}, fps
    if kind != "mpeg2.mpg":  # most of its packets carry no time
        assert 3 <= len(assert_joined_spans_are_the_whole(path, 2, span_s=2)) <= 6


@pytest.mark.slow
@needs_ffmpeg
def test_spans_that_cannot_be_read_alone_say_so(media: Path, made: Callable[[str], Path], tmp_path: Path) -> None:
    path = tmp_path / "damaged.mp4"
    path.write_bytes(made("h264.mp4").read_bytes())
    spans = split_video(path, path.name, 30, 2)
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(bytes(4000))
    outcomes = []
    for span in spans:
        with open_video(path) as video:
            try:
                outcomes.append(len(fingerprints(video, 30, span)))
            except SpanDamaged as damage:
                assert path.name in str(damage)
                outcomes.append(0)
    assert outcomes.count(0) in (1, 2) and outcomes[0] > 0 and outcomes[-1] > 0
    refreshed = made("refresh.mkv")  # its key frames are none
    spans = split_video(refreshed, refreshed.name, 1, 2)
    with open_video(refreshed) as video, pytest.raises(SpanDamaged):
        fingerprints(video, 1, spans[1])
    spans = split_video(media / "clips" / "moviepy__big_buck_bunny_0_30.webm", "bunny", 1, 6)
    with open_video(media / "clips" / "simpl__gbike_ride_31s.webm") as video, pytest.raises(SpanDamaged):
        fingerprints(video, 1, spans[2])


@pytest.mark.slow
def test_joined_spans_of_real_files_are_the_whole(media: Path) -> None:
    for name in ("clips/moviepy__clip1024.flv", "clips/mediabunny__cursed-vfr.mp4",
                 "awkward/torchcodec__var_fps_video.mp4", "clips/torchcodec__nasa_13013.mp4"):  # fmt: skip
        assert len(assert_joined_spans_are_the_whole(media / name, 1, span_s=3)) > 1


def test_a_video_is_cut_by_its_length_and_by_those_who_share_it(media: Path) -> None:
    path = media / "clips" / "moviepy__sintel_trailer_52s.mp4"
    for span_s, sharers, count in ((50, 1, 0), (20, 1, 2), (300, 1, 0), (300, 2, 2), (300, 50, 52 // SHORTEST_SPAN_S)):
        spans = split_video(path, path.name, 1, span_s=span_s, sharers=sharers)
        assert len(spans) == count, (span_s, sharers)
        if count == 2:
            assert [span.first_number for span in spans] == [0, spans[0].until_number]
    for name in ("mediabunny__hevc-aac.avi", "simpl__track_audiosprites_video.webm"):
        assert split_video(media / "awkward" / name, name, 1, span_s=0.2) == (), "its times mislead"


def test_each_sharer_gets_as_many_spans_unless_they_become_too_short() -> None:
    assert span_count(300.0, 1) == 1
    assert span_count(300.0, 2) == 2 * SPANS_A_SHARER
    assert span_count(300.0, 8) == 16  # 18.75 s each; three for each would be too short
    assert span_count(300.0, 1000) == 300 // int(SHORTEST_SPAN_S)
    assert span_count(10.0, 8) == 1
