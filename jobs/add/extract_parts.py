"""Parts of videos that extracts are made of, and the lines that a library holds of each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from kinodex.agent.protocol.notes import Note
from kinodex.agent.requests.extract import ExtractRows
from kinodex.index.library import LibraryReader
from kinodex.index.rows import Scope, VideoRow
from kinodex.jobs.add.captions import EMBEDDING
from kinodex.jobs.add.film_parts import thinned
from kinodex.jobs.library import notes_between

AROUND_S = 2.0
"""Seconds before and after a moment that a search found; those that then overlap are one part."""


class Part(NamedTuple):
    """The part `[start_s, end_s)` of a video."""

    start_s: float
    end_s: float


def equal_windows(video: VideoRow, seconds: float) -> list[Part]:
    count = max(1, int((video.duration_s - 1e-6) // seconds) + 1)
    starts_s = [video.start_s + number * seconds for number in range(count)]
    return [Part(*each) for each in pairwise([*starts_s, video.end_s])]


def parts_by_search(library: LibraryReader, video: VideoRow, text: str, hits: int) -> list[Part]:
    """Moments that a search in one video finds, in order of time."""
    with EMBEDDING:
        vector = library.query_vector(text)
    found = library.search.hybrid(text, vector, Scope((video.video_id,)), hits, AROUND_S)
    parts: list[Part] = []
    for hit in sorted(found, key=lambda each: each.time_s):
        start_s, end_s = max(video.start_s, hit.time_s - AROUND_S), min(video.end_s, hit.end_s + AROUND_S)
        if parts and start_s <= parts[-1].end_s:
            parts[-1] = Part(parts[-1].start_s, max(end_s, parts[-1].end_s))
        else:
            parts.append(Part(start_s, end_s))
    return parts


def lines_of_video(library: LibraryReader, video: VideoRow) -> list[Note]:
    """Return all lines of a video, said, on screen and captions, by time."""
    notes = notes_between(library, video.video_id, video.start_s, video.end_s)
    return sorted(notes, key=lambda note: (note.start_s, note.end_s))


def lines_of_part(notes: Sequence[Note], part: Part, most: int) -> tuple[Note, ...]:
    """Return the lines of a part; of very many some at even distances."""
    within = thinned([note for note in notes if note.start_s < part.end_s and note.end_s > part.start_s])
    if len(within) <= most:
        return within
    return tuple(within[int((number + 0.5) * len(within) / most)] for number in range(most))


def citable_s(asked: ExtractRows, video: VideoRow) -> list[Part]:
    """Return the times of the frames and lines of a request, in the order of the numbers by which a row cites them."""
    lasts_s = 1 / video.sample_fps if video.sample_fps else 0.0
    frames = [Part(each.time_s, min(each.time_s + lasts_s, video.end_s)) for each in asked.frames]
    return [*frames, *(Part(each.start_s, each.end_s) for each in asked.notes)]
