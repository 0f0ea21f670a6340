"""Open one video for reading: the frame that is shown at each sample instant, with its exact time.

`stream` beside this file defines a frame's time. PyAV is the reference: it reads everything, exactly, whole or in
spans. The other decoders are checked against it, and it replaces them where they differ or fail: see `others`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kinodex.pipeline.decoding.others import IndexedReader
from kinodex.pipeline.decoding.pyav_reader import Packets, PlanViolated, PyavReader, first_number
from kinodex.pipeline.decoding.stream import Span, VideoMetadata, VideoReader

DECODERS = ("pyav", "decord", "torchcodec", "nvdec")


@contextmanager
def open_video(
    path: Path, name: str | None = None, *, decoder: str = "pyav", playlist: bool = False
) -> Iterator[VideoReader]:
    """Open `path` by one of `DECODERS`, or "auto", for one pass over its frames; messages call it `name`.

    A `playlist` is allowed only if asked for; its members are to be checked before (`playlist_members`). Raises
    ValueError for an unknown decoder, VideoError, SourceMissing, SourceForbidden or PlaylistRefused.
    """
    chosen = choose_decoder(decoder)
    exact = PyavReader(path, name or path.name, playlist)
    video: VideoReader = exact if chosen == "pyav" else IndexedReader(exact, chosen)
    try:
        yield video
    finally:
        video.close()


def probe(path: Path, name: str | None = None) -> VideoMetadata:
    with open_video(path, name) as video:
        return video.metadata


def choose_decoder(decoder: str) -> str:
    """Return the decoder itself, or for "auto" the cheapest one. Raises ValueError if there is no such decoder.

    The cheapest is PyAV with its packet plan wherever it was measured (docs/decoders.md); codec and rate do not decide.
    NVDEC has not been measured: it is used where it is requested by name.
    """
    if decoder not in (*DECODERS, "auto"):
        raise ValueError(f"decoder {decoder!r} is unknown; choose one of auto, {', '.join(DECODERS)}")
    return "pyav" if decoder == "auto" else decoder


# Split a long video into spans that different processes can decode, each by itself.
#
# A span begins with a key frame at which a decoder may start with empty buffers (see `pyav_reader`) and ends where the
# next one begins. What is shown before a key frame but sent after it belongs to the span before, which reads that far.
# The samples of all spans together are those of one pass over the whole video, to the last bit.

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
