"""The request of EEA that scores segments and proposes queries from the same frames, in one reply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kinodex.agent.replies.schema import Bounds
from kinodex.agent.requests.tree import MAX_QUERIES, ScoresAndQueries, ScoreSegments, SegmentScores, check_queries


@dataclass(frozen=True, kw_only=True)
class ScoreAndPropose(ScoreSegments):
    """Score `segments`, and name texts to search for that are seen in the frames at their borders and not yet `known`.

    The paper asks for both at once, in two calls of the same frames (EEA, Algorithm 1, lines 12 and 22).
    """

    Reply = ScoresAndQueries
    template: ClassVar[str] = "score_and_propose"
    known: tuple[str, ...] = ()

    def bounds(self) -> Bounds:
        return {**super().bounds(), "queries": {"maxItems": MAX_QUERIES}}

    def check(self, reply: SegmentScores) -> None:
        super().check(reply)
        if isinstance(reply, ScoresAndQueries):
            check_queries(reply.queries)
