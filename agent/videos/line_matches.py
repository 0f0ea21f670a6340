"""Matches of queries with all lines of a video.

Each kind of line is judged by its own kind, in all videos that are searched: captions resemble any query about
pictures more than speech does. Where the library has vectors of sentences, a line matches by the better of its words
and its meaning. A line belongs to the frame on screen in the middle of its time.

The papers search pictures alone (EEA, section 3.1, names a retriever of clips without its input) and leave open all
of this.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.videos import EXACT_S
from kinodex.agent.videos.library_videos import LibraryVideos
from kinodex.agent.videos.scale import LIKELY, NO_MATCH, Floats, deviation_of_chance, robust_deviations
from kinodex.agent.videos.word_matches import word_deviations

LEAST_LINES = 8
"""Fewer lines have no distribution by which a cosine could be judged."""


def frame_deviations(
    source: LibraryVideos, texts: Sequence[str], video_id: str, among: Sequence[str], times_s: Floats, places: int
) -> Floats:
    """Deviations [n, t] of the best line of each of the frames at `times_s` [n]; `NO_MATCH` for frames without one."""
    found = np.full((len(times_s), len(texts)), NO_MATCH)
    lines = source.lines(video_id)
    if lines and len(times_s):
        np.maximum.at(found, frames_of(lines, times_s), line_deviations(source, texts, video_id, among, places))
    return found


def frames_of(lines: Sequence[Note], times_s: Floats) -> NDArray[np.intp]:
    middles_s = np.array([(line.start_s + line.end_s) / 2 for line in lines])
    return np.maximum(np.searchsorted(times_s, middles_s + EXACT_S, side="right") - 1, 0)


def line_deviations(
    source: LibraryVideos,
    texts: Sequence[str],
    video_id: str,
    among: Sequence[str],
    places: int,
    least_cosine: float = -1.0,
) -> Floats:
    """Deviations [n, t] of the lines of a video in order, judged by those of all videos `among` which it is.

    By its meaning a line counts from `least_cosine` on.
    """
    lines = source.lines(video_id)
    found = np.full((len(lines), len(texts)), NO_MATCH)
    videos = list(dict.fromkeys([video_id, *among]))
    for kind in dict.fromkeys(line.source for line in lines):
        here = [at for at, line in enumerate(lines) if line.source == kind]
        known = [line.text for each in videos for line in source.lines(each) if line.source == kind]
        own = [lines[at].text for at in here]
        by_words = [word_deviations(text, own, known, places) for text in texts]
        found[here] = np.stack(by_words, axis=1)
        if (
            len(known) >= LEAST_LINES
            and (by_meaning := _meanings(source, texts, videos, kind, least_cosine)) is not None
        ):
            low = deviation_of_chance(min(LIKELY, places / len(known)))
            by_meaning[by_meaning < low] = NO_MATCH
            found[here] = np.maximum(found[here], by_meaning[: len(here)])
    return found


def _meanings(
    source: LibraryVideos, texts: Sequence[str], videos: Sequence[str], kind: str, least_cosine: float
) -> Floats | None:
    """Deviations by meaning of the lines of a kind, those of the first video first; None without vectors of all."""
    cosines = []
    for video_id in videos:
        lines, compared = source.lines(video_id), [source.line_cosines(text, video_id) for text in texts]
        if lines and any(each is None for each in compared):
            return None
        rows = [at for at, line in enumerate(lines) if line.source == kind]
        cosines += [np.stack([each[rows] for each in compared if each is not None], axis=1)] if rows else []
    known = np.concatenate(cosines)
    if np.isnan(known).any():
        return None
    return np.where(known >= least_cosine, robust_deviations(known, known), NO_MATCH)
