"""Frame rates of edits: whose they are, those of time code, and the numbers that time codes stand for."""

from __future__ import annotations

import pytest
from opentimelineio.opentime import RationalTime, to_timecode

from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.frame_rate import FrameRate, frame_rate
from tests.support.libraries.moments import video

NTSC_30 = 30000 / 1001


def timecode(rate: FrameRate, frame: int) -> str:
    return str(to_timecode(RationalTime(frame, rate.counted_fps), rate.counted_fps, rate.drop_frame))


def test_the_rate_is_that_of_the_videos() -> None:
    assert frame_rate([video(fps=24.0)], None, None) == FrameRate(24.0)
    assert frame_rate([video(fps=29.97), video(fps=29.9701)], None, None) == FrameRate(NTSC_30, drop_frame=True)
    assert frame_rate([video(fps=29.97)], None, drop_frame=False) == FrameRate(NTSC_30)
    assert frame_rate([video(fps=23.976)], None, None) == FrameRate(24000 / 1001)
    assert frame_rate([video(fps=None)], None, None) == FrameRate(25.0)
    assert frame_rate([video(fps=25.0), video(fps=50.0)], 50.0, None) == FrameRate(50.0)


def test_rates_that_cannot_be_are_refused() -> None:
    for rates, fps, drop, says in (
        ((25.0, 30.0), None, None, r"several frame rates \(25, 30\); give the one of the edit with --fps"),
        ((25.0,), None, True, "got --drop-frame with 25 frames"),
        ((30.0,), None, True, "got --drop-frame with 30 frames"),
        ((25.0,), 0.0, None, "got 0 frames a second"),
        ((25.0,), float("nan"), None, "got nan frames a second"),
    ):
        with pytest.raises(UsageError, match=says):
            frame_rate([video(fps=each) for each in rates], fps, drop)


def test_a_rate_that_no_timecode_has_is_counted_at_a_standard_one() -> None:
    for fps, counted, after_an_hour in (
        (12.5, 25.0, "01:00:00:00"),
        (7.5, 30.0, "01:00:00:00"),
        (15.0, 30.0, "01:00:00:00"),
        (29.53, NTSC_30, "01:00:00;00"),
        (28.05, NTSC_30, "01:00:00;00"),
        (16.05, 24000 / 1001, "00:59:56:10"),
    ):
        rate = frame_rate([video(fps=fps)], None, None, standard=True)
        assert (rate.fps, rate.in_place_of) == (counted, fps)
        assert timecode(rate, rate.frame(3600.0)) == after_an_hour


@pytest.mark.parametrize("rate", [FrameRate(25.0), FrameRate(NTSC_30), FrameRate(NTSC_30, drop_frame=True)])
def test_a_start_time_code_is_read_as_it_is_written(rate: FrameRate) -> None:
    for frame in (0, 1799, 1800, 17_982, 107_892, 1_079_999):
        assert rate.number(timecode(rate, frame)) == frame
    assert rate.number("no timecode") == 0
    assert FrameRate(30.0).number("10:00:00:0") == 10 * 3600 * 30  # as FFmpeg writes it for ten frames a second
