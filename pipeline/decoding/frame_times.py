"""Times of frames.

A frame's time is FFmpeg's best-effort timestamp, the one that ffprobe prints: the presentation timestamp, or
the decoding timestamp where the former is missing or wrong more often. FFmpeg's decoders give frames in the
order of presentation, so that order is believed over the timestamps:

- no timestamp: the previous time plus the frame duration;
- the same time as the previous frame: it takes that frame's place;
- up to a second earlier than the previous frame: it was due in the past, is never shown, and is left out;
- more than a second earlier, or more than a day later: the clock was reset (a damaged stream; of a joined one
  `clock` beside this file repairs the packets), so time goes on from the previous frame by one frame duration.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from av import VideoFrame
    from av.video.stream import VideoStream

BACK_TO_BELIEVE_S = 1
GAP_TO_BELIEVE_S = 24 * 3600
NOMINAL_FRAME_S = Fraction(1, 25)  # where neither the frame nor the stream says how long a frame lasts


def monotonic_frames(
    frames: Iterable[VideoFrame], stream: VideoStream
) -> Generator[tuple[Fraction, VideoFrame], None, None]:
    """Give each frame, in the order of decoding, its time in seconds; the times never fall."""
    best_effort, shift, base = _BestEffort(), Fraction(0), time_base(stream)
    last: tuple[Fraction, VideoFrame] | None = None
    for frame in frames:
        stamp = best_effort(frame.pts, frame.dts)
        if last is None:
            time = (stamp or 0) * base
        else:
            follow_on = last[0] + duration_s(last[1].duration, base, stream.average_rate)
            time = follow_on if stamp is None else stamp * base + shift
            if not -BACK_TO_BELIEVE_S <= time - last[0] <= GAP_TO_BELIEVE_S:
                shift += follow_on - time
                time = follow_on
            if time < last[0]:
                continue
        last = (time, frame)
        yield last


def time_base(stream: VideoStream) -> Fraction:
    return stream.time_base or Fraction(1, 1_000_000)


def duration_s(ticks: int, base: Fraction, average_rate: Fraction | None) -> Fraction:
    """Return the duration of a frame: `ticks` of the time base as it claims, else by the stream's rate."""
    claimed = ticks * base
    if 0 < claimed <= GAP_TO_BELIEVE_S:
        return claimed
    return 1 / average_rate if average_rate else NOMINAL_FRAME_S


@dataclass(slots=True)
class SentTimes:
    """Presentation times of packets: of the one sent last, and the two latest."""

    last: int | None = None
    latest: int | None = None
    before_latest: int | None = None

    def add(self, pts: int | None) -> None:
        if pts is None:
            return
        self.last = pts
        if self.latest is None or pts > self.latest:
            self.before_latest, self.latest = self.latest, pts
        elif self.before_latest is None or self.before_latest < pts < self.latest:
            self.before_latest = pts


def last_duration(stream: VideoStream, pts: int | None, claimed: int, sent: SentTimes) -> int:
    """Choose how long the last frame is shown, in units of the time base; `pts` is its time, `claimed` what it claims.

    MP4 and QuickTime keep the steps between decoding times (box `stts`, ISO/IEC 14496-12, 8.6.1.2), which FFmpeg gives
    out as durations. A frame that is sent before others and shown after them so has the duration of another frame; it
    is given that of the frame before it.
    """
    is_step = "mp4" in stream.container.format.name.split(",")
    if not is_step or pts in (None, sent.last) or pts != sent.latest or sent.before_latest is None:
        return claimed
    return pts - sent.before_latest


class _BestEffort:
    """FFmpeg's choice of a timestamp for each frame: of pts and dts, the one that ran backwards less often so far."""

    def __init__(self) -> None:
        self.last_pts = self.last_dts = -math.inf
        self.faulty_pts = self.faulty_dts = 0

    def __call__(self, pts: int | None, dts: int | None) -> int | None:
        if dts is not None:
            self.faulty_dts += dts <= self.last_dts
            self.last_dts = dts
        elif pts is not None:
            self.last_dts = pts
        if pts is not None:
            self.faulty_pts += pts <= self.last_pts
            self.last_pts = pts
        elif dts is not None:
            self.last_pts = dts
        use_pts = pts is not None and (self.faulty_pts <= self.faulty_dts or dts is None)
        return pts if use_pts else dts
