"""A video read by a decoder that takes frames by number, checked against the packets.

The packets say which frames are needed and when they are shown, as for PyAV, so times are exact and the same with every
decoder. If a decoder counts frames otherwise, returns one of another time or size, or fails, PyAV reads the rest, from
the first sample that is still missing.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kinodex.pipeline.decoding.pyav_reader import PlanViolated, PyavReader, plan_samples
from kinodex.pipeline.decoding.stream import FrameSource, PickError, Span, TimedFrame, VideoMetadata
from kinodex.pipeline.playlists import PLAYLIST_DEMUXERS

if TYPE_CHECKING:
    import torch
    from torchcodec.decoders import VideoDecoder


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
