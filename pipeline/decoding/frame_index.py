"""The frames wanted of a video, by their place in the order of presentation, for decoders that pick by number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pipeline.decoding.packet_plan import plan_samples
from pipeline.decoding.pyav_reader import PyavReader
from pipeline.decoding.select import PickError
from pipeline.decoding.spans import Span

BATCH_BYTES = 64_000_000
BATCH_FRAMES = 16


@dataclass(frozen=True, slots=True)
class FrameIndex:
    """Samples of a video or a span of it, lists `[n]`: place among all frames that are shown, number, exact time.

    `start_s` is the time of the video's first frame, `end_s` its end, `count` the number of its frames, `apart_s` the
    least distance of two of them, `size_px` their width and height; `has_open_groups` as in `pipeline.decoding.packet_plan`.
    """

    indices: list[int]
    numbers: list[int]
    times_s: list[float]
    start_s: float
    count: int
    apart_s: float
    size_px: tuple[int, int]
    end_s: float
    has_open_groups: bool

    def batches(self) -> Iterator[FrameIndex]:
        """Runs of few enough samples to hold their pictures in memory."""
        width_px, height_px = self.size_px
        size = max(1, min(BATCH_FRAMES, BATCH_BYTES // (width_px * height_px * 3)))
        for at in range(0, len(self.indices), size):
            part = slice(at, at + size)
            yield replace(self, indices=self.indices[part], numbers=self.numbers[part], times_s=self.times_s[part])

    def expect_count(self, count: int) -> None:
        """Raises PickError if a decoder knows of another number of frames."""
        if count != self.count:
            raise PickError(f"{count} frames where the packets hold {self.count}")

    def expect(self, since_start_s: NDArray[np.float64], width_px: int, height_px: int) -> None:
        """Raises PickError if what a decoder picked has other times (`[n]`, from the first frame) or sizes."""
        off_s = np.abs(since_start_s - (np.asarray(self.times_s) - self.start_s))
        if not (off_s < self.apart_s / 2).all():
            raise PickError(f"frames at other times, by up to {off_s.max():.3f} s")
        if (width_px, height_px) != self.size_px:
            raise PickError(f"pictures of {width_px}x{height_px} px, not {self.size_px[0]}x{self.size_px[1]}")


def index_frames(exact: PyavReader, fps: float, span: Span | None) -> FrameIndex:
    """The samples of a video, or of a span of it, from its packets alone.

    Raises:
        SurpriseError: no plan can be made of them.
    """
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
        apart_s=float(np.diff(shown).min() * exact.base),
        size_px=exact.size_px,
        end_s=float(packets.end * exact.base),
        has_open_groups=packets.has_open_groups(),
    )
