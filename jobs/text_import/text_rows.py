"""Rows of videos that have only a text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from kinodex.index.library import Library
from kinodex.index.rows import CLIP, VideoRow
from kinodex.jobs.library import batched
from kinodex.jobs.text_import.addition import Kind
from kinodex.jobs.text_import.video_text import VideoText
from kinodex.jobs.text_import.videos import text_id, text_uri

VIDEOS_A_COMMIT = 1000


class Part(NamedTuple):
    """Segment of a video without frames."""

    start_s: float
    end_s: float
    kind: str


def write_rows(library: Library, kind: Kind, texts: Mapping[str, VideoText], held: Mapping[str, VideoRow]) -> int:
    """Make videos for texts that have none, and lengthen those without frames; returns the number of new ones."""
    new = [id_ for id_ in texts if id_ not in held]
    fps = float(library.settings.get("fps", 1.0))
    for some in batched(new, VIDEOS_A_COMMIT):
        segments = {id_: parts(texts[id_], kind == "captions") for id_ in some}
        library.writer.add_segments(segments)
        rows = [_text_row(texts[id_], len(each), fps, library.space_name) for id_, each in segments.items()]
        library.writer.complete(rows)
    longer = [
        replace(held[id_], duration_s=length_s(text))
        for id_, text in texts.items()
        if id_ in held and not held[id_].frames and length_s(text) > held[id_].duration_s
    ]
    library.writer.complete(longer)
    return len(new)


def _text_row(text: VideoText, segments: int, sample_fps: float, space: str) -> VideoRow:
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
        codec="text",
        frames=0,
        segments=segments,
        speech_lines=0,
        decode_errors=0,
        sample_fps=sample_fps,
        space=space,
        state="complete",
        ingested_at=datetime.now(UTC),
    )


def length_s(text: VideoText) -> float:
    return text.duration_s or max(line.end_s for line in text.lines)


def parts(text: VideoText, by_line: bool) -> list[Part]:
    """Make the segments of a video without frames: one a caption, an episode's clips, or windows of a transcript."""
    if text.clips:
        clip_s = text.window_s
        return [Part(n * clip_s, (n + 1) * clip_s, f"{CLIP}{clip.name}") for n, clip in enumerate(text.clips)]
    if by_line:
        return [Part(line.start_s, line.end_s, "caption") for line in text.lines]
    end_s = length_s(text)
    count = max(1, math.ceil(round(end_s / text.window_s, 6)))
    return [Part(n * text.window_s, min((n + 1) * text.window_s, end_s), "window") for n in range(count)]
