"""Evidence for a text along a video: how far each stored frame, by its picture or the words at its time, stands out.

A picture's evidence is its cosine with the text less the text's median over many videos, so that an event which fills a
whole video stands out too, in robust standard deviations. These are not the text's own, as in the agents' searches, but
the mean of `EVERYDAY` texts: a text that resembles much has a wide distribution of its own and is not told by it from
one that is found nowhere (docs/measured.md). Words have the scale of `agent.retrieval`, and count for the whole time of
their line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agent.environment import Environment
from agent.retrieval.calibration import FLAT, NO_MATCH, SAME_DISTANCE_SHARE, Floats
from agent.retrieval.line_matches import AnchorsFrom, line_deviations

PLACES = 4
"""A line counts if chance would find fewer lines that match as well."""
WINDOW_S = 2.0
"""Length of the window over which the evidence of pictures is averaged: a single odd frame is no event."""


LEAST_OF_ALL = 2.0
"""Less evidence is none, whatever the everyday texts have."""
EVERYDAY = (
    "a dog", "a cat", "a horse", "a bird", "a fish", "a car", "a bus", "a train", "a boat", "a plane", "a bicycle",
    "a house", "a bridge", "a castle", "a tree", "a flower", "an apple", "a person", "two people", "a crowd of people",
    "a table in a room", "a clock", "a book", "a guitar", "the sea", "a desert", "snow on mountains", "a forest",
    "a city at night", "a meadow by day", "a title card with a word", "nothing but the sky",
)  # fmt: skip
"""Texts by which a space shows how far its cosines spread, and how much the best match of a text stands out."""


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
    """Cosines that are usual in some videos: the median of one text, and the spread that texts have there.

    `least` is the evidence that makes a text present in the searched ones of these videos: half of the `EVERYDAY`
    texts have less where they match best.
    """

    median: float
    spread: float
    least: float


def usual_cosines(environment: Environment, text: str, searched: Sequence[str], among: Sequence[str]) -> Usual:
    """Compare all frames of the videos `among`, which hold those searched, with a text and with `EVERYDAY` texts."""
    texts = environment.source.embed_texts([text, *EVERYDAY])
    by_video = {each: (environment.source.in_memory(each).units @ texts.T).astype(np.float64) for each in among}
    cosines = np.concatenate(list(by_video.values()))
    medians = np.median(cosines, axis=0)
    spread = SAME_DISTANCE_SHARE * float(np.median(np.abs(cosines - medians), axis=0)[1:].mean())
    if spread <= FLAT:
        return Usual(float(medians[0]), 0.0, LEAST_OF_ALL)
    best = np.full(len(EVERYDAY), -np.inf)
    for video_id in searched:
        start_s, end_s = shown_times(environment, video_id)
        deviations = (by_video[video_id][:, 1:] - medians[1:]) / spread
        best = np.maximum(best, smoothed(deviations, start_s, end_s).max(axis=0))
    return Usual(float(medians[0]), spread, max(float(np.median(best)), LEAST_OF_ALL))


def shown_times(environment: Environment, video_id: str) -> tuple[Floats, Floats]:
    """Begin and end of the time for which each stored frame of a video is shown."""
    start_s = environment.times(video_id)
    return start_s, np.append(start_s[1:], max(environment.video(video_id).end_s, float(start_s[-1])))


def video_evidence(
    environment: Environment,
    text: str,
    video_id: str,
    usual: Usual,
    among: Sequence[str],
    evidence_from: AnchorsFrom = "both",
) -> Evidence:
    """Compare a text with all frames and lines of a video; words are as rare as they are in the videos `among`."""
    start_s, end_s = shown_times(environment, video_id)
    pictures = words = np.full(len(start_s), NO_MATCH)
    if evidence_from != "words" and usual.spread > FLAT:
        deviations = (environment.cosines(text, video_id) - usual.median) / usual.spread
        pictures = smoothed(deviations, start_s, end_s)
    if evidence_from != "pictures":
        words = _words(environment, text, video_id, among, start_s, end_s)
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
    """The integral `[n, t]` of step functions from the first edge to each time."""
    at = np.clip(np.searchsorted(edges_s, time_s, side="right") - 1, 0, len(columns) - 1)
    found: Floats = integral[at] + columns[at] * (time_s - edges_s[at])[:, None]
    return found


def _words(
    environment: Environment, text: str, video_id: str, among: Sequence[str], start_s: Floats, end_s: Floats
) -> Floats:
    """Deviation of the best line at each frame's time; `NO_MATCH` where nothing is said or written."""
    found = np.full(len(start_s), NO_MATCH)
    lines = environment.source.lines(video_id)
    if not lines:
        return found
    deviations = line_deviations(environment.source, [text], video_id, among, PLACES)[:, 0]
    for line, deviation in zip(lines, deviations.tolist(), strict=True):
        at = (start_s < line.end_s) & (end_s > line.start_s)
        found[at] = np.maximum(found[at], deviation)
    return found
