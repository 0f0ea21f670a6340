"""Replies of models. The JSON schemas fit strict mode: every key is required, none is free, extra ones are forbidden.

Accepted besides: the shapes that the papers' prompts ask for (EEA, Tables 7 to 11), such as `{"Segment 0":
{"explanation": ..., "score": 70}}`, `{"query1": ...}` and `{"Segment": 3}`, arrays of strings, and a bare
text ("B") as a decision to answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def _number(value: object) -> object:
    """The number in "85%", "85/100" or "Segment 3"; anything else as it is."""
    if isinstance(value, str) and (found := _NUMBER.search(value)):
        return found[0]
    return value


Score = Annotated[float, Field(ge=0, le=100), BeforeValidator(_number)]
SegmentNumber = Annotated[int, BeforeValidator(_number)]


def after_thought(text: str) -> str:
    """A reply's text without the reasoning that a model writes before it."""
    return text.rpartition("</think>")[2].strip()


class Reply(BaseModel):
    """A reply; unknown keys are dropped."""

    model_config = ConfigDict(extra="ignore", frozen=True, json_schema_extra={"additionalProperties": False})

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read the reply from a text with its thoughts, for requests of form "text"; raises `InvalidReply`."""
        raise NotImplementedError(f"{cls.__name__} is not asked for as text")


def described(text: str) -> ConfigDict:
    """Configure the description in a reply's schema: models read it, and cached replies and traces depend on it."""
    return ConfigDict(json_schema_extra={"additionalProperties": False, "description": text})


class SegmentScore(Reply):
    """The promise of one segment for the question, from 0 to 100, after its reason."""

    model_config = described("How much one segment promises for the question, from 0 to 100, and why.")

    segment: SegmentNumber
    explanation: str
    score: Score

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, value: object) -> object:
        return {"explanation": "", **value} if isinstance(value, dict) else value


class SegmentScores(Reply):
    """One score for each segment."""

    segments: list[SegmentScore]

    @model_validator(mode="before")
    @classmethod
    def _accept(cls, value: object) -> object:
        if isinstance(value, list):
            return {"segments": value}
        if isinstance(value, Mapping) and "segments" not in value:
            return {"segments": [_keyed_score(str(name), each) for name, each in value.items()]}
        return value


def _keyed_score(name: str, value: object) -> dict[str, object]:
    inner = value if isinstance(value, Mapping) else {"score": value}
    return {"segment": name, "explanation": "", **inner}


class Queries(Reply):
    """Short texts to look for in the video; the list may be empty."""

    queries: list[str]

    @model_validator(mode="before")
    @classmethod
    def _accept(cls, value: object) -> object:
        if isinstance(value, list):
            return {"queries": value}
        if isinstance(value, Mapping) and all(str(name).casefold().startswith("query") for name in value):
            return {"queries": list(value.values())}
        return value


class Answered(Reply):
    """An answer: the option's letter if there are options, else a text; and the frames it rests on."""

    option: str | None
    answer: str | None
    evidence: list[int]
    """Numbers of the shown frames (1 is the first) that the answer rests on."""


class Conclusion(Answered):
    """An answer from the frames at hand, or that they do not show enough."""

    action: Literal["answer", "insufficient_evidence"]

    @model_validator(mode="before")
    @classmethod
    def _accept(cls, value: object) -> object:
        return _decision(value)


class Decision(Answered):
    """The next step: explore one segment, answer, or report that the evidence is missing."""

    model_config = described(
        "What to do next: look closer at one segment, answer, or say that the evidence is not there."
    )

    action: Literal["explore", "answer", "insufficient_evidence"]
    segment: SegmentNumber | None

    @model_validator(mode="before")
    @classmethod
    def _accept(cls, value: object) -> object:
        return _decision(value)


def _decision(value: object) -> object:
    if isinstance(value, str) and value.strip():
        value = {"answer": value.strip(), "option": value.strip()}
    if not isinstance(value, Mapping):
        return value
    found = {str(key).casefold(): each for key, each in value.items()}
    if "action" not in found:
        found["action"] = "explore" if found.get("segment") is not None else "answer"
    blank: dict[str, object] = {"segment": None, "option": None, "answer": None, "evidence": []}
    return blank | {key: each for key, each in found.items() if each is not None}
