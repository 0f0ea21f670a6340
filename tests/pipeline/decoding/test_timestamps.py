"""Times of frames never fall, whatever the timestamps in the file."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from pipeline.decoding.container import choose_stream, open_container
from pipeline.decoding.open import open_video
from pipeline.decoding.timestamps import NOMINAL_FRAME_S, duration_s, monotonic_frames
from tests.support.ffmpeg import ffmpeg, needs_ffmpeg


def times_at(path: Path, fps: float = 1) -> tuple[list[tuple[int, float]], float, int]:
    """(number, time) of each sample, the end, and the errors."""
    with open_video(path) as video:
        found = [(sample.number, sample.time_s) for sample in video.samples(fps)]
        return found, video.end_s, video.decode_errors


def test_times_of_an_avi_without_presentation_times_are_those_of_ffprobe(media: Path) -> None:
    found, _, _ = times_at(media / "awkward" / "mediabunny__hevc-aac.avi", fps=1000)
    assert [time_s for _, time_s in found] == [(2 + i) / 25 for i in range(25)]


@needs_ffmpeg
def test_clocks_that_start_anew_go_on(media: Path, tmp_path: Path) -> None:
    """Two transport streams joined end to end: the second's clock starts below the first's end."""
    part, joined = tmp_path / "part.ts", tmp_path / "joined.ts"
    clip = media / "clips" / "moviepy__chaplin.mp4"
    ffmpeg("-i", clip, "-an", "-t", "6", "-c:v", "libx264", "-bf", "0", "-vf", "scale=160:90", part)
    joined.write_bytes(part.read_bytes() * 2)
    found, end_s, _ = times_at(joined)
    assert len(found) == 12
    assert end_s - found[0][1] == pytest.approx(12, abs=0.2)


@needs_ffmpeg
def test_a_jump_of_years_costs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "years.mkv"
    jump = "setpts='if(lt(N,50),N/25,N/25+100000000)/TB'"
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x64:rate=25:duration=4", "-vf", jump, "-vsync", "0",
           "-c:v", "ffv1", "-enc_time_base", "1/1000", path)  # fmt: skip
    found, end_s, _ = times_at(path)
    assert [number for number, _ in found] == [0, 1, 2, 3]
    assert end_s == pytest.approx(4, abs=0.01)


@pytest.mark.parametrize(
    ("pts", "times_s"),
    [
        ([0, 1, 2, 3], [0, 0.1, 0.2, 0.3]),
        ([0, None, None, 3], [0, 0.1, 0.2, 0.3]),
        ([0, 2, 1, 3], [0, 0.2, 0.3]),  # up to a second earlier: never shown
        ([0, 1, -30, -29], [0, 0.1, 0.2, 0.3]),  # more than a second earlier: the clock was reset
        ([5, 6, 20_000_000, 20_000_001], [0.5, 0.6, 0.7, 0.8]),  # more than a day later, too
        ([None, 4, 4, 5], [0, 0.4, 0.4, 0.5]),
    ],
)
def test_times_by_timestamps(film: Path, pts: list[int | None], times_s: list[float]) -> None:
    import av

    with open_container(film, film.name) as container:
        stream = choose_stream(container, film.name)
        base = Fraction(stream.time_base or 1)
        ticks = round(Fraction(1, 10) / base)
        frames = []
        for stamp in pts:
            frame = av.VideoFrame(16, 16, "gray")
            frame.pts = None if stamp is None else stamp * ticks
            frames.append(frame)
        found = [float(time) for time, _ in monotonic_frames(frames, stream)]
    assert found == pytest.approx(times_s)


def test_a_frame_lasts_as_long_as_it_claims_or_as_the_rate_says() -> None:
    base = Fraction(1, 1000)
    assert duration_s(40, base, Fraction(10)) == Fraction(1, 25)
    assert duration_s(0, base, Fraction(10)) == Fraction(1, 10)
    assert duration_s(10**9, base, Fraction(10)) == Fraction(1, 10)  # more than a day
    assert duration_s(0, base, None) == NOMINAL_FRAME_S
