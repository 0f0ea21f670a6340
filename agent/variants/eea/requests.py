"""The request of EEA that scores segments and proposes queries from the same frames, in one reply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import Field, model_validator

from agent.core.protocol import ShownFrame
from agent.core.reply_schema import Bounds
from agent.requests.tree import MAX_QUERIES, ScoreSegments, SegmentScores, check_queries


class ScoresAndQueries(SegmentScores):
    """One score for each segment, and texts to search for; the list of texts may be empty."""

    queries: list[str] = Field(default=[], description="the search texts")

    @model_validator(mode="before")
    @classmethod
    def _read_queries(cls, value: object) -> object:
        """Read queries by name, "query1" and so on, as the paper's prompt has them."""
        if not isinstance(value, Mapping) or "queries" in value:
            return value
        named = [name for name in value if str(name).casefold().startswith("query")]
        kept = {name: each for name, each in value.items() if name not in named}
        return {**kept, "queries": [value[name] for name in named]}


@dataclass(frozen=True, kw_only=True)
class ScoreAndPropose(ScoreSegments):
    """Score `segments`, and name texts to search for that are seen in the frames at their borders and not yet `known`.

    The paper asks for both at once, in two calls of the same frames (EEA, Algorithm 1, lines 12 and 22).
    """

    Reply = ScoresAndQueries
    template: ClassVar[str] = "score_and_propose"
    known: tuple[str, ...] = ()

    @property
    def new_frames(self) -> tuple[ShownFrame, ...]:
        """The frames at the borders of the segments to be scored."""
        ends = {(part.video_id, time_s) for part in self.segments for time_s in (part.start_s, part.end_s)}
        return tuple(frame for frame in self.frames if (frame.video_id, frame.time_s) in ends)

    def bounds(self) -> Bounds:
        return {**super().bounds(), "queries": {"maxItems": MAX_QUERIES}}

    def example(self) -> Mapping[str, Any]:
        return {**super().example(), "queries": ["scoreboard beside the meadow"]}

    def check(self, reply: SegmentScores) -> None:
        super().check(reply)
        if isinstance(reply, ScoresAndQueries):
            check_queries(reply.queries)
