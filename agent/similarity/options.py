"""The option that fits what a request shows: by a line that states it, else by its frames, else by its lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.question import Question
from kinodex.agent.similarity.statements import statements
from kinodex.agent.similarity.words import shares, stated_option
from kinodex.agent.videos.environment import Environment
from kinodex.agent.videos.scale import FLAT, Floats, middle_and_scale

BEST_FRAMES = BEST_LINES = 3
"""The number of frames, and of lines by their meaning, that speak for an option: its best ones."""
USUAL_SHARE = 0.5
"""The share of an option's median cosine over the video that is taken from it.

All of it would punish what is shown all the time, none of it would favour options that fit any picture.
"""
MIN_LEAD = 0.05
"""A smaller lead over the second option, in robust deviations or shares of words, is none."""
CLEAR, CLEAR_LEAD = 2.5, 0.2
"""Deviations from the median of the video, and lead, from which on a search for the option may end."""
MOST_EVIDENCE = 4


@dataclass(frozen=True, slots=True)
class Choice:
    """The option that fits best, by its index, and the frames and notes that show it, by their places from 1.

    `differs` is False if another option fits as well, `is_clear` True if further frames need not be looked at.
    """

    option: int
    evidence: tuple[int, ...]
    differs: bool
    is_clear: bool


def choose_option(
    environment: Environment, question: Question, frames: Sequence[ShownFrame], notes: Sequence[Note]
) -> Choice | None:
    """Choose an option of a question; None if nothing is shown. Places count the frames first, then the notes.

    Frames without vectors are not compared: None if no line is shown beside them.
    """
    if (stated := stated_option(question, notes)) is not None:
        option, at = stated
        return Choice(option, (len(frames) + at + 1,), differs=True, is_clear=True)
    if frames and environment.has_vectors:
        return _by_frames(environment, question, frames)
    return _by_words(environment, question, notes, len(frames)) if notes else None


def _by_frames(environment: Environment, question: Question, frames: Sequence[ShownFrame]) -> Choice:
    texts = statements(question)
    fits = fits_of_frames(environment, texts, frames)
    scores = np.sort(fits, axis=0)[::-1][:BEST_FRAMES].mean(axis=0)
    best, lead = _best(scores)
    ranked = np.argsort(-fits[:, best], kind="stable")[:BEST_FRAMES]
    evidence = sorted(int(at) + 1 for at in ranked if fits[at, best] >= fits[ranked[0], best] - CLEAR_LEAD)
    stands_out = deviations_of_frames(environment, [texts[best]], frames).max() >= CLEAR
    return Choice(best, tuple(evidence), differs=lead >= MIN_LEAD, is_clear=bool(stands_out and lead >= CLEAR_LEAD))


def _by_words(environment: Environment, question: Question, notes: Sequence[Note], before: int) -> Choice:
    """Choose an option by notes, whose places count those `before` them."""
    fits = shares(statements(question), notes)
    scores = fits.mean(axis=0)
    meanings = meanings_of_notes(environment, question.options, notes)
    if meanings is not None:
        scores = scores + np.sort(meanings, axis=0)[::-1][:BEST_LINES].mean(axis=0)
        fits = fits + meanings
    best, lead = _best(scores)
    ranked = np.argsort(-fits[:, best], kind="stable")[:MOST_EVIDENCE]
    evidence = sorted(before + int(at) + 1 for at in ranked if fits[at, best] > 0)
    return Choice(best, tuple(evidence), differs=bool(evidence) and lead > 0, is_clear=False)


def _best(scores: Floats) -> tuple[int, float]:
    best = int(np.argmax(scores))
    return best, float(scores[best] - np.delete(scores, best).max())


def meanings_of_notes(environment: Environment, texts: Sequence[str], notes: Sequence[Note]) -> Floats | None:
    """Return the cosine [n, t] of each note and each text; None unless the library has vectors of all these lines."""
    videos = list(dict.fromkeys(note.video_id for note in notes))
    places = {  # by their times: a prompt may quote the beginning of a line alone
        (video_id, line.source, line.start_s): at
        for video_id in videos
        for at, line in enumerate(environment.source.lines(video_id))
    }
    found = np.full((len(notes), len(texts)), np.nan)
    for column, text in enumerate(texts):
        cosines = {video_id: environment.source.line_cosines(text, video_id) for video_id in videos}
        for row, note in enumerate(notes):
            known, at = cosines[note.video_id], places.get((note.video_id, note.source, note.start_s))
            if known is not None and at is not None:
                found[row, column] = known[at]
    return None if np.isnan(found).any() else found


def fits_of_frames(environment: Environment, texts: Sequence[str], frames: Sequence[ShownFrame]) -> Floats:
    """Return how well each frame fits each text [n, t], in robust deviations of the texts' cosines in its videos."""
    videos = _videos(frames)
    every = np.concatenate([_cosines(environment, texts, each) for each in videos])
    usual, scale = middle_and_scale(every)
    fits: Floats = (cosines_of_frames(environment, texts, frames) - USUAL_SHARE * usual) / max(scale, FLAT)
    return fits


def cosines_of_frames(environment: Environment, texts: Sequence[str], frames: Sequence[ShownFrame]) -> Floats:
    """Return the cosine [n, t] of each frame and each text."""
    return _of_frames(environment, frames, len(texts), lambda video_id: _cosines(environment, texts, video_id))


def deviations_of_frames(environment: Environment, texts: Sequence[str], frames: Sequence[ShownFrame]) -> Floats:
    """Return the deviation [n, t] by which each frame, or a line at its time, matches each text."""
    videos = _videos(frames)

    def matches(video_id: str) -> Floats:
        deviations: Floats = np.maximum(*environment.matches(texts, video_id, videos, "all"))
        return deviations

    return _of_frames(environment, frames, len(texts), matches)


def _cosines(environment: Environment, texts: Sequence[str], video_id: str) -> Floats:
    return np.stack([environment.cosines(text, video_id) for text in texts], axis=1)


def _videos(frames: Sequence[ShownFrame]) -> list[str]:
    return list(dict.fromkeys(frame.video_id for frame in frames))


def _of_frames(
    environment: Environment, frames: Sequence[ShownFrame], width: int, values_of: Callable[[str], Floats]
) -> Floats:
    """Return the rows of frames [n, `width`] among the values of all stored frames of their videos."""
    rows = np.zeros((len(frames), width))
    for video_id in _videos(frames):
        here = [at for at, frame in enumerate(frames) if frame.video_id == video_id]
        stored = np.searchsorted(environment.frame_times(video_id).frame_no, [frames[at].frame_no for at in here])
        rows[here] = values_of(video_id)[stored]
    return rows
