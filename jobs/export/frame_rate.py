"""Frame rates of an edit, and the numbers of frames that time codes stand for (SMPTE, ST 12-1)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from kinodex.index.rows import VideoRow
from kinodex.jobs.errors import UsageError

NTSC = (24, 30, 48, 60)
"""Nominal rates whose true rate is often 1000/1001 of it."""
TIMECODE = re.compile(r"(\d{2}):(\d{2}):(\d{2})[:;.](\d{1,3})")
USUAL_FPS = 25.0
MOST_FPS = 120
STANDARD = (24000 / 1001, 24.0, 25.0, 30000 / 1001, 30.0, 48000 / 1001, 48.0, 50.0, 60000 / 1001, 60.0)
"""Rates of SMPTE's timecode, all that readers of edit decision lists know."""
SAME = 3e-4
"""Frame rates that differ by less, as a part, are one: files give 29.97 in several ways."""


@dataclass(frozen=True, slots=True)
class FrameRate:
    """A frame rate, and how its frames are counted: drop-frame leaves numbers out so that clocks stay true."""

    fps: float
    drop_frame: bool = False
    in_place_of: float | None = None
    """The rate of the videos, where that is none that timecode can count."""

    @property
    def nominal(self) -> int:
        """Frames that a second of timecode counts."""
        return max(round(self.fps), 1)

    @property
    def counted_fps(self) -> float:
        """The rate by which OpenTimelineIO counts time codes as this one does: it drops frames at 29.97 and 59.94."""
        return self.fps if self.drop_frame else float(self.nominal)

    def frame(self, time_s: float) -> int:
        """Return the number of the frame at a time, from 0."""
        return max(round(time_s * self.fps), 0)

    def number(self, timecode: str) -> int:
        """Return the number of the frame that a timecode stands for; 0 for what is no timecode."""
        found = TIMECODE.fullmatch(timecode.strip())
        if found is None:
            return 0
        hours, minutes, seconds, frames = (int(part) for part in found.groups())
        all_minutes = 60 * hours + minutes
        dropped = (self.nominal // 15) * (all_minutes - all_minutes // 10) if self.drop_frame else 0
        return (60 * all_minutes + seconds) * self.nominal + min(frames, self.nominal - 1) - dropped


def frame_rate(
    videos: Iterable[VideoRow], fps: float | None, drop_frame: bool | None, standard: bool = False
) -> FrameRate:
    """Choose the rate of an edit: the given one, else that of all its videos (25 where they tell none).

    A `standard` one is the least of timecode's that is a multiple of it, else the nearest. Drop-frame is possible for
    29.97 and 59.94 alone, and usual there. Raises UsageError for videos of several rates and for a rate that is none.
    """
    claimed = _common_fps(videos) if fps is None else fps
    if not (math.isfinite(claimed) and 1 <= claimed <= MOST_FPS):
        raise UsageError(f"got {claimed:g} frames a second; give --fps from 1 to {MOST_FPS}")
    ntsc = [each * 1000 / 1001 for each in NTSC if abs(claimed * 1001 / (each * 1000) - 1) < SAME]
    rate = ntsc[0] if ntsc else claimed
    if standard and rate not in STANDARD:
        multiples = [each for each in STANDARD if abs(each / rate / max(round(each / rate), 1) - 1) < SAME]
        rate = next(iter(multiples), min(STANDARD, key=lambda each: abs(each - rate)))
        ntsc = [rate] if rate != round(rate) else []
    can_drop = bool(ntsc) and round(rate) in (30, 60)
    if drop_frame and not can_drop:
        raise UsageError(f"got --drop-frame with {rate:g} frames a second; it is for 29.97 and 59.94")
    in_place_of = claimed if abs(claimed / rate - 1) >= SAME else None
    return FrameRate(rate, can_drop if drop_frame is None else drop_frame, in_place_of)


def _common_fps(videos: Iterable[VideoRow]) -> float:
    rates = sorted({video.fps for video in videos if video.fps})
    if rates and rates[-1] / rates[0] - 1 > SAME:
        shown = ", ".join(f"{rate:g}" for rate in rates[:5])
        raise UsageError(f"the videos have several frame rates ({shown}); give the one of the edit with --fps")
    return rates[0] if rates else USUAL_FPS
