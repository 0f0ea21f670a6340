"""Evidence for a text along a video: how far each stored frame, by its picture or its words, stands out.

A picture's evidence is its cosine with the text less the text's median over many videos, so that an event which
fills a whole video stands out too, in robust standard deviations. These are not the text's own, as in the agents'
searches, but the mean of `EVERYDAY` texts: a text that resembles much has a wide distribution of its own and is not
told by it from one that is found nowhere (docs/measured.md). Words have the scale of the agents' searches, and count
for the whole time of their line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.videos.environment import Environment
from kinodex.agent.videos.library_videos import AnchorsFrom
from kinodex.agent.videos.line_matches import line_deviations
from kinodex.agent.videos.scale import FLAT, NO_MATCH, SAME_DISTANCE_SHARE, Floats
from kinodex.index.search.fusion import shares_words

PLACES = 4
"""A line counts if chance would find fewer lines that match as well."""
WINDOW_S = 2.0
"""Length of the window over which the evidence of pictures is averaged: a single odd frame is no event."""
EVERYDAY = (
    "a dog", "a cat", "a horse", "a bird", "a fish", "a car", "a bus", "a train", "a boat", "a plane", "a bicycle",
    "a house", "a bridge", "a castle", "a tree", "a flower", "an apple", "a person", "two people", "a crowd of people",
    "a table in a room", "a clock", "a book", "a guitar", "the sea", "a desert", "snow on mountains", "a forest",
    "a city at night", "a meadow by day", "a title card with a word", "nothing but the sky",
)  # fmt: skip
"""Texts by which a space shows how far its cosines spread."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence along one video: frame `i` is shown in `[start_s[i], end_s[i])` and stands out by `deviation[i]`.

    `by_words[i]`: words at its time stand out more than its picture does.
    """

    video_id: str
    start_s: Floats
    end_s: Floats
    deviation: Floats
    by_words: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Usual:
    """Cosines that are usual in some videos: the median of one text, and the spread that texts have there."""

    median: float
    spread: float


def usual_cosines(environment: Environment, text: str, among: Sequence[str]) -> Usual:
    """Compare all frames of the videos `among`, which hold those searched, with a text and with `EVERYDAY` texts."""
    texts = environment.source.embed_texts([text, *EVERYDAY])
    cosines = np.concatenate([environment.source.in_memory(each).units @ texts.T for each in among]).astype(np.float64)
    medians = np.median(cosines, axis=0)
    spread = SAME_DISTANCE_SHARE * float(np.median(np.abs(cosines - medians), axis=0)[1:].mean())
    return Usual(float(medians[0]), spread if spread > FLAT else 0.0)


def shown_times(environment: Environment, video_id: str) -> tuple[Floats, Floats]:
    """Begin and end of the time for which each stored frame of a video is shown."""
    start_s = environment.times(video_id)
    return start_s, np.append(start_s[1:], max(environment.video(video_id).end_s, float(start_s[-1])))


def video_evidence(
    environment: Environment,
    text: str,
    video_id: str,
    usual: Usual | None,
    among: Sequence[str],
    in_: AnchorsFrom = "all",
    least_cosine: float = -1.0,
) -> Evidence:
    """Compare a text with all frames and lines of a video; words are as rare as they are in the videos `among`.

    Without what is `usual` pictures are not compared. A line counts by its words, or by its meaning from `least_cosine`
    on.
    """
    start_s, end_s = shown_times(environment, video_id)
    pictures = words = np.full(len(start_s), NO_MATCH)
    if in_ != "words" and usual is not None and usual.spread > FLAT:
        deviations = (environment.cosines(text, video_id) - usual.median) / usual.spread
        pictures = smoothed(deviations, start_s, end_s)
    if in_ != "frames":
        words = _words(environment, text, video_id, among, start_s, end_s, least_cosine)
    return Evidence(video_id, start_s, end_s, np.maximum(pictures, words), words > pictures)


def smoothed(values: Floats, start_s: Floats, end_s: Floats, window_s: float = WINDOW_S) -> Floats:
    """Mean of values `[n]` or `[n, t]` over the time around each frame's middle, half a window before and after it."""
    edges_s = np.append(start_s, end_s[-1:])
    lengths_s = end_s - start_s
    columns = values.reshape(len(values), -1)
    integral = np.concatenate([np.zeros((1, columns.shape[1])), np.cumsum(columns * lengths_s[:, None], axis=0)])
    middle_s = (start_s + end_s) / 2
    low_s = np.maximum(middle_s - window_s / 2, edges_s[0])
    high_s = np.minimum(middle_s + window_s / 2, edges_s[-1])
    length_s = np.maximum(high_s - low_s, 0.0)[:, None]
    area = _between(integral, edges_s, columns, high_s) - _between(integral, edges_s, columns, low_s)
    means: Floats = np.where(length_s > 0, area / np.where(length_s > 0, length_s, 1.0), columns)
    return means.reshape(values.shape)


def _between(integral: Floats, edges_s: Floats, columns: Floats, time_s: Floats) -> Floats:
    """Return the integral `[n, t]` of step functions from the first edge to each time."""
    at = np.clip(np.searchsorted(edges_s, time_s, side="right") - 1, 0, len(columns) - 1)
    found: Floats = integral[at] + columns[at] * (time_s - edges_s[at])[:, None]
    return found


def _words(
    environment: Environment,
    text: str,
    video_id: str,
    among: Sequence[str],
    start_s: Floats,
    end_s: Floats,
    least_cosine: float,
) -> Floats:
    """Deviation of the best line at each frame's time; `NO_MATCH` where no line matches by words or meaning."""
    found = np.full(len(start_s), NO_MATCH)
    lines = environment.source.lines(video_id)
    if not lines:
        return found
    deviations = line_deviations(environment.source, [text], video_id, among, PLACES, least_cosine)[:, 0]
    cosines = environment.source.line_cosines(text, video_id)
    meant = np.full(len(lines), False) if cosines is None else cosines >= least_cosine
    for line, deviation, by_meaning in zip(lines, deviations.tolist(), meant.tolist(), strict=True):
        if not (by_meaning or shares_words(text, line.text)):
            continue
        at = (start_s < line.end_s) & (end_s > line.start_s)
        found[at] = np.maximum(found[at], deviation)
    return found
