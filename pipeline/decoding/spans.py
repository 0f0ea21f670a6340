"""Split a long video into spans that different processes can decode, each by itself.

A span begins with a key frame at which a decoder may start with empty buffers (see `pyav_reader`) and ends where the
next one begins. What is shown before a key frame but sent after it belongs to the span before, which reads that far.
The samples of all spans together are those of one pass over the whole video, to the last bit.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kinodex.pipeline.decoding.packet_plan import Packets, PlanViolated, first_number
from kinodex.pipeline.decoding.pyav_reader import PyavReader
from kinodex.pipeline.decoding.readers import Span

SHORTEST_SPAN_S = 15.0
"""Spans for several workers are no shorter. Opening the file and seeking cost 0.05 s, decoding so much about one."""

SPANS_A_SHARER = 3


def split_video(path: Path, name: str, fps: float, span_s: float, sharers: int = 1) -> tuple[Span, ...]:
    """Split a video into spans of about `span_s` seconds for sampling at `fps`, or into more for `sharers` workers.

    None where it is short or has to be read whole. Decodes one frame and demuxes the rest. Raises as `open_video`.
    """
    video = PyavReader(path, name)
    try:
        packets = video.packets()
    except PlanViolated:
        return ()
    start = video.first_pts
    duration_s = float((int(packets.pts.max()) - start) * video.base)
    starts = _span_starts(packets, start, round(span_s / video.base), span_count(duration_s, sharers))
    numbers = [first_number(pts, start, Fraction(fps).limit_denominator(1_000_000) * video.base) for pts in starts]
    spans = zip(starts, [*starts[1:], None], numbers, [*numbers[1:], None], strict=True)
    return tuple(Span(*span) for span in spans) if len(starts) > 1 else ()


def span_count(duration_s: float, sharers: int) -> int:
    """Choose into how many spans to split a video at least, several for each of `sharers` to even them out."""
    if sharers < 2:
        return 1
    most = min(SPANS_A_SHARER * sharers, int(duration_s / SHORTEST_SPAN_S))
    return max(1, most - most % sharers if most > sharers else most)


def _span_starts(packets: Packets, start: int, length: int, count: int) -> list[int]:
    """Choose times at which spans begin, the first of them `start`, about `length` apart, or less for `count`."""
    earliest_after = np.minimum.accumulate(packets.pts[::-1])[::-1]
    end = int(packets.pts.max())
    starts, step = [start], min(length, (end - start) // count)
    for index in packets.restart_points().tolist():
        pts = int(packets.pts[index])
        if starts[-1] + step <= pts <= end - step // 2 and _leading_come_first(packets, earliest_after, index):
            starts.append(pts)
            step = min(length, (end - pts) // max(count - len(starts) + 1, 1))
    return starts


def _leading_come_first(packets: Packets, earliest_after: NDArray[np.int64], index: int) -> bool:
    """Check that all pictures shown before this key frame but sent after it come straight after it."""
    after = index + 1
    while after < len(packets) and packets.pts[after] < packets.pts[index]:
        after += 1
    return after == len(packets) or bool(earliest_after[after] > packets.pts[index])
