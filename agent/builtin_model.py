"""A model without a language model: it answers typed requests from the library's own frame embeddings.

It turns a question into statements (`statements`) and compares them with the frames that a request shows, in the
library's space. A weak but real baseline: perception is the space's, and the reasoning is a few rules. It looks at
no frame that was not shown to it; how strong a match is, it judges by how that statement matches the whole video
(`Environment.deviations`), as anyone can who searches the index.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent.environment import Environment, calibrate
from agent.model import Exchange, R, Request, ShownFrame
from agent.question import Question, ScoredSegment
from agent.requests.answers import AnswerFrames
from agent.requests.search import Decide, DiscoverQueries, ProposeQueries, ScoreSegments
from agent.statements import Statements, choices, statements

SEEN = 2.5
"""Robust deviations from which on a statement counts as visible in a frame."""
CLEAR = 0.2
"""The lead over the second-best choice, in deviations, that settles a question."""
BELIEVABLE = 1.0
"""Below this nothing shown has to do with the question, and an answer would be made up."""
SOON_S = 60.0
"""How far "after" and "before" reach from the moment they speak of."""
QUERIES = 5

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Verdict:
    """The best choice, its score and lead over the second in deviations, and the frames (from 1) that show it."""

    choice: int | None = None
    score: float = 0.0
    lead: float = 0.0
    evidence: tuple[int, ...] = ()


class BuiltinModel:
    """Answers from the environment's vectors; its replies cost no tokens."""

    name = "builtin"

    def __init__(self, environment: Environment) -> None:
        self.environment = environment

    async def ask(self, request: Request[R]) -> Exchange[R]:
        started = time.perf_counter()
        reply = request.Reply.model_validate(self._reply(request))
        return Exchange(reply, None, raw=reply.model_dump_json(), seconds=time.perf_counter() - started)

    def _reply(self, request: Request[Any]) -> dict[str, Any]:
        match request:
            case DiscoverQueries(question=question):
                return {"queries": statements(question).queries[:QUERIES] or (question.text,)}
            case ProposeQueries():
                return self._propose(request)
            case ScoreSegments():
                return {"segments": self._score(request)}
            case Decide():
                return self._decide(request)
            case AnswerFrames(question=question, frames=frames):
                return self._answer(question, self._judge(question, frames), frames)
        raise TypeError(f"the builtin model cannot answer a {type(request).__name__}")

    def _propose(self, request: ProposeQueries) -> dict[str, Any]:
        """Statements that discovery left out; it has no words for anything else that a frame shows."""
        known = {query.casefold() for query in request.known}
        asked = statements(request.question)
        return {"queries": [text for text in (*asked.queries, *asked.options) if text not in known][:QUERIES]}

    def _score(self, request: ScoreSegments) -> list[dict[str, Any]]:
        """How well the frames at each segment's borders match the statement that they match best."""
        wanted = statements(request.question).queries or (request.question.text,)
        matches = self._matches(wanted, request.frames)
        scores: list[dict[str, Any]] = []
        for part in request.segments:
            beside = [
                at
                for at, frame in enumerate(request.frames)
                if frame.video_id == part.video_id and frame.time_s in (part.start_s, part.end_s)
            ]
            at, text = max(
                ((at, text) for at in beside for text in range(len(wanted))), key=lambda pair: float(matches[pair])
            )
            score = round(100 * float(calibrate(matches[at, text])))
            explanation = f"{wanted[text]!r}, perhaps" if score else ""
            scores.append({"segment": part.number, "score": score, "explanation": explanation})
        return scores

    def _decide(self, request: Decide) -> dict[str, Any]:
        verdict = self._judge(request.question, request.frames)
        open_ones = [each for each in request.candidates if each.explorable]
        settled = verdict.score >= SEEN and verdict.lead >= CLEAR
        if settled or request.must_answer or not open_ones:
            return self._answer(request.question, verdict, request.frames)
        return {"action": "explore", "segment": self._next(request.question, open_ones, request.frames)}

    def _next(self, question: Question, open_ones: Sequence[ScoredSegment], frames: Sequence[ShownFrame]) -> int:
        """The segment with the highest score, or the one beside the moment that the question speaks of."""
        asked = statements(question)
        moment = self._moment(asked, frames)
        if moment is not None:
            for each in open_ones:
                border_s = each.segment.start_s if asked.order == "after" else each.segment.end_s
                if each.segment.video_id == moment.video_id and border_s == moment.time_s:
                    return each.segment.number
        # Both sides of an anchor have its score: the longer one has more to show.
        return max(
            open_ones, key=lambda each: (each.score or 0.0, each.segment.end_s - each.segment.start_s)
        ).segment.number

    def _answer(self, question: Question, verdict: _Verdict, frames: Sequence[ShownFrame]) -> dict[str, Any]:
        if verdict.choice is None or verdict.score < BELIEVABLE:
            return {"action": "insufficient_evidence"}
        named = choices(question)
        letter = question.lettered[verdict.choice][0] if question.options else None
        seen_s = frames[verdict.evidence[0] - 1].time_s
        text = named[verdict.choice] if named else f"{statements(question).subject} at {seen_s:.1f} s"
        return {"action": "answer", "option": letter, "answer": text, "evidence": verdict.evidence}

    def _judge(self, question: Question, frames: Sequence[ShownFrame]) -> _Verdict:
        """Which choice the frames in question show best; without choices, whether they show the subject."""
        asked = statements(question)
        looked_at = self._in_question(asked, frames)
        texts = asked.options or tuple(text for text in (asked.subject,) if text)
        if not looked_at or not texts:
            return _Verdict()
        matches = self._matches(texts, [frames[at] for at in looked_at])
        scores = matches.max(axis=0)
        ordered = asked.order in ("first", "last") and asked.moment is None
        if ordered:
            scores = _earliest(matches, [frames[at].time_s for at in looked_at], last=asked.order == "last")
        best = int(np.argmax(scores))
        lead = float(scores[best] - np.delete(scores, best).max(initial=0.0))
        if ordered and matches.max(axis=0).min() < SEEN:
            lead = 0.0  # one that was not found yet may come before
        shown = matches[:, best] >= matches[:, best].max() - CLEAR
        evidence = tuple(at + 1 for at, visible in zip(looked_at, shown, strict=True) if visible)
        return _Verdict(best, float(matches[:, best].max()), lead, evidence)

    def _in_question(self, asked: Statements, frames: Sequence[ShownFrame]) -> list[int]:
        """Indices of frames that can hold the answer: all, or those soon after or before the moment asked about."""
        if asked.moment is None:
            return list(range(len(frames)))
        moment = self._moment(asked, frames)
        if moment is None:
            return []
        low, high = (0.0, SOON_S) if asked.order == "after" else (-SOON_S, 0.0)
        return [
            at
            for at, frame in enumerate(frames)
            if frame.video_id == moment.video_id and low <= frame.time_s - moment.time_s <= high and frame is not moment
        ]

    def _moment(self, asked: Statements, frames: Sequence[ShownFrame]) -> ShownFrame | None:
        if not asked.moment or not frames:
            return None
        matches = self._matches([asked.moment], frames)[:, 0]
        best = int(np.argmax(matches))
        return frames[best] if matches[best] >= SEEN else None

    def _matches(self, texts: Sequence[str], frames: Sequence[ShownFrame]) -> Floats:
        """How well each frame [n] matches each text [t], in deviations on one scale: [n, t]."""
        matches = np.zeros((len(frames), len(texts)))
        for video_id in {frame.video_id for frame in frames}:
            here = [at for at, frame in enumerate(frames) if frame.video_id == video_id]
            stored = self.environment.vectors(video_id).frame_no
            rows = np.searchsorted(stored, [frames[at].frame_no for at in here])
            matches[here] = self.environment.deviations(texts, video_id)[rows]
        return matches


def _earliest(matches: Floats, times_s: Sequence[float], *, last: bool) -> Floats:
    """Scores that put the choice seen first (or last) on top: one step of `CLEAR` for each place in that order."""
    best = matches.argmax(axis=0)
    when = [times_s[at] if matches[at, choice] >= SEEN else np.inf for choice, at in enumerate(best)]
    order = np.argsort([-time_s if last and np.isfinite(time_s) else time_s for time_s in when], kind="stable")
    scores = np.empty(len(order))
    scores[order] = CLEAR * np.arange(len(order), 0, -1)
    return scores
