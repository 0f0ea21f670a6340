"""Requests of EEA: the reward model's, the policy's, and the query update (Tables 7, 8, 9 and 11).

The query discovery of Table 10 is `DiscoverQueries`, by which other agents choose among several videos.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.request import Request
from kinodex.agent.replies.schema import Bounds
from kinodex.agent.requests.tree import MAX_QUERIES, Decide, Queries, ScoreSegments, check_queries


@dataclass(frozen=True, kw_only=True)
class RewardSegments(ScoreSegments):
    """Explain and score each child of the segment that was opened, in view of all scores so far (Tables 7 and 8)."""

    template: ClassVar[str] = "eea_reward"


@dataclass(frozen=True, kw_only=True)
class SelectSegment(Decide):
    """Answer, or select a segment by the fused scores and the frames in the memory (Table 9)."""

    template: ClassVar[str] = "eea_select"


@dataclass(frozen=True, kw_only=True)
class ProposeQueries(Request[Queries]):
    """Name further texts to search for, seen in `frames` and not yet `known` (section 3.1, Table 11)."""

    Reply = Queries
    template: ClassVar[str] = "eea_propose"
    role: ClassVar[str] = "policy"
    question: Question
    known: tuple[str, ...]
    frames: tuple[ShownFrame, ...]

    def bounds(self) -> Bounds:
        return {"queries": {"maxItems": MAX_QUERIES}}

    def check(self, reply: Queries) -> None:
        check_queries(reply.queries)
