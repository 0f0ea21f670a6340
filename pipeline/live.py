"""A source that grows, read as it comes: a file that is being written, an HLS playlist, or an RTSP address.

What is read is a run of frames: times count from its first one, and samples are those of a file of the same frames. A
break (a new connection, segments that are gone, a clock that was reset) begins another run; nothing is made up for what
is missing. A file and a playlist can be gone on with where an earlier process stopped, an RTSP address cannot.

A playlist is read by this module, not by FFmpeg: its segments have to lie on the playlist's own server, without keys.
"""

from __future__ import annotations

import io
import math
import time
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from kinodex.pipeline.decoding.stream import (
    PixelAspects,
    VideoMetadata,
    choose_stream,
    demuxed,
    duration_s,
    monotonic_frames,
    read_metadata,
    time_base,
)
from kinodex.pipeline.errors import (
    NothingDecodes,
    PlaylistRefused,
    SourceForbidden,
    SourceMissing,
    SourceUnreachable,
)
from kinodex.pipeline.images import rgb_scaler
from kinodex.pipeline.playlists import HLS_MAP, HLS_REFUSED, kind_by_head
from kinodex.pipeline.sample import Chunk, SampledFrame, SamplingSettings, check_drawn, sampled_frame

if TYPE_CHECKING:
    import httpx2
    from av import VideoFrame
    from av.container import InputContainer
    from av.video.stream import VideoStream

BEAT_S = 0.5
"""Frames wait no longer for others before they are handed on."""
BREAK_S = 2.0
"""A step between two segments of a playlist, beyond the length of a frame, that is a break."""
LOOK_S = 0.2
"""Seconds between two looks at a file that has not grown."""
MOST_PLAYLIST_BYTES, MOST_SEGMENT_BYTES = 2_000_000, 200_000_000
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
    """True for an address that grows whatever lies there."""
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
                frames = monotonic_frames(_decoded(container, stream, piece, name, aspects), stream)
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
        piece: _Piece,
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
        check_drawn(self._metadata, chunk, settings)
        aspect = Fraction(self._metadata.sample_aspect_ratio).limit_denominator(100_000)
        self._to_rgb = rgb_scaler(aspect, settings.jpeg_side_px, settings.input.side_px, settings.deinterlace)
        self._waiting: list[SampledFrame] = []
        self._since = time.monotonic()
        self._given_until_s = self._zero + max(self._done, Fraction(0))
        self._errors, self._is_break = 0, not goes_on

    def is_broken(self, first_s: Fraction) -> bool:
        """True if a segment that begins at this time does not go on from the last."""
        return self._held is not None and abs(float(first_s - self._until())) > BREAK_S

    def take(
        self, shown_s: Fraction, frame: VideoFrame, piece: _Piece, aspect: Fraction | None = None
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


# Pieces of a source: bytes that one demuxer reads.


@dataclass(slots=True)
class _Piece:
    """A piece: a file object, or an address. `from_s` is the time before which frames need not be decoded."""

    file: Any
    sequence: int = 0
    is_break: bool = False
    """It does not go on from the piece before, or from where an earlier process stopped."""
    from_s: float = -math.inf
    shown_at: tuple[float, float] | None = None
    """A time in the run and when it was shown, seconds since the epoch; None: what arrives is shown now."""
    options: dict[str, str] = field(default_factory=dict)

    def wall_at(self, time_s: float) -> float:
        """When the run began, by a frame of this time that has just arrived."""
        return time.time() - time_s if self.shown_at is None else self.shown_at[1] - self.shown_at[0]


def _pieces(chunk: Chunk, resume: Resume | None) -> Generator[_Piece, None, None]:
    address, source = chunk.video.path, chunk.video.source
    if is_live_address(address):
        yield _Piece(address, is_break=True, options=RTSP_OPTIONS | {"timeout": str(round(source.timeout_s * 1e6))})
    elif urlsplit(address).scheme in ("http", "https"):
        yield from _segments(address, source.uri, source.timeout_s, resume)
    else:
        path = Path(address)
        _await_bytes(path, source.uri, source.timeout_s)
        from_s = -math.inf if resume is None else resume.zero_s + resume.until_s
        with path.open("rb", buffering=0) as file:
            yield _Piece(_Growing(file, source.timeout_s), from_s=from_s, shown_at=_last_shown(path, source.uri))


def demux_live(piece: _Piece, chunk: Chunk) -> InputContainer:
    """Open a piece for demuxing; raises for an address SourceForbidden, SourceMissing or SourceUnreachable."""
    import av

    name, timeout_s = chunk.video.source.uri, chunk.video.source.timeout_s
    if not isinstance(piece.file, str):
        return demuxed(piece.file, name)
    try:
        opened: InputContainer = av.open(
            piece.file, container_options=piece.options, metadata_errors="replace", timeout=timeout_s
        )
    except (av.FFmpegError, OSError) as error:
        raise _network_error(error, name) from None  # its text holds the address with its password
    return opened


def _network_error(error: Exception, name: str) -> Exception:
    import av

    reason = getattr(error, "strerror", None) or type(error).__name__
    if isinstance(error, av.error.HTTPUnauthorizedError | av.error.HTTPForbiddenError):
        return SourceForbidden(f"{name}: the server wants a user and a password; give rtsp://USER:PASSWORD@HOST/PATH")
    if isinstance(error, av.error.HTTPNotFoundError):
        return SourceMissing(f"{name}: the server knows no such stream; check the path of the address")
    if isinstance(error, av.error.ExitError | TimeoutError):
        return SourceUnreachable(f"{name}: nothing came in time; check that it is on, and the way to it")
    return SourceUnreachable(f"{name}: cannot be read ({reason}); check the address, and that it is on")


def _decoded(
    container: InputContainer, stream: VideoStream, piece: _Piece, name: str, aspects: PixelAspects
) -> Generator[VideoFrame, None, None]:
    """Decode a piece; what is needed for no frame from `from_s` on is left out: all before the last key frame."""
    import av

    skipped: list[Any] = []
    try:
        for packet in container.demux(stream):
            if packet.pts is not None and packet.pts * time_base(stream) < piece.from_s:
                skipped = [packet] if packet.is_keyframe else [*skipped, packet]
                continue
            for each in (*skipped, packet):
                with suppress(av.error.InvalidDataError):
                    frames = stream.decode(each)
                    aspects.sent(each)
                    yield from frames
            skipped = []
    except (av.FFmpegError, OSError) as error:
        if isinstance(piece.file, str):
            raise _network_error(error, name) from None
        raise NothingDecodes(f"{name}: reading stops ({getattr(error, 'strerror', error)}); is it damaged?") from error


# A file that is being written.


class _Growing(io.RawIOBase):
    """A file that ends only when it has not grown for `patience_s` seconds."""

    def __init__(self, file: io.RawIOBase, patience_s: float) -> None:
        self._file, self._patience_s = file, patience_s

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        until = time.monotonic() + self._patience_s
        while not (found := self._file.read(size)) and time.monotonic() < until:
            time.sleep(LOOK_S)
        return found or b""


def _await_bytes(path: Path, name: str, patience_s: float) -> None:
    until = time.monotonic() + patience_s
    while not path.is_file() or not path.stat().st_size:
        if time.monotonic() > until:
            raise SourceMissing(f"{name}: no such file, or nothing in it, after {patience_s:g} s; check the path")
        time.sleep(LOOK_S)
    with path.open("rb") as file:
        if kind := kind_by_head(file.read(4096)):
            raise PlaylistRefused(f"{name}: a playlist ({kind}) on this disk; give its address on a web server")


def _last_shown(path: Path, name: str) -> tuple[float, float]:
    """The time, in the run, of the last packet that is there, and when the file was written so far."""
    import av

    written_at = path.stat().st_mtime
    times: list[Fraction] = []
    with path.open("rb") as file, suppress(av.FFmpegError), demuxed(file, name) as container:
        stream = choose_stream(container, name)
        for packet in container.demux(stream):
            if packet.pts is not None:
                times = [min([*times[:1], packet.pts * time_base(stream)]), packet.pts * time_base(stream)]
    return (float(times[-1] - times[0]) if times else 0.0), written_at


# A playlist of segments (RFC 8216) on a web server.


@dataclass(frozen=True, slots=True)
class _Segment:
    sequence: int
    address: str
    initial: str
    duration_s: float
    is_break: bool
    shown_at: float | None


def _segments(address: str, name: str, patience_s: float, resume: Resume | None) -> Generator[_Piece, None, None]:
    """Yield the segments of a playlist as they are published, from the one to go on with, or the first listed."""
    import httpx2

    due = resume.sequence if resume is not None else None
    initials: dict[str, bytes] = {}
    began_at: float | None = None
    new_at = time.monotonic()
    with httpx2.Client(timeout=patience_s, follow_redirects=False) as client:
        while True:
            text = _get(client, address, name, MOST_PLAYLIST_BYTES).decode("utf-8-sig", "replace")
            listed, has_ended, target_s = read_playlist(text, address, name)
            if due is not None and listed and listed[-1].sequence + 1 < due:
                due = None  # the server counts anew
            new = [each for each in listed if due is None or each.sequence >= due]
            for at, each in enumerate(new):
                is_break = each.is_break or each.sequence != due
                if began_at is None or is_break:
                    began_at = each.shown_at or time.time() - sum(rest.duration_s for rest in new[at:])
                try:
                    if each.initial and each.initial not in initials:
                        initials = {each.initial: _get(client, each.initial, name, MOST_SEGMENT_BYTES)}
                    content = _get(client, each.address, name, MOST_SEGMENT_BYTES)
                except SourceMissing:  # it was deleted meanwhile: the next one is a break
                    continue
                file = io.BytesIO(initials.get(each.initial, b"") + content)
                yield _Piece(file, each.sequence, is_break, shown_at=(0.0, began_at))
                due, new_at = each.sequence + 1, time.monotonic()
            if has_ended:
                return
            if time.monotonic() - new_at > max(patience_s, 3 * target_s):
                raise SourceUnreachable(
                    f"{name}: no new segment for {time.monotonic() - new_at:.0f} s; is it still on?"
                )
            time.sleep(max(LOOK_S, min(target_s / 2, 2.0)))


def _get(client: httpx2.Client, address: str, name: str, most_bytes: int) -> bytes:
    import httpx2

    try:
        with client.stream("GET", address) as reply:
            if reply.status_code in (401, 403):
                raise SourceForbidden(f"{name}: the server wants a user and a password; give them in the address")
            if reply.status_code in (404, 410):
                raise SourceMissing(f"{name}: the server has no {urlsplit(address).path}; check the address")
            if reply.status_code != 200:
                raise SourceUnreachable(f"{name}: the server says {reply.status_code}; try again later")
            content = bytearray()
            for part in reply.iter_bytes():
                content += part
                if len(content) > most_bytes:
                    raise PlaylistRefused(f"{name}: names a file of more than {most_bytes:,} bytes")
            return bytes(content)
    except httpx2.HTTPError as error:
        raise SourceUnreachable(f"{name}: cannot be read ({type(error).__name__}); check that it is on") from None


def read_playlist(text: str, address: str, name: str) -> tuple[list[_Segment], bool, float]:
    """Read the segments of a media playlist, whether it has ended, and its target duration in seconds.

    Raises PlaylistRefused for what is none, and for one with keys, parts of files, or segments on another server.
    """
    lines = [line.strip() for line in text.splitlines()]
    if kind_by_head(text[:4096].encode()) != "hls":
        raise PlaylistRefused(f"{name}: no HLS playlist; a video's file or page is given without --live")
    variants = [below for line, below in pairwise(lines) if line.startswith("#EXT-X-STREAM-INF")]
    if variants:
        shown = ", ".join(urljoin(name, each) for each in variants[:3])
        raise PlaylistRefused(f"{name}: lists several streams; give one of them: {shown}")
    found: list[_Segment] = []
    sequence, target_s, length_s, initial = 0, 6.0, 0.0, ""
    is_break, shown_at, has_ended = False, None, False
    for line in lines:
        tag, _, value = line.partition(":")
        if initialisation := HLS_MAP.fullmatch(line):
            initial = _own_address(address, initialisation[1], name)
        elif HLS_REFUSED.match(line) or tag == "#EXT-X-BYTERANGE":
            raise PlaylistRefused(f"{name}: holds the tag {tag}, with which it is not read while it grows")
        elif tag == "#EXT-X-MEDIA-SEQUENCE":
            sequence = int(value)
        elif tag == "#EXT-X-TARGETDURATION":
            target_s = float(value)
        elif tag == "#EXTINF":
            length_s = float(value.partition(",")[0])
        elif tag == "#EXT-X-DISCONTINUITY":
            is_break = True
        elif tag == "#EXT-X-PROGRAM-DATE-TIME":
            shown_at = _moment(value)
        elif tag == "#EXT-X-ENDLIST":
            has_ended = True
        elif line and not line.startswith("#"):
            where = _own_address(address, line, name)
            found.append(_Segment(sequence + len(found), where, initial, length_s, is_break, shown_at))
            is_break, shown_at = False, None
    return found, has_ended, target_s


def _moment(text: str) -> float | None:
    with suppress(ValueError):
        return datetime.fromisoformat(text).timestamp()
    return None


def _own_address(playlist: str, member: str, name: str) -> str:
    """The address of a file that a playlist names; raises PlaylistRefused for one on another server."""
    found = urljoin(playlist, member)
    own, other = urlsplit(playlist), urlsplit(found)
    if (own.scheme, own.hostname, own.port) != (other.scheme, other.hostname, other.port):
        raise PlaylistRefused(f"{name}: names a segment on {other.hostname}, another server, which is not read")
    if own.username and not other.username:  # the playlist's own user may read its segments
        return other._replace(netloc=own.netloc).geturl()
    return found
