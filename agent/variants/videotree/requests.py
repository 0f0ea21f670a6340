"""The request of VideoTree: the relevance of each cluster (arXiv 2405.19209, section 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field, model_validator

from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.reply import Reasoned, Reply, described
from kinodex.agent.replies.schema import REASONING_NAMES
from kinodex.agent.replies.values import WholeNumber, whole_number
from kinodex.agent.requests.in_parts import InParts
from kinodex.agent.requests.run_request import RunRequest

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
class JudgeRelevance(RunRequest[Relevances], InParts[Relevances]):
    """Rate the relevance of each cluster by the caption of the frame in its middle (section 3.1).

    `notes` are those captions, in time order: cluster 1 is the first note's.
    """

    Reply = Relevances
    template: ClassVar[str] = "judge_relevance"
    parts: ClassVar[tuple[str, str, str]] = ("notes", "clusters", "cluster")
    notes: tuple[Note, ...]
