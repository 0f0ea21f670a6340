"""A piece of a source that grows: bytes that one demuxer reads."""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kinodex.pipeline.decoding.frame_times import time_base
from kinodex.pipeline.decoding.pixel_aspects import PixelAspects
from kinodex.pipeline.decoding.stream import demuxed
from kinodex.pipeline.errors import NothingDecodes, SourceForbidden, SourceMissing, SourceUnreachable
from kinodex.pipeline.sample import Chunk

if TYPE_CHECKING:
    from av import VideoFrame
    from av.container import InputContainer
    from av.video.stream import VideoStream


@dataclass(slots=True)
class Piece:
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


def demux_live(piece: Piece, chunk: Chunk) -> InputContainer:
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


def decoded(
    container: InputContainer, stream: VideoStream, piece: Piece, name: str, aspects: PixelAspects
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
