"""What goes into reading and what comes out of it: a source with its bytes at hand, a piece of it, pictures."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from pipeline.decoding.metadata import VideoMetadata
from pipeline.images.preprocess import ModelInput
from pipeline.sources.discover import Source, content_id, local_file
from pipeline.sources.filesystem import attempt, filesystem_of, is_remote
from pipeline.subtitles.sidecar import Line

if TYPE_CHECKING:
    from pipeline.decoding.spans import Span


@dataclass(frozen=True, slots=True)
class FetchedVideo:
    """A source whose bytes lie at the local `path`."""

    source: Source
    path: str
    video_id: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """A video (`span` None: whole, in one go), or the part number `index` of the `of` parts that it is cut into."""

    identified: FetchedVideo
    span: Span | None = None
    of: int = 1
    index: int = 0


@dataclass(frozen=True, slots=True)
class SamplingSettings:
    """What is made of each piece.

    `fps` samples a second; JPEGs of at most `jpeg_side_px` on the longest side; `input` is what the model sees;
    parts of about `cut_s` seconds are cut of a long video (0: none); `batch` pictures are handed over at a time.
    """

    fps: float
    jpeg_side_px: int
    jpeg_quality: int
    decoder: str
    input: ModelInput
    cut_s: float = 0.0
    batch: int = 16


class SampledFrame(NamedTuple):
    """One sampled frame: see `FrameRow`; `model_input` is uint8 `[3, h, w]`."""

    number: int
    time_s: float
    jpeg: bytes
    width_px: int
    height_px: int
    model_input: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class PieceSummary:
    """What one pass over a piece found.

    The video covers `[start_s, end_s)`; `end_s` is final for a whole video and for its last part. `decode_errors`
    counts packets that could not be read or decoded and frames that decoded with damage. `seconds` is the time
    spent on `decode`, `jpeg`, `prepare` and `subtitles`. `fell_back` says why PyAV read what `decoder` was to read.
    """

    facts: VideoMetadata
    start_s: float
    end_s: float
    decode_errors: int
    transcript: tuple[Line, ...]
    subtitle_errors: tuple[str, ...]
    seconds: Mapping[str, float]
    decoder: str
    fell_back: str | None = None


def identify(source: Source, folder: Path) -> FetchedVideo:
    """Say what a source is by its bytes; a remote one is first fetched to a file of its own in `folder`.

    Raises:
        SourceMissing, SourceForbidden, SourceUnreachable: the bytes cannot be had; nothing is left in `folder`.
    """
    path = _fetch(source.uri, folder) if is_remote(source.uri) else local_file(source.uri)
    video_id = attempt(source.uri, lambda: content_id(path))
    return FetchedVideo(source, str(path), video_id, path.stat().st_size)


def _fetch(uri: str, folder: Path) -> Path:
    suffix = PurePosixPath(re.split(r"[?#]", uri)[0]).suffix  # some demuxers go by it
    path = folder / f"{uuid4().hex}{suffix}"
    filesystem, remote = attempt(uri, lambda: filesystem_of(uri))
    try:
        attempt(uri, lambda: filesystem.get_file(remote, str(path)))
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path
