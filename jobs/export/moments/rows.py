"""Moments from what a library holds of a video: its shots, scenes and chapters, words, detections, or all as one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

from index.library_reader import LibraryReader
from index.rows import VideoRow
from jobs.export.moments.moment import Moment

MomentsOf = Callable[[LibraryReader, VideoRow], Iterator[Moment]]


def _shots(library: LibraryReader, video: VideoRow) -> Iterator[Moment]:
    for row in library.segments(video.video_id):
        name = f"{row.kind} {row.segment_no + 1}"
        yield Moment(video, row.start_s, row.end_s, row.caption or name, row.caption_confidence, "shot")


def _captions(library: LibraryReader, video: VideoRow) -> Iterator[Moment]:
    for row in library.captions(video.video_id):
        yield Moment(video, row.start_s, row.end_s, row.text, row.confidence, "caption")


def _transcript(library: LibraryReader, video: VideoRow) -> Iterator[Moment]:
    for row in library.transcript(video.video_id):
        yield Moment(video, row.start_s, row.end_s, row.text, None, "transcript", row.speaker)


def _screen_text(library: LibraryReader, video: VideoRow) -> Iterator[Moment]:
    for row in library.screen_text.rows(video.video_id):
        yield Moment(video, row.start_s, row.end_s, row.text, row.confidence, "text")


def _detections(library: LibraryReader, video: VideoRow) -> Iterator[Moment]:
    """Each detection, for as long as its frame stands for the video: until the next sample."""
    for row in library.detections(video.video_id):
        end_s = min(row.time_s + 1 / video.sample_fps, video.end_s) if video.sample_fps else video.end_s
        yield Moment(video, row.time_s, end_s, row.label, row.score, "detection")


def _chapters(library: LibraryReader, video: VideoRow) -> Iterator[Moment]:
    yield from _parts(library, video, "chapter")


def _scenes(library: LibraryReader, video: VideoRow) -> Iterator[Moment]:
    yield from _parts(library, video, "scene")


def _parts(library: LibraryReader, video: VideoRow, level: Literal["scene", "chapter"]) -> Iterator[Moment]:
    """The titles of chapters or scenes, a line each as players list them; a number in the place of a missing one."""
    for row in library.scenes.rows(video.video_id, level):
        title = " ".join(row.title.split()) or f"{level} {row.number + 1}"
        yield Moment(video, row.start_s, row.end_s, title, None, level)


def _whole(library: LibraryReader, video: VideoRow) -> Iterator[Moment]:
    yield Moment(video, video.start_s, video.end_s, video.title, None, "video")


ROWS: dict[str, MomentsOf] = {
    "shots": _shots,
    "scenes": _scenes,
    "chapters": _chapters,
    "captions": _captions,
    "transcript": _transcript,
    "text": _screen_text,
    "detections": _detections,
    "videos": _whole,
}
"""Names of what can be taken of whole videos, and how."""
