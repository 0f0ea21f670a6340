"""Match texts to videos of a library, and make the rows of videos that have only a text."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import NamedTuple

from index.rows import VideoRow
from jobs.benchmarks.samples import composed
from jobs.text_import.types import VideoText

CODEC = "text"


class Part(NamedTuple):
    """Segment of a video without frames."""

    start_s: float
    end_s: float
    kind: str


def known_names(videos: Iterable[VideoRow]) -> Mapping[str, set[str]]:
    """Ids of videos by each of their names: title, stem of the file, id, as `composed` writes them."""
    names: dict[str, set[str]] = defaultdict(set)
    for row in videos:
        for name in (row.title, PurePosixPath(row.uri).stem, row.video_id):
            names[composed(name)].add(row.video_id)
    return names


def text_uri(name: str) -> str:
    """Make the URI of a video that has only a text; its id is the hash of it."""
    return f"imported:{name}"


def text_id(name: str) -> str:
    return hashlib.sha256(text_uri(name).encode()).hexdigest()[:32]


def text_row(text: VideoText, segments: int, sample_fps: float, space: str) -> VideoRow:
    """Make the row of a video without frames; it ends with its text unless the text holds a duration."""
    return VideoRow(
        video_id=text_id(text.name),
        uri=text_uri(text.name),
        title=text.name,
        start_s=0.0,
        duration_s=length_s(text),
        fps=None,
        width_px=0,
        height_px=0,
        codec=CODEC,
        frames=0,
        segments=segments,
        transcript_lines=0,
        decode_errors=0,
        sample_fps=sample_fps,
        space=space,
        state="complete",
        ingested_at=datetime.now(UTC),
    )


def length_s(text: VideoText) -> float:
    return text.duration_s or max(line.end_s for line in text.lines)


def parts(text: VideoText, by_line: bool) -> list[Part]:
    """Make the segments of a video without frames: one a caption, or fixed windows of a transcript."""
    if by_line:
        return [Part(line.start_s, line.end_s, "caption") for line in text.lines]
    end_s = length_s(text)
    count = max(1, math.ceil(round(end_s / text.window_s, 6)))
    return [Part(n * text.window_s, min((n + 1) * text.window_s, end_s), "window") for n in range(count)]
