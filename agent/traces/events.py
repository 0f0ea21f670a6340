"""Events of a run, one class each: to show a run live, and to write its trace.

The names of the classes and fields are those of the trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kinodex.agent.answer import Answer
from kinodex.agent.answer_rules import USUAL, AnswerRules
from kinodex.agent.limits.budget import Budget
from kinodex.agent.protocol.exchange import Exchange
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.request import Request
from kinodex.agent.protocol.videos import Anchor, Segment, Video


@dataclass(frozen=True, slots=True)
class RunStarted:
    """All inputs of a run besides the replies of the models."""

    question: Question
    agent: str
    parameters: Mapping[str, Any]
    budget: Budget
    videos: tuple[Video, ...]
    space: str
    index_frames: int
    models: Mapping[str, str]
    rules: AnswerRules = USUAL


@dataclass(frozen=True, slots=True)
class Exchanged:
    """A request, and the reply to it, valid or not."""

    round: int
    model: str
    request: Request[Any]
    exchange: Exchange[Any]


@dataclass(frozen=True, slots=True)
class QueriesAdded:
    """New queries, and the anchors of all queries so far."""

    round: int
    queries: tuple[str, ...]
    anchors: tuple[Anchor, ...]


@dataclass(frozen=True, slots=True)
class Ranked:
    """The videos as the root's children, best first, with the similarities 0..1 of their best anchors."""

    segments: tuple[Segment, ...]
    similarities: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Expanded:
    """A segment was divided at `frames`, of which those numbered `anchor_frame_nos` were anchors."""

    round: int
    parent: Segment
    children: tuple[Segment, ...]
    frames: tuple[ShownFrame, ...]
    anchor_frame_nos: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CandidateScore:
    """Scores of a candidate: intrinsic reward 0..100 (None: unknown), query score and fused score 0..1."""

    number: int
    reward: float | None
    query_score: float
    fused: float
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class Scored:
    """All candidates after fusion; `entropy` is the weight of the query scores, None if nothing is fused."""

    round: int
    entropy: float | None
    candidates: tuple[CandidateScore, ...]


@dataclass(frozen=True, slots=True)
class Remembered:
    """Frames that entered the memory, and frames that left it."""

    round: int
    added: tuple[ShownFrame, ...]
    evicted: tuple[ShownFrame, ...]


@dataclass(frozen=True, slots=True)
class Acted:
    """A step of an agent with tools: its thought, the action with its arguments, and the notes that it gave.

    `problem` is the reason in one line why an action failed; "" if it did not.
    """

    round: int
    action: str
    arguments: Mapping[str, Any]
    thought: str = ""
    notes: tuple[Note, ...] = ()
    problem: str = ""
    words: str = ""
    """The step in plain words, of an agent from a file of a user's: who reads the trace does not run that code."""


@dataclass(frozen=True, slots=True)
class Assessed:
    """The confidence of an agent in its present answer, on its paper's own scale up to `most`."""

    round: int
    confidence: float
    most: float
    thought: str = ""


@dataclass(frozen=True, slots=True)
class Decided:
    """The next action; `segment` is the one to explore. `forced` if exploring was over."""

    round: int
    action: str
    segment: int | None
    forced: bool


@dataclass(frozen=True, slots=True)
class Finished:
    """The answer; always the last event."""

    answer: Answer


Event = (
    RunStarted
    | Exchanged
    | QueriesAdded
    | Ranked
    | Expanded
    | Scored
    | Remembered
    | Acted
    | Assessed
    | Decided
    | Finished
)
