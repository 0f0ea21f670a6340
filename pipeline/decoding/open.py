"""Open one video for reading: the frame that is shown at each sample instant, with its exact time.

`stream` beside this file defines a frame's time. PyAV is the reference: it reads everything, exactly, whole or in
spans. The other decoders take frames by number and are checked against the packets, which say which frames are needed
and when they are shown: times are exact and the same with every decoder. If one counts frames otherwise, returns one of
another time or size, or fails, PyAV reads the rest, from the first sample that is still missing.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kinodex.pipeline.decoding.pyav_reader import Packets, PlanViolated, PyavReader, first_number, plan_samples
from kinodex.pipeline.decoding.stream import FrameSource, PickError, Span, TimedFrame, VideoMetadata, VideoReader
from kinodex.pipeline.playlists import PLAYLIST_DEMUXERS

if TYPE_CHECKING:
    import torch
    from torchcodec.decoders import VideoDecoder

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


# A video read by a decoder that takes frames by number, checked against the packets.


class IndexedReader:
    """A `VideoReader` by a decoder other than PyAV."""

    def __init__(self, exact: PyavReader, decoder: str) -> None:
        self._exact, self._requested = exact, decoder
        self.metadata, self.start_s, self.end_s = exact.metadata, exact.start_s, exact.end_s
        self.decode_errors = 0
        self.decoder = decoder
        self.fell_back: str | None = None

    def close(self) -> None:
        self._exact.close()

    def samples(self, fps: float, span: Span | None = None) -> Generator[TimedFrame, None, None]:
        self.decoder, self.fell_back = self._requested, None
        last_number = -1
        try:
            for sample in self._indexed_samples(fps, span):
                last_number = sample.number
                yield sample
            return
        except (PickError, PlanViolated) as error:
            self.fell_back = f"{self.decoder}: {error}"
            self.decoder = "pyav"
        for sample in self._exact.samples(fps, span):
            if sample.number > last_number:
                yield sample
        self.end_s = self._exact.end_s
        self.decode_errors += self._exact.decode_errors

    def _indexed_samples(self, fps: float, span: Span | None) -> Iterator[TimedFrame]:
        from av import VideoFrame

        if reason := reason_unfit(self.decoder, self.metadata):
            raise PickError(reason)
        index = index_frames(self._exact, fps, span)
        if self.decoder == "decord" and index.has_open_groups:
            raise PickError("open groups of pictures: it may show another frame than it says")
        path, stream_index = self._exact.path, self.metadata.stream_index
        if self.decoder == "decord":
            count, decode = decord_frames(path)
        else:
            count, decode = torchcodec_frames(path, stream_index, "cuda" if self.decoder == "nvdec" else "cpu")
        index.check_count(count)
        for batch in index.batches():
            times, images = decode(batch.indices)
            batch.check_frames(times, images.shape[2], images.shape[1])
            for number, time_s, image in zip(batch.numbers, batch.times_s, images, strict=True):
                yield TimedFrame(number, time_s, VideoFrame.from_ndarray(image, format="rgb24"))
        self.end_s = index.end_s


# Index of the frames to sample, by place in the order of presentation, for decoders that take frames by number.

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


# decord: as a list of frames for sampling, and as the plain scripts use it, for `kinodex bench ingest`.
#
# It hangs or takes gigabytes on damaged or HEVC transport streams: run it in a process with limits.


def decord_frames(path: Path) -> FrameSource:
    """Open a video by decord, which chooses the stream itself and counts time from the first frame."""
    try:
        import decord
    except (ImportError, OSError) as error:
        raise PickError(f"decord does not load ({error}); pip install decord") from error
    failures = (decord.DECORDError, RuntimeError, IndexError)
    try:
        reader = decord.VideoReader(str(path), ctx=decord.cpu(0), num_threads=1)
    except failures as error:
        raise PickError(f"decord opens nothing ({_first_line(error)})") from error

    def decode(indices: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
        try:
            images = np.asarray(reader.get_batch(indices).asnumpy(), np.uint8)
            return np.asarray(reader.get_frame_timestamp(indices), np.float64)[:, 0], images
        except failures as error:
            raise PickError(f"decord stops ({_first_line(error)})") from error

    return len(reader), decode


# torchcodec as a list of frames: on the CPU, or decoded by NVDEC and copied to the host.
#
# It loads the machine's own FFmpeg libraries. Its index is exact: it reads all packets when it opens a file.

# Raised for files that it cannot read; its own faults look no different.
FAILURES = (RuntimeError, ValueError, IndexError, NotImplementedError)


def open_decoder(path: Path, stream_index: int, device: str) -> VideoDecoder:
    """Open a decoder of one stream onto `device`, frames `[n, 3, height, width]`; raises PickError if it cannot."""
    try:
        from torchcodec import decoders
    except (ImportError, OSError, RuntimeError) as error:
        raise PickError("torchcodec does not load; pip install torchcodec, and FFmpeg's libraries") from error
    if device != "cpu" and hasattr(decoders, "set_nvdec_cache_capacity"):
        decoders.set_nvdec_cache_capacity(0)  # decoders used again after a change of size mis-crop: torchcodec#1704
    try:
        decoder = decoders.VideoDecoder(
            str(path), stream_index=stream_index, device=device, seek_mode="exact", num_ffmpeg_threads=1
        )
    except FAILURES as error:
        raise PickError(f"torchcodec opens nothing ({_first_line(error)})") from error
    # Where NVDEC is missing or does not know the codec, torchcodec would decode on the CPU in silence.
    if device != "cpu" and (fallback := getattr(decoder, "cpu_fallback", None)):
        raise PickError(str(fallback))
    return decoder


def frames_at(decoder: VideoDecoder, indices: Sequence[int]) -> tuple[NDArray[np.float64], torch.Tensor]:
    """Seconds `[n]` after the first frame, RGB `[n, 3, height, width]` uint8 on the device; raises PickError."""
    try:
        batch = decoder.get_frames_at(list(indices))
    except FAILURES as error:
        raise PickError(f"torchcodec stops ({_first_line(error)})") from error
    start_s = decoder.metadata.begin_stream_seconds or 0.0
    return np.asarray(batch.pts_seconds.cpu().numpy(), np.float64) - start_s, batch.data


def torchcodec_frames(path: Path, stream_index: int, device: str) -> FrameSource:
    decoder = open_decoder(path, stream_index, device)

    def decode(indices: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
        times, images = frames_at(decoder, indices)
        return times, np.asarray(images.permute(0, 2, 3, 1).contiguous().cpu().numpy(), np.uint8)

    return len(decoder), decode


def _first_line(error: Exception) -> str:
    """Shorten a message that may go on for pages."""
    return str(error).strip().split("\n", 1)[0][:200]
