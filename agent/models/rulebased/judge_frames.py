"""Judging frames: which statement behind a question they match best, in the library's space.

How strong a match is, is judged by how that statement matches the whole video (`Environment.deviations`), as anyone
can who searches the index; what is judged are the frames that a request shows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agent.core.protocol import ShownFrame
from agent.core.question import Question
from agent.environment import Environment, Floats
from agent.models.rulebased.statements import Statements, statements
from agent.models.rulebased.verdict import SOON_S, Verdict

SEEN = 2.5
"""Robust deviations from which on a statement counts as visible in a frame."""
CLEAR = 0.2
"""The lead over the second-best choice, in deviations, that settles a question."""
BELIEVABLE = 1.0
"""Below this nothing shown has to do with the question, and an answer would be made up."""


def judge(environment: Environment, question: Question, frames: Sequence[ShownFrame]) -> Verdict:
    """Which choice the frames in question show best; without choices, whether they show the subject."""
    asked = statements(question)
    looked_at = _in_question(environment, asked, frames)
    texts = asked.options or tuple(text for text in (asked.subject,) if text)
    if not looked_at or not texts:
        return Verdict()
    found = matches(environment, texts, [frames[at] for at in looked_at])
    scores = found.max(axis=0)
    ordered = asked.order in ("first", "last") and asked.moment is None
    if ordered:
        scores = _earliest(found, [frames[at].time_s for at in looked_at], last=asked.order == "last")
    best = int(np.argmax(scores))
    lead = float(scores[best] - np.delete(scores, best).max(initial=0.0))
    if ordered and found.max(axis=0).min() < SEEN:
        lead = 0.0  # one that was not found yet may come before
    shown = found[:, best] >= found[:, best].max() - CLEAR
    evidence = tuple(at + 1 for at, visible in zip(looked_at, shown, strict=True) if visible)
    score = float(found[:, best].max())
    return Verdict(best if score >= BELIEVABLE else None, score, lead, evidence)


def settled(verdict: Verdict) -> bool:
    """Whether the frames show one choice, and clearly."""
    return verdict.score >= SEEN and verdict.lead >= CLEAR


def moment(environment: Environment, asked: Statements, frames: Sequence[ShownFrame]) -> ShownFrame | None:
    """The frame that shows the moment that a question measures time from, if one does."""
    if not asked.moment or not frames:
        return None
    found = matches(environment, [asked.moment], frames)[:, 0]
    best = int(np.argmax(found))
    return frames[best] if found[best] >= SEEN else None


def matches(environment: Environment, texts: Sequence[str], frames: Sequence[ShownFrame]) -> Floats:
    """How well each frame [n] matches each text [t], in deviations on one scale: [n, t]."""
    found = np.zeros((len(frames), len(texts)))
    for video_id in {frame.video_id for frame in frames}:
        here = [at for at, frame in enumerate(frames) if frame.video_id == video_id]
        stored = environment.vectors(video_id).frame_no
        rows = np.searchsorted(stored, [frames[at].frame_no for at in here])
        found[here] = environment.deviations(texts, video_id)[rows]
    return found


def _in_question(environment: Environment, asked: Statements, frames: Sequence[ShownFrame]) -> list[int]:
    """Indices of frames that can hold the answer: all, or those soon after or before the moment asked about."""
    if asked.moment is None:
        return list(range(len(frames)))
    then = moment(environment, asked, frames)
    if then is None:
        return []
    low, high = (0.0, SOON_S) if asked.order == "after" else (-SOON_S, 0.0)
    return [
        at
        for at, frame in enumerate(frames)
        if frame.video_id == then.video_id and low <= frame.time_s - then.time_s <= high and frame is not then
    ]


def _earliest(found: Floats, times_s: Sequence[float], *, last: bool) -> Floats:
    """Scores that put the choice seen first (or last) on top: each place in that order leads by twice `CLEAR`."""
    best = found.argmax(axis=0)
    when = [times_s[at] if found[at, choice] >= SEEN else np.inf for choice, at in enumerate(best)]
    order = np.argsort([-time_s if last and np.isfinite(time_s) else time_s for time_s in when], kind="stable")
    scores = np.empty(len(order))
    # Once `CLEAR` would fall short of it by rounding.
    scores[order] = 2 * CLEAR * np.arange(len(order), 0, -1)
    return scores
