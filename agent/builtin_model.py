"""A model without a language model: it answers typed requests from the library's own frame embeddings.

It turns a question into statements (`statements`) and compares them with the frames that a request shows,
in the library's space. A weak but real baseline: perception is the space's, the reasoning is a few rules.
Nothing is seen but the frames shown; a similarity is judged against that statement's distribution over the
video (`Environment.similarities`), which is what a reader of the index knows of it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent.environment import Environment
from agent.model import Exchange, R, Request, ShownFrame
from agent.question import Question, ScoredSegment, Segment
from agent.requests import AnswerFrames, Decide, DiscoverQueries, ProposeQueries, ScoreSegments
from agent.statements import Statements, choices, statements

SEEN = 0.6
"""A statement with this similarity is taken to be visible."""
CLEAR = 0.15
"""The lead over the second-best option that settles a question."""
BELIEVABLE = 0.1
"""Below this nothing shown has to do with the question, and even a forced answer would be made up."""
SOON_S = 60.0
"""How far "after" and "before" reach from the moment they speak of."""
QUERIES = 5

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Verdict:
    """The best choice, its score and lead over the second, and the frames (numbers from 1) that show it."""

    choice: int | None
    score: float
    lead: float
    evidence: list[int]


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
            case DiscoverQueries():
                return {"queries": statements(request.question).queries[:QUERIES] or [request.question.text]}
            case ProposeQueries():
                return self._propose(request)
            case ScoreSegments():
                return {"segments": [self._score(request, segment) for segment in request.segments]}
            case Decide():
                return self._decide(request)
            case AnswerFrames():
                return self._answer(request.question, request.frames)
        raise TypeError(f"the builtin model cannot answer a {type(request).__name__}")

    def _propose(self, request: ProposeQueries) -> dict[str, Any]:
        """Statements that discovery had no room for; it has no words for what else a frame shows."""
        known = {query.casefold() for query in request.known}
        asked = statements(request.question)
        return {"queries": [query for query in asked.queries if query not in known][:QUERIES]}

    def _score(self, request: ScoreSegments, segment: Segment) -> dict[str, Any]:
        """The best match of any statement among the frames at the segment's borders."""
        wanted = statements(request.question).queries
        at_border = [frame for frame in request.frames if frame.video_id == segment.video_id
                     and frame.time_s in (segment.start_s, segment.end_s)]
        best = max(((float(self._similarity(text, frame)), text) for frame in at_border for text in wanted),
                   default=(0.0, ""))
        return {"segment": segment.number, "score": round(100 * best[0]),
                "explanation": f"{best[1]!r} matches a border by {best[0]:.2f}" if best[1] else ""}

    def _decide(self, request: Decide) -> dict[str, Any]:
        open_ones = [each for each in request.candidates if each.explorable]
        if request.must_answer or not open_ones:
            return self._answer(request.question, request.frames)
        asked = statements(request.question)
        verdict = self._judge(request.question, asked, request.frames)
        if verdict.score >= SEEN and verdict.lead >= CLEAR:
            return self._answer(request.question, request.frames)
        return {"action": "explore", "segment": self._next(asked, open_ones, request.frames)}

    def _next(self, asked: Statements, open_ones: Sequence[ScoredSegment], frames: Sequence[ShownFrame]) -> int:
        """The highest score, but beside the moment that the question speaks of once that has been seen."""
        moment = self._moment(asked, frames)
        if moment is not None:
            beside = [each for each in open_ones if each.segment.video_id == moment.video_id and moment.time_s == (
                each.segment.start_s if asked.order == "after" else each.segment.end_s)]
            if beside:
                return beside[0].segment.number
        return max(open_ones, key=lambda each: each.score or 0.0).segment.number

    def _answer(self, question: Question, frames: Sequence[ShownFrame]) -> dict[str, Any]:
        verdict = self._judge(question, statements(question), frames)
        if verdict.choice is None or verdict.score < BELIEVABLE:
            return {"action": "insufficient_evidence"}
        named = choices(question)
        letter = question.lettered[verdict.choice][0] if question.options else None
        seen_s = frames[verdict.evidence[0] - 1].time_s
        text = named[verdict.choice] if named else f"at {seen_s:.1f} s"
        return {"action": "answer", "option": letter, "answer": text, "evidence": verdict.evidence}

    def _judge(self, question: Question, asked: Statements, frames: Sequence[ShownFrame]) -> _Verdict:
        """Which choice the frames in question show best; without choices, whether they show the subject."""
        looked_at = self._in_question(asked, frames)
        texts = asked.options or ((asked.subject,) if asked.subject else ())
        if not looked_at or not texts:
            return _Verdict(None, 0.0, 0.0, [])
        scores = np.asarray([[self._similarity(text, frames[at]) for text in texts] for at in looked_at])
        per_choice = scores.max(axis=0)
        best = int(np.argmax(per_choice))
        others = np.delete(per_choice, best)
        lead = float(per_choice[best] - others.max(initial=0.0))
        visible = scores[:, best] >= per_choice[best] - CLEAR
        evidence = [at + 1 for at, shown in zip(looked_at, visible, strict=True) if shown]
        return _Verdict(best, float(per_choice[best]), lead, evidence)

    def _in_question(self, asked: Statements, frames: Sequence[ShownFrame]) -> list[int]:
        """Indices of the frames that can hold the answer: all, or those soon after (before) the moment, if seen."""
        if asked.moment is None:
            return list(range(len(frames)))
        moment = self._moment(asked, frames)
        if moment is None:
            return []
        reach_s = SOON_S if asked.order == "after" else -SOON_S
        low, high = sorted((moment.time_s, moment.time_s + reach_s))
        return [at for at, frame in enumerate(frames)
                if frame.video_id == moment.video_id and low <= frame.time_s <= high and frame is not moment]

    def _moment(self, asked: Statements, frames: Sequence[ShownFrame]) -> ShownFrame | None:
        if not asked.moment or not frames:
            return None
        moment = asked.moment
        best = max(frames, key=lambda frame: self._similarity(moment, frame))
        return best if self._similarity(moment, best) >= SEEN else None

    def _similarity(self, text: str, frame: ShownFrame) -> float:
        stored = self.environment.vectors(frame.video_id)
        at = int(np.searchsorted(stored.frame_no, frame.frame_no))
        return float(self.environment.similarities(text, frame.video_id)[at])
