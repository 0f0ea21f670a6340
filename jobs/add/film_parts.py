"""The scenes and chapters of a video in a library, and what the library knows of each in words."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.protocol.notes import Note
from kinodex.index.kinds import QUOTED_KINDS
from kinodex.index.library import Library
from kinodex.index.rows import SegmentRow, TextLine, VideoRow
from kinodex.pipeline.scenes.structure import find_structure

Level = Literal["scene", "chapter"]
MOST_CHARACTERS = 6000
"""Of the words that a model is given of one part, some 1,500 tokens; of more, lines at even distances are taken."""
LONGEST_LINE = 400


@dataclass(frozen=True, slots=True)
class FilmPart:
    """A scene or chapter `[start_s, end_s)`: its number in its level, its segments, and a chapter's scenes."""

    level: Level
    number: int
    start_s: float
    end_s: float
    first_segment: int
    segments: int
    children: range = range(0)

    @property
    def end_segment(self) -> int:
        return self.first_segment + self.segments


@dataclass(frozen=True, slots=True)
class Film:
    """Scenes and chapters of a video, and the notes on each scene: captions, and what is said and written meanwhile."""

    video: VideoRow
    scenes: tuple[FilmPart, ...]
    chapters: tuple[FilmPart, ...]
    notes: tuple[tuple[Note, ...], ...]

    @property
    def parts(self) -> int:
        return len(self.scenes) + len(self.chapters)


def read_film(library: Library, video: VideoRow) -> Film:
    """Find the scenes and chapters of a video by its stored vectors, if it has any, and words; no model is needed."""
    segments = library.segments(video.video_id)
    notes = _notes(library, video, segments)
    spans_s = [(segment.start_s, segment.end_s) for segment in segments]
    texts = [" ".join(note.text for note in each) for each in notes]
    lines_s = [(line.start_s, line.end_s) for line in library.speech(video.video_id)]
    structure = find_structure(spans_s, _pictures(library, video, spans_s), texts, lines_s)
    scenes = tuple(
        _part("scene", number, segments[first:end], range(0))
        for number, (first, end) in enumerate(pairwise([*structure.scenes, len(segments)]))
    )
    chapters = tuple(
        _part("chapter", number, segments[scenes[first].first_segment : scenes[end - 1].end_segment], range(first, end))
        for number, (first, end) in enumerate(pairwise([*structure.chapters, len(scenes)]))
    )
    return Film(video, scenes, chapters, tuple(_of_scene(scene, notes) for scene in scenes))


def thinned(notes: Sequence[Note], most_characters: int = MOST_CHARACTERS) -> tuple[Note, ...]:
    """Take notes at even distances, as many as keep their texts within a number of characters; at least one."""
    length = sum(len(note.text) for note in notes)
    if length <= most_characters:
        return tuple(notes)
    kept = max(1, int(len(notes) * most_characters / length))
    return tuple(notes[int((number + 0.5) * len(notes) / kept)] for number in range(kept))


def _part(level: Level, number: int, segments: Sequence[SegmentRow], children: range) -> FilmPart:
    first, last = segments[0], segments[-1]
    return FilmPart(level, number, first.start_s, last.end_s, first.segment_no, len(segments), children)


def _of_scene(scene: FilmPart, notes: Sequence[Sequence[Note]]) -> tuple[Note, ...]:
    """Notes of the segments of a scene; what stands there again and again is said once."""
    first: dict[tuple[str, str], Note] = {}
    for note in chain.from_iterable(notes[scene.first_segment : scene.end_segment]):
        first.setdefault((note.source, note.text), note)
    return tuple(first.values())


def _notes(library: Library, video: VideoRow, segments: Sequence[SegmentRow]) -> list[list[Note]]:
    """Take notes on each segment: its caption, and of each other kind of lines those at its time, as one note."""
    starts_s = [segment.start_s for segment in segments]
    notes: list[list[Note]] = [
        [_note(video, segment.start_s, segment.end_s, "captions", segment.caption)] if segment.caption else []
        for segment in segments
    ]
    for kind in QUOTED_KINDS:
        together: dict[int, list[TextLine]] = {}
        for line in library.lines.rows(video.video_id, [kind]):
            at = bisect_right(starts_s, (line.start_s + line.end_s) / 2) - 1
            together.setdefault(max(at, 0), []).append(line)
        for at, each in together.items() if segments else ():
            text = " ".join(dict.fromkeys(line.text for line in each))
            notes[at].append(_note(video, each[0].start_s, max(line.end_s for line in each), kind, text))
    return notes


def _note(video: VideoRow, start_s: float, end_s: float, source: str, text: str) -> Note:
    return Note(video.video_id, start_s, end_s, source, text[:LONGEST_LINE])


def _pictures(library: Library, video: VideoRow, spans_s: Sequence[tuple[float, float]]) -> NDArray[np.float32] | None:
    """Return the mean vector of the frames of each segment, unit length; zeros where none is stored."""
    if not video.frames or not spans_s or not library.fingerprint.has_vectors:
        return None
    stored = library.vectors(video.video_id)
    bounds = np.searchsorted(stored.time_s, [start_s for start_s, _ in spans_s])
    means = np.zeros((len(spans_s), stored.vectors.shape[1]), np.float32)
    for at, (first, end) in enumerate(pairwise([*bounds, len(stored.time_s)])):
        if end > first:
            mean = stored.vectors[first:end].astype(np.float32).mean(axis=0)
            means[at] = mean / max(float(np.linalg.norm(mean)), 1e-9)
    return means
