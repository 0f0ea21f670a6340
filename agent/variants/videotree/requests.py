"""The request of VideoTree: the relevance of each cluster (arXiv 2405.19209, section 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, Field, model_validator

from agent.core.protocol import REASONING_NAMES, Reasoned, Reply, Request, described
from agent.core.question import Note, Question, Video
from agent.core.reply_schema import Bounds, exactly
from agent.core.reply_values import WholeNumber, whole_number
from agent.requests.chapters import WithChapters
from agent.requests.parts import check_numbers, join_parts, missing_positions

HIGHLY_RELEVANT = 3
"""The top of the scale: 1, not relevant; 2, somewhat relevant; 3, highly relevant."""
Level = Annotated[int, Field(ge=1, le=HIGHLY_RELEVANT), BeforeValidator(whole_number)]


class Relevance(Reply):
    """The relevance of one cluster, from 1 to 3."""

    model_config = described("How relevant one cluster is, from 1 to 3.")

    cluster: WholeNumber = Field(description="its number")
    relevance: Level = Field(description="a whole number")


class Relevances(Reasoned):
    """One relevance for each cluster, by its number."""

    clusters: list[Relevance] = Field(description="one for each cluster")

    @model_validator(mode="before")
    @classmethod
    def _accept(cls, value: object) -> object:
        if isinstance(value, list):
            return {"clusters": value}
        if isinstance(value, Mapping) and "clusters" not in value:
            named = {name: each for name, each in value.items() if str(name).casefold() not in REASONING_NAMES}
            return {**value, "clusters": [{"cluster": name, "relevance": each} for name, each in named.items()]}
        return value


@dataclass(frozen=True, kw_only=True)
class JudgeRelevance(WithChapters, Request[Relevances]):
    """Rate the relevance of each cluster by the caption of the frame in its middle (section 3.1).

    `notes` are those captions, in time order: cluster 1 is the first note's.
    """

    Reply = Relevances
    template: ClassVar[str] = "judge_relevance"
    role: ClassVar[str] = "policy"
    question: Question
    videos: tuple[Video, ...]
    notes: tuple[Note, ...]

    def bounds(self) -> Bounds:
        return {"clusters": exactly(len(self.notes))}

    def example(self) -> Mapping[str, Any]:
        why = "Only the second one speaks of the meadow; the others are indoors."
        levels = [HIGHLY_RELEVANT if at == 1 else 1 for at in range(len(self.notes))]
        clusters = [{"cluster": number, "relevance": level} for number, level in enumerate(levels, start=1)]
        return {"reasoning": why, "clusters": clusters}

    def check(self, reply: Relevances) -> None:
        """A reply may leave clusters out, but not judge unknown ones, one twice, or none."""
        check_numbers("cluster", _numbers(reply), self._known)

    def missing(self, reply: Relevances) -> Self | None:
        rest = tuple(self.notes[at] for at in missing_positions(self._known, _numbers(reply)))
        return replace(self, notes=rest) if rest else None

    def join(self, reply: Relevances, rest: Relevances) -> Relevances:
        count = len(self.notes) - len(reply.clusters)
        clusters = join_parts("cluster", reply.clusters, rest.clusters, self._known, range(1, count + 1))
        return reply.model_copy(update={"clusters": clusters})

    @property
    def _known(self) -> range:
        return range(1, len(self.notes) + 1)


def _numbers(reply: Relevances) -> list[int]:
    return [each.cluster for each in reply.clusters]
