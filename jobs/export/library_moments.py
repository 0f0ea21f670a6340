"""Moments from what a library holds of a video: its shots, scenes and chapters, words, detections, or all as one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal

from kinodex.index.kinds import LINE_KINDS, KindName
from kinodex.index.library import LibraryReader
from kinodex.index.rows import VideoRow
from kinodex.jobs.export.moments import Moment

MomentsOf = Callable[[LibraryReader, VideoRow], Iterator[Moment]]


def _shots(library: LibraryReader, video: VideoRow) -> Iterator[Moment]:
    for row in library.segments(video.video_id):
        name = f"{row.kind} {row.segment_no + 1}"
        yield Moment(video, row.start_s, row.end_s, row.caption or name, row.caption_confidence, "shot")


def _lines(kind: KindName, library: LibraryReader, video: VideoRow) -> Iterator[Moment]:
    for line in library.lines.rows(video.video_id, [kind]):
        yield Moment(video, line.start_s, line.end_s, line.text, line.confidence, kind, line.speaker)


def _detections(library: LibraryReader, video: VideoRow) -> Iterator[Moment]:
    """Yield each detection, for as long as its frame stands for the video: until the next sample."""
    for row in library.detections(video.video_id):
        end_s = min(row.time_s + 1 / video.sample_fps, video.end_s) if video.sample_fps else video.end_s
        yield Moment(video, row.time_s, end_s, row.label, row.score, "detections")


def _parts(level: Literal["scene", "chapter"], library: LibraryReader, video: VideoRow) -> Iterator[Moment]:
    """Yield the titles of chapters or scenes, a line each as players list them.

    A number stands in the place of a missing title.
    """
    for row in library.chapters.rows(video.video_id, level):
        title = " ".join(row.title.split()) or f"{level} {row.number + 1}"
        yield Moment(video, row.start_s, row.end_s, title, None, level)


def _whole(library: LibraryReader, video: VideoRow) -> Iterator[Moment]:
    yield Moment(video, video.start_s, video.end_s, video.title, None, "video")


ROWS: dict[str, MomentsOf] = {
    "shots": _shots,
    "scenes": partial(_parts, "scene"),
    "chapters": partial(_parts, "chapter"),
    **{kind: partial(_lines, kind) for kind in LINE_KINDS},
    "detections": _detections,
    "videos": _whole,
}
"""Names of what can be taken of whole videos, and how."""
