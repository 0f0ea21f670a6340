"""Join the segments of a film into scenes, and its scenes into chapters.

Two kinds of evidence are weighed against each other, each in units of its own noise (see `Feature`): pictures, the
vectors of the segments, and words, what is said, read or written of them. A border costs less where nobody speaks
around it and more inside a line that is being spoken. Chapters are found as scenes are, with each scene as one item.

The result is the same for the same input, takes time in proportion to the length of the film, and has a bounded
number of parts: of two hours 8 to 20 chapters and 40 to 120 scenes, of a minute one chapter.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinodex.pipeline.scenes.grouping import Feature, Floats, Limits, divide
from kinodex.pipeline.scenes.word_vectors import word_vectors

SCENE_S = (60.0, 180.0)
"""Mean lengths between which scenes may lie: 40 to 120 in two hours, as films are counted by hand."""
SHORT_FILM_SCENES, SHORT_FILM_SCENE_S = 8, 10.0
"""A short film may have as many scenes as this, of this many seconds each: a minute may show six places."""
SHORTEST_SCENE_S, SHORTEST_CHAPTER_S = 8.0, 30.0
"""Shorter ones have to stand out more: an inserted shot is no scene."""
FILM_S, FILM_CHAPTERS = 7200.0, (8, 20)
"""Chapters grow with the root of the length: a list of them stays short enough to be read, 2 to 5 of ten minutes and
27 to 69 of a day."""
SCENE_PRICE, CHAPTER_PRICE = 8.0, 3.0
"""Of a border, in units of noise. Shots that follow one another are more alike than others of a scene, scenes that do
are not: with 3, a place of two minutes falls into three scenes, with 8 it is one."""
LONGEST_SHARE = 3.0
"""The longest group has this many times the items of the mean one, if there are as few as can be."""
LEAST_PICTURE_NOISE, LEAST_WORD_NOISE = 0.02, 0.1
"""Squared distances of unit vectors: of pictures of one place with another in front of it, and of texts."""
UNIT_S, MOST_UNITS = 1.0, 20_000
"""Segments shorter than this are taken together, and so are many of a recording of days: both bound the work."""
SILENCE_S, SILENCE_PAUSES = 10.0, 3.0
"""A silence of this length, and of this many times the film's usual pause, makes a border as cheap as one can."""
SILENT_PRICE, SPOKEN_PRICE = 0.8, 1.5
"""What a border costs in silence, and inside a spoken line, against one elsewhere."""


@dataclass(frozen=True, slots=True)
class FilmStructure:
    """First segments of the scenes, and first scenes of the chapters; both begin with 0 unless there is nothing."""

    scenes: tuple[int, ...] = ()
    chapters: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Film:
    """The segments of a film: times, lengths, vectors (zeros where there is none), texts, and lines that are spoken."""

    spans_s: Sequence[tuple[float, float]]
    seconds: Floats
    vectors: Floats
    texts: Sequence[str]
    lines_s: Sequence[tuple[float, float]]
    silence_s: float


def find_structure(
    spans_s: Sequence[tuple[float, float]],
    pictures: NDArray[np.floating[Any]] | None = None,
    texts: Sequence[str] = (),
    lines_s: Sequence[tuple[float, float]] = (),
) -> FilmStructure:
    """Find the scenes and chapters of a film.

    Args:
        spans_s: `[start_s, end_s)` of its n segments, in order.
        pictures: a vector of each segment [n, d], unit length; zeros for one without. None: no pictures.
        texts: what is said, read or written of each segment, n of them, or none.
        lines_s: times of the lines that are spoken, by which silence is known.
    """
    count = len(spans_s)
    vectors = np.zeros((count, 1)) if pictures is None else np.asarray(pictures, np.float64)
    texts = texts or [""] * count
    if not len(vectors) == len(texts) == count:
        raise ValueError(f"got {count} segments, {len(vectors)} vectors and {len(texts)} texts; give one of each")
    seconds = np.array([max(end_s - start_s, 0.0) for start_s, end_s in spans_s])
    film = _Film(spans_s, seconds, vectors, texts, spoken_s := _merged(lines_s), _long_silence(spoken_s))
    film_s, units = float(seconds.sum()), _units(seconds)
    scenes = _joined(film, units, scene_limits(film_s, len(units)))
    chapters = _joined(film, scenes, chapter_limits(film_s, len(scenes)))
    places = {first: number for number, first in enumerate(scenes)}
    return FilmStructure(tuple(scenes), tuple(places[first] for first in chapters))


def scene_limits(film_s: float, segments: int) -> Limits:
    shortest_s, longest_s = SCENE_S
    most = max(film_s / shortest_s, min(SHORT_FILM_SCENES, film_s / SHORT_FILM_SCENE_S))
    fewest = max(1, int(film_s / longest_s))
    return Limits(SCENE_PRICE, fewest, max(1, int(most)), _longest(segments, fewest), SHORTEST_SCENE_S)


def chapter_limits(film_s: float, scenes: int) -> Limits:
    fewest, most = (max(1, int(count * math.sqrt(film_s / FILM_S))) for count in FILM_CHAPTERS)
    return Limits(CHAPTER_PRICE, fewest, most, _longest(scenes, fewest), SHORTEST_CHAPTER_S)


def _longest(items: int, fewest: int) -> int:
    return items if fewest == 1 else math.ceil(LONGEST_SHARE * items / fewest)


def _units(seconds: Floats) -> list[int]:
    """First segments of the units that are joined: segments, the shortest taken together."""
    least_s = max(UNIT_S, float(seconds.sum()) / MOST_UNITS)
    firsts: list[int] = []
    filled_s = least_s
    for number, length_s in enumerate(seconds):
        if filled_s >= least_s:
            firsts.append(number)
            filled_s = 0.0
        filled_s += float(length_s)
    return firsts


def _joined(film: _Film, firsts: Sequence[int], limits: Limits) -> list[int]:
    """First segments of the groups of items, which begin with these segments."""
    if not firsts:
        return []
    bounds = [*firsts, len(film.seconds)]
    lengths_s = np.add.reduceat(film.seconds, firsts)
    pictured = np.where(film.vectors.any(axis=1), film.seconds, 0.0)
    weights = np.add.reduceat(pictured, firsts)
    sums = np.add.reduceat(film.vectors * pictured[:, None], firsts, axis=0)
    means = np.divide(sums, weights[:, None], out=np.zeros_like(sums), where=weights[:, None] > 0)
    words = word_vectors([" ".join(film.texts[first:end]) for first, end in pairwise(bounds)])
    worded = np.where(words.any(axis=1), lengths_s, 0.0)
    features = [Feature(means, weights, LEAST_PICTURE_NOISE), Feature(words, worded, LEAST_WORD_NOISE)]
    prices = np.array([_border_price(film, first) for first in firsts])
    starts = divide(features, lengths_s, prices, limits)
    return [firsts[start] for start in starts]


def _border_price(film: _Film, first: int) -> float:
    """Price of a border before a segment: by the silence around it, or the line or the gap that it lies in."""
    time_s = film.spans_s[first][0]
    if first and time_s - film.spans_s[first - 1][1] >= SILENCE_S:
        return SILENT_PRICE
    if not film.lines_s:
        return 1.0
    after = bisect_left(film.lines_s, (time_s, time_s))
    said_until_s = film.lines_s[after - 1][1] if after else -math.inf
    said_from_s = film.lines_s[after][0] if after < len(film.lines_s) else math.inf
    if said_until_s > time_s:
        return SPOKEN_PRICE
    return 1.0 - (1.0 - SILENT_PRICE) * min((said_from_s - said_until_s) / film.silence_s, 1.0)


def _long_silence(spoken_s: Sequence[tuple[float, float]]) -> float:
    """Seconds of a silence that is long in this film: where somebody speaks once a minute, a minute is nothing."""
    pauses_s = [after[0] - before[1] for before, after in pairwise(spoken_s)]
    return max(SILENCE_S, SILENCE_PAUSES * float(np.median(pauses_s))) if pauses_s else SILENCE_S


def _merged(lines_s: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the times at which anybody speaks, in order, without overlap."""
    merged: list[tuple[float, float]] = []
    for start_s, end_s in sorted(lines_s):
        if merged and start_s <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end_s, merged[-1][1])
        else:
            merged.append((start_s, end_s))
    return merged
