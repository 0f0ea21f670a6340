"""Index of the frames to sample, by place in the order of presentation, for decoders that take frames by number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from kinodex.pipeline.decoding.packet_plan import plan_samples
from kinodex.pipeline.decoding.pyav_reader import PyavReader
from kinodex.pipeline.decoding.readers import PickError, Span
from kinodex.pipeline.decoding.stream import VideoMetadata
from kinodex.pipeline.playlists import PLAYLIST_DEMUXERS

BATCH_BYTES = 64_000_000
BATCH_FRAMES = 16


@dataclass(frozen=True, slots=True)
class FrameIndex:
    """Samples of a video or a span of it, lists `[n]`: place among all frames that are shown, number, exact time.

    `start_s` is the time of the video's first frame, `end_s` its end, `count` the number of its frames,
    `min_distance_s` the least distance of two of them, `size_px` their width and height; `has_open_groups` as in
    `kinodex.pipeline.decoding.pyav_reader`.
    """

    indices: list[int]
    numbers: list[int]
    times_s: list[float]
    start_s: float
    count: int
    min_distance_s: float
    size_px: tuple[int, int]
    end_s: float
    has_open_groups: bool

    def batches(self) -> Iterator[FrameIndex]:
        width_px, height_px = self.size_px
        size = max(1, min(BATCH_FRAMES, BATCH_BYTES // (width_px * height_px * 3)))
        for at in range(0, len(self.indices), size):
            part = slice(at, at + size)
            yield replace(self, indices=self.indices[part], numbers=self.numbers[part], times_s=self.times_s[part])

    def check_count(self, count: int) -> None:
        if count != self.count:
            raise PickError(f"{count} frames where the packets hold {self.count}")

    def check_frames(self, since_start_s: NDArray[np.float64], width_px: int, height_px: int) -> None:
        """Raise PickError if decoded frames have other times (`[n]`, from the first frame) or sizes."""
        off_s = np.abs(since_start_s - (np.asarray(self.times_s) - self.start_s))
        if not (off_s < self.min_distance_s / 2).all():
            raise PickError(f"frames at other times, by up to {off_s.max():.3f} s")
        if (width_px, height_px) != self.size_px:
            raise PickError(f"pictures of {width_px}x{height_px} px, not {self.size_px[0]}x{self.size_px[1]}")


def index_frames(exact: PyavReader, fps: float, span: Span | None) -> FrameIndex:
    """Index the samples of a video, or of a span of it, from its packets alone; raises PlanViolated or PickError."""
    packets, rate = exact.packets(), Fraction(fps).limit_denominator(1_000_000)
    first, until = (span.first_pts, span.until_pts) if span else (exact.first_pts, None)
    plan = plan_samples(packets, exact.first_pts, rate * exact.base, first, until)
    shown = packets.shown()
    if shown[0] != exact.first_pts:
        raise PickError("it does not begin with the earliest of its packets")
    return FrameIndex(
        indices=np.searchsorted(shown, list(plan.numbers)).tolist(),
        numbers=list(plan.numbers.values()),
        times_s=[float(pts * exact.base) for pts in plan.numbers],
        start_s=exact.start_s,
        count=len(shown),
        min_distance_s=float(np.diff(shown).min() * exact.base),
        size_px=exact.size_px,
        end_s=float(packets.end * exact.base),
        has_open_groups=packets.has_open_groups(),
    )


def reason_unfit(decoder: str, metadata: VideoMetadata) -> str | None:
    """Give the reason why a decoder other than PyAV must not read such a stream, or would show it unlike a player."""
    if metadata.container in PLAYLIST_DEMUXERS:
        return "a playlist: it may name other files to this decoder than to PyAV"
    if decoder == "decord" and metadata.container == "mpegts":
        return "it may hang or take gigabytes on a transport stream"
    if metadata.interlaced:
        return "interlaced: its fields would be woven into one picture"
    if metadata.hdr:
        return "of high dynamic range: its pictures would not be tone-mapped"
    if metadata.rotation_deg and metadata.sample_aspect_ratio != 1:
        return "rotated, with pixels that are not square"
    pix_fmt = metadata.pix_fmt
    if "yuva" in pix_fmt or pix_fmt.strip("0123456789bel") in ("rgba", "argb", "bgra", "abgr", "gbrap"):
        return "transparent: what lies behind the picture would show"
    return None
