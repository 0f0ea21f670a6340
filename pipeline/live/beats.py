"""The run of a source that grows: samples of its frames as they come.

Times count from the first frame of a run, and samples are those of a file of the same frames. A break (a new
connection, segments that are gone, a clock that was reset) begins another run; nothing is made up for what is missing.
A file and a playlist can be gone on with where an earlier process stopped, an RTSP address cannot.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kinodex.pipeline.decoding.frame_times import duration_s, monotonic_frames, time_base
from kinodex.pipeline.decoding.pixel_aspects import PixelAspects
from kinodex.pipeline.decoding.stream import VideoMetadata, choose_stream, read_metadata
from kinodex.pipeline.errors import NothingDecodes
from kinodex.pipeline.images import rgb_scaler
from kinodex.pipeline.live.growing_file import Growing, await_bytes, last_shown
from kinodex.pipeline.live.piece import Piece, decoded, demux_live
from kinodex.pipeline.live.playlist import published_segments
from kinodex.pipeline.sample import Chunk, SampledFrame, SamplingSettings, sampled_frame

if TYPE_CHECKING:
    from av import VideoFrame
    from av.container import InputContainer
    from av.video.stream import VideoStream

BEAT_S = 0.5
"""Frames wait no longer for others before they are handed on."""
BREAK_S = 2.0
"""A step between two segments of a playlist, beyond the length of a frame, that is a break."""
RTSP_OPTIONS = {
    "rtsp_transport": "tcp",
    "protocol_whitelist": "rtsp,rtsps,rtp,tcp,tls",
    "analyzeduration": "1000000",
}
"""TCP: what is lost on the way is sent again."""
SAME_S = 1e-4


@dataclass(frozen=True, slots=True)
class Resume:
    """The place where an earlier process stopped in a run: all before `until_s` was read.

    `zero_s` is the presentation time at which the run begins, `sequence` the playlist's segment to begin with.
    """

    zero_s: float
    until_s: float
    sequence: int


@dataclass(frozen=True, slots=True)
class Beat:
    """News of a run since its last beat: its samples, all of which before `time_s` were given now.

    Times and numbers count from the run's first frame, which has the presentation time `zero_s` and was shown at
    `began_at`, in seconds since the epoch, as far as this machine can know. `metadata` is there where a run begins, and
    `is_break` true if it does not go on from where an earlier process stopped.
    """

    frames: list[SampledFrame]
    time_s: float
    zero_s: float
    began_at: float
    sequence: int
    metadata: VideoMetadata | None
    is_break: bool
    decode_errors: int


def is_live_address(address: str) -> bool:
    """Return True for an address that grows whatever lies there."""
    return urlsplit(address).scheme.lower() in ("rtsp", "rtsps")


def live_beats(chunk: Chunk, settings: SamplingSettings, resume: Resume | None) -> Generator[Beat, None, None]:
    """Yield the beats of a source until it ends; its address is the chunk's path, messages call it by the source's URI.

    A file ends when it has not grown for the source's time-out, a playlist when it says so, RTSP when the server says
    so. Raises SourceUnreachable where nothing comes for that time-out, SourceForbidden, SourceMissing, PlaylistRefused
    or a VideoError.
    """
    run: _Run | None = None
    name = chunk.video.source.uri
    with closing(_pieces(chunk, resume)) as pieces:
        for piece in pieces:
            with demux_live(piece, chunk) as container:
                stream = choose_stream(container, name)
                stream.codec_context.thread_count = 1
                aspects = PixelAspects(stream)
                frames = monotonic_frames(decoded(container, stream, piece, name, aspects), stream)
                for at, (shown_s, frame) in enumerate(frames):
                    if run is None or (at == 0 and (piece.is_break or run.is_broken(shown_s))):
                        if run is not None:
                            yield from run.end()
                        run = _Run(chunk, settings, container, stream, piece, shown_s, frame, resume)
                        resume = None
                    yield from run.take(shown_s, frame, piece, aspects.of(frame))
            if run is not None:
                yield from run.pause()
    if run is None:
        raise NothingDecodes(f"{name}: not one frame decodes; check its codec, or wait for a picture")
    yield from run.end()


class _Run:
    """Frames without a break, sampled at the instants `k / fps` after the first."""

    def __init__(
        self,
        chunk: Chunk,
        settings: SamplingSettings,
        container: InputContainer,
        stream: VideoStream,
        piece: Piece,
        first_s: Fraction,
        frame: VideoFrame,
        resume: Resume | None,
    ) -> None:
        goes_on = resume is not None and not piece.is_break
        self._base, self._average_rate = time_base(stream), stream.average_rate
        self._zero = round(resume.zero_s / self._base) * self._base if resume and goes_on else first_s
        self._done = Fraction(resume.until_s - SAME_S) if resume and goes_on else Fraction(-1)
        self._rate = Fraction(settings.fps).limit_denominator(1_000_000)
        self._settings, self._piece = settings, piece
        self._held: tuple[Fraction, VideoFrame, Fraction | None] | None = None
        self._began_at, self._last_began_at = math.inf, 0.0
        self._metadata: VideoMetadata | None = read_metadata(container, stream, frame)
        aspect = Fraction(self._metadata.sample_aspect_ratio).limit_denominator(100_000)
        self._to_rgb = rgb_scaler(aspect, settings.jpeg_side_px, settings.input.side_px, settings.deinterlace)
        self._waiting: list[SampledFrame] = []
        self._since = time.monotonic()
        self._given_until_s = self._zero + max(self._done, Fraction(0))
        self._errors, self._is_break = 0, not goes_on

    def is_broken(self, first_s: Fraction) -> bool:
        """Return True if a segment that begins at this time does not go on from the last."""
        return self._held is not None and abs(float(first_s - self._until())) > BREAK_S

    def take(
        self, shown_s: Fraction, frame: VideoFrame, piece: Piece, aspect: Fraction | None = None
    ) -> Iterator[Beat]:
        """Take the next frame, until whose time the one before it was shown; `aspect` as a `TimedFrame` has it."""
        self._piece = piece
        self._began_at = min(self._began_at, piece.wall_at(float(shown_s - self._zero)))
        if self._held is not None and shown_s >= self._held[0]:
            self._sample(shown_s)
        self._held = shown_s, frame, aspect
        is_due = time.monotonic() - self._since >= BEAT_S or len(self._waiting) >= self._settings.batch
        if is_due and shown_s - self._zero > self._done:
            yield self._beat(shown_s)

    def pause(self) -> Iterator[Beat]:
        """Give out what waits, and how far the run is: the next piece may be seconds away, or never come."""
        if self._held is not None and (self._waiting or self._held[0] > self._given_until_s):
            yield self._beat(self._held[0])

    def end(self) -> Iterator[Beat]:
        """Take the end of the last frame."""
        until_s = self._until()
        self._sample(until_s)
        if until_s - self._zero > self._done:
            yield self._beat(until_s)

    def _until(self) -> Fraction:
        shown_s, frame, _ = self._held or (self._zero, None, None)
        return shown_s + duration_s(frame.duration if frame else 0, self._base, self._average_rate)

    def _sample(self, until_s: Fraction) -> None:
        from av import FFmpegError

        shown_s, frame, aspect = self._held or (self._zero, None, None)
        number = math.ceil((shown_s - self._zero) * self._rate)
        if frame is None or number >= (until_s - self._zero) * self._rate or shown_s - self._zero < self._done:
            return
        try:
            rgb = self._to_rgb(frame, aspect)
        except FFmpegError:
            self._errors += 1
            return
        time_s = float(shown_s - self._zero)
        self._waiting.append(sampled_frame(number, time_s, rgb, self._settings, defaultdict(float)))

    def _beat(self, until_s: Fraction) -> Beat:
        is_break = self._is_break and self._metadata is not None
        self._last_began_at = min(self._began_at, time.time()) if self._began_at < math.inf else self._last_began_at
        facts = float(self._zero), self._last_began_at, self._piece.sequence, self._metadata, is_break, self._errors
        beat = Beat(self._waiting, float(until_s - self._zero), *facts)
        self._given_until_s = until_s
        self._waiting, self._metadata, self._errors, self._since = [], None, 0, time.monotonic()
        self._began_at = math.inf
        return beat


def _pieces(chunk: Chunk, resume: Resume | None) -> Generator[Piece, None, None]:
    address, source = chunk.video.path, chunk.video.source
    if is_live_address(address):
        yield Piece(address, is_break=True, options=RTSP_OPTIONS | {"timeout": str(round(source.timeout_s * 1e6))})
    elif urlsplit(address).scheme in ("http", "https"):
        yield from published_segments(address, source.uri, source.timeout_s, resume.sequence if resume else None)
    else:
        path = Path(address)
        await_bytes(path, source.uri, source.timeout_s)
        from_s = -math.inf if resume is None else resume.zero_s + resume.until_s
        with path.open("rb", buffering=0) as file:
            yield Piece(Growing(file, source.timeout_s), from_s=from_s, shown_at=last_shown(path, source.uri))
