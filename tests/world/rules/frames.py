"""Verdicts on frames: the statement behind a question that matches one of them best."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

import numpy as np

from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.question import Question
from kinodex.agent.videos.environment import Environment
from kinodex.agent.videos.scale import Floats
from tests.world.rules.quoted_lines import is_talk
from tests.world.rules.statements import SOON_S, Statements, Verdict, cloze_statements

MIN_VISIBLE = 2.5
"""Robust deviations from which on a statement counts as visible in a frame."""
MIN_ALIKE = 0.5
"""The share of the best match with a moment from which on a frame beside it shows the same moment."""
MIN_LEAD = 0.2
"""The lead over the second-best choice, in deviations, that settles a question."""
MIN_RELEVANT = 1.0
"""Below this no frame has to do with the question, and an answer would be invented."""


def judge_frames(environment: Environment, question: Question, frames: Sequence[ShownFrame]) -> Verdict:
    """Choose what the frames show best; without choices, check that they show the subject."""
    statements = cloze_statements(question)
    considered = _frames_in_question(environment, statements, frames)
    texts = statements.options or tuple(text for text in (statements.subject,) if text)
    if not considered or not texts or is_talk(question):
        return Verdict()
    found = match_frames(environment, texts, [frames[at] for at in considered])
    scores = found.max(axis=0)
    ordered = statements.order in ("first", "last") and statements.moment is None
    if ordered:
        scores = _earliest(found, [frames[at].time_s for at in considered], last=statements.order == "last")
    best = int(np.argmax(scores))
    lead = float(scores[best] - np.delete(scores, best).max(initial=0.0))
    if ordered and found.max(axis=0).min() < MIN_VISIBLE:
        lead = 0.0  # a choice that was not found yet may come before
    shown = found[:, best] >= found[:, best].max() - MIN_LEAD
    evidence = tuple(at + 1 for at, visible in zip(considered, shown, strict=True) if visible)
    score = float(found[:, best].max())
    return Verdict(best if score >= MIN_RELEVANT else None, score, lead, evidence)


def frames_settle(verdict: Verdict) -> bool:
    return verdict.score >= MIN_VISIBLE and verdict.lead >= MIN_LEAD


def find_moment(environment: Environment, statements: Statements, frames: Sequence[ShownFrame]) -> ShownFrame | None:
    """Find the frame that shows the moment from which a question measures time, if one does.

    Of several in a row it is the one next to what the question asks about: the last for what comes after the moment,
    the first for what comes before. The others show the moment too, and no answer.
    """
    if not statements.moment or not frames:
        return None
    found = match_frames(environment, [statements.moment], frames)[:, 0]
    best = int(np.argmax(found))
    if found[best] < MIN_VISIBLE:
        return None
    alike = max(MIN_VISIBLE, MIN_ALIKE * found[best])
    of_video = [at for at, frame in enumerate(frames) if frame.video_id == frames[best].video_id]
    in_order = sorted(of_video, key=lambda at: frames[at].time_s, reverse=statements.order == "before")
    row = takewhile(
        lambda at: found[at] >= alike and abs(frames[at].time_s - frames[best].time_s) <= SOON_S,
        in_order[in_order.index(best) :],
    )
    return frames[[*row][-1]]


def match_frames(environment: Environment, texts: Sequence[str], frames: Sequence[ShownFrame]) -> Floats:
    """Match each frame [n] with each text [t], in deviations on one scale: [n, t]."""
    found = np.zeros((len(frames), len(texts)))
    for video_id in {frame.video_id for frame in frames}:
        here = [at for at, frame in enumerate(frames) if frame.video_id == video_id]
        stored = environment.frame_times(video_id).frame_no
        rows = np.searchsorted(stored, [frames[at].frame_no for at in here])
        found[here] = environment.deviations(texts, video_id)[rows]
    return found


def _frames_in_question(environment: Environment, statements: Statements, frames: Sequence[ShownFrame]) -> list[int]:
    """Indices of frames that can hold the answer: all, or those soon after or before the moment in the question."""
    if statements.moment is None:
        return list(range(len(frames)))
    then = find_moment(environment, statements, frames)
    if then is None:
        return []
    low, high = (0.0, SOON_S) if statements.order == "after" else (-SOON_S, 0.0)
    return [
        at
        for at, frame in enumerate(frames)
        if frame.video_id == then.video_id and low <= frame.time_s - then.time_s <= high and frame is not then
    ]


def _earliest(found: Floats, times_s: Sequence[float], *, last: bool) -> Floats:
    """Scores that put the choice seen first (or last) on top: each place in that order leads by twice `MIN_LEAD`."""
    best = found.argmax(axis=0)
    when = [times_s[at] if found[at, choice] >= MIN_VISIBLE else np.inf for choice, at in enumerate(best)]
    order = np.argsort([-time_s if last and np.isfinite(time_s) else time_s for time_s in when], kind="stable")
    scores = np.empty(len(order))
    # A single `MIN_LEAD` would fall short of it by rounding.
    scores[order] = 2 * MIN_LEAD * np.arange(len(order), 0, -1)
    return scores
