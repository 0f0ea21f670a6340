"""One video in, rows out, in this process: one thread decodes, one makes JPEGs and model inputs, the caller embeds.

Each runs a bounded number of items ahead of the next, so memory does not grow with the video's length.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pipeline.ahead import ahead
from pipeline.facts import VideoFacts
from pipeline.model_input import ModelInput
from pipeline.pieces import Identified, Picture, Piece, PieceSummary, Reading
from pipeline.reading import read_piece, timed
from pipeline.shots import Segment, find_segments
from pipeline.sources import Source
from pipeline.subtitles import Line
from pipeline.towers import ImageTower

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class IngestSettings:
    """How a video is turned into rows.

    `fps` samples a second; JPEGs of at most `jpeg_side_px` on the longest side; fixed windows of `window_s`
    where there are no shots; `batch_size` frames are embedded at a time.
    """

    fps: float = 1.0
    jpeg_side_px: int = 512
    jpeg_quality: int = 85
    window_s: float = 10.0
    batch_size: int = 16

    def __post_init__(self) -> None:
        allowed = {
            "fps": 0.001 <= self.fps <= 1000,
            "jpeg_side_px": 16 <= self.jpeg_side_px <= 16384,
            "jpeg_quality": 1 <= self.jpeg_quality <= 100,
            "window_s": self.window_s >= 0.1,
            "batch_size": self.batch_size >= 1,
        }
        for name, fits in allowed.items():
            if not fits:
                raise ValueError(f"{name}={getattr(self, name)} is out of range; see IngestSettings")


@dataclass(frozen=True, slots=True)
class FrameRow:
    """One sampled frame: the first instant `frame_no / fps` that shows it, its presentation time `time_s`.

    `width_px` and `height_px` are those of the JPEG; `vector` is float16 `[dim]` of unit length.
    """

    frame_no: int
    time_s: float
    width_px: int
    height_px: int
    jpeg: bytes
    vector: NDArray[np.float16]


@dataclass(frozen=True, slots=True)
class VideoSummary:
    """What one pass found; the video covers `[start_s, start_s + duration_s)`, whatever its header claims.

    `decode_errors` counts packets that could not be read or decoded and frames that decoded with damage.
    `seconds` is time spent in each stage (they overlap) and `total`, the time from first to last.
    """

    facts: VideoFacts
    frames: int
    start_s: float
    duration_s: float
    decode_errors: int
    segments: tuple[Segment, ...]
    transcript: tuple[Line, ...]
    subtitle_errors: tuple[str, ...]
    seconds: Mapping[str, float]


def read_video(
    path: Path,
    source: Source,
    settings: IngestSettings,
    model_input: ModelInput,
    tower: ImageTower,
    sink: Callable[[list[FrameRow]], None],
) -> VideoSummary:
    """Read one video and give its frames to `sink`, a batch at a time, in order.

    For one video at a time and decoders that are trusted not to crash; `pipeline.reader` reads in a child process.
    An unreadable subtitle file does not stop a video: its message is in `subtitle_errors`.

    Raises:
        VideoError: nothing can be read from it; `sink` has not been called.
    """
    began = time.monotonic()
    piece = Piece(Identified(source, str(path), video_id="", size_bytes=path.stat().st_size))
    reading = Reading(settings.fps, settings.jpeg_side_px, settings.jpeg_quality, "pyav", model_input)
    seconds: dict[str, float] = defaultdict(float)
    summaries: list[PieceSummary] = []
    times_s: list[float] = []
    distances: list[float] = []
    previous: NDArray[np.float32] | None = None
    with closing(ahead(read_piece(piece, reading), settings.batch_size)) as parts:
        for batch in _batches(_pictures(parts, summaries), settings.batch_size):
            with timed(seconds, "embed"):
                vectors = tower.embed(np.stack([picture.model_input for picture in batch]))
            sink([frame_row(picture, vector) for picture, vector in zip(batch, vectors, strict=True)])
            times_s += [picture.time_s for picture in batch]
            wide = vectors.astype(np.float32)
            neighbours = wide if previous is None else np.vstack([previous, wide])
            distances += (1 - np.sum(neighbours[1:] * neighbours[:-1], axis=1)).tolist()
            previous = wide[-1]
    (found,) = summaries
    return VideoSummary(
        facts=found.facts,
        frames=len(times_s),
        start_s=found.start_s,
        duration_s=found.end_s - found.start_s,
        decode_errors=found.decode_errors,
        segments=tuple(find_segments(times_s, distances, found.end_s, settings.window_s)),
        transcript=found.transcript,
        subtitle_errors=found.subtitle_errors,
        seconds=dict(found.seconds) | seconds | {"total": time.monotonic() - began},
    )


def _pictures(parts: Iterable[Picture | PieceSummary], summaries: list[PieceSummary]) -> Iterator[Picture]:
    for part in parts:
        if isinstance(part, Picture):
            yield part
        else:
            summaries.append(part)


def frame_row(picture: Picture, vector: NDArray[np.float16]) -> FrameRow:
    """A picture with its vector `[dim]`."""
    return FrameRow(picture.number, picture.time_s, picture.width_px, picture.height_px, picture.jpeg, vector)


def _batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
