from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from kinodex.agent.protocol import Exchange, Question, R, Request, ScoredSegment, Segment, Video
from kinodex.agent.requests.tree import Decide, Decision, ScoreSegments, SegmentScores
from tests.bench.evaluation import RestlessModel

VIDEO = Video("v", "film", 0.0, 60.0)
PARTS = tuple(Segment(number, "v", 20.0 * number, 20.0 * number + 20) for number in range(3))


@dataclass(frozen=True)
class Scorer:
    """Answers every decision at once, and scores with no reasons."""

    name: str = "scorer"
    has_language: bool = True

    async def ask(self, request: Request[R]) -> Exchange[R]:
        reply: dict[str, object]
        if isinstance(request, Decide):
            reply = {"action": "insufficient_evidence", "segment": None, "option": None, "answer": None, "evidence": []}
        else:
            reply = {"segments": [{"segment": 1, "explanation": "", "score": 30}]}
        return Exchange(request.Reply.model_validate(reply), None)


def test_it_explores_the_best_open_segment_until_it_must_answer() -> None:
    candidates = tuple(
        ScoredSegment(part, score, explorable=part.number != 2)
        for part, score in zip(PARTS, (0.2, 0.5, 0.9), strict=True)
    )
    request = Decide(question=Question("What?"), videos=(VIDEO,), candidates=candidates, frames=())
    assert _decide(request).segment == 1
    assert _decide(replace(request, must_answer=True)).action == "insufficient_evidence"
    assert _decide(replace(request, candidates=())).action == "insufficient_evidence"


def test_scores_get_reasons_of_usual_length() -> None:
    request = ScoreSegments(question=Question("What?"), videos=(VIDEO,), segments=PARTS, frames=())
    reply = asyncio.run(RestlessModel(Scorer()).ask(request)).reply
    assert isinstance(reply, SegmentScores)
    assert "segment 1" in reply.segments[0].model_dump_json() and len(reply.segments[0].model_dump_json()) > 150


def _decide(request: Decide) -> Decision:
    reply = asyncio.run(RestlessModel(Scorer()).ask(request)).reply
    assert reply is not None
    return reply
