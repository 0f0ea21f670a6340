"""Requests of a run as a model receives them, and mutations of them that a comparison with a paper has to catch.

A transcription of a paper owns all of its constants and gives replies as a table; nothing in it comes from the agent.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kinodex.agent.answer import Answer
from kinodex.agent.answer_rules import AnswerRules
from kinodex.agent.models.reply_parser import parse_reply
from kinodex.agent.prompts.rendering import render
from kinodex.agent.protocol.exchange import Exchange
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.reply import R
from kinodex.agent.protocol.request import Request
from kinodex.agent.videos.environment import Environment
from tests.support.runs.kite_runs import asked

TO_THE_LETTER = AnswerRules(force_choice=False)
"""A run ends as the algorithm does, also without an answer."""
Replies = Mapping[str, Sequence[Any]]
"""The replies to each kind of request, in order."""
CURTAILED = (
    r"\bat once\b|whatever you see|do not explore|\bhurry\b|as few \w+ as possible|"
    r"one to three|(at most|up to|no more than) \w+ (plain |short )*(words|sentences)|short sentences?|in few words"
)
"""What no paper asks for: to answer before the evidence is there, or to reason in so many words."""


@dataclass(frozen=True)
class Sent:
    """A request: its prompt, its frames' times, how it is sampled, and the conversation after the prompt.

    A turn is who said it, "tool" for a tool's result, and its text.
    """

    kind: str
    prompt: str
    frames_s: tuple[float, ...]
    temperature: float
    turns: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Conversation:
    """All requests of a run, in order, and its answer."""

    sent: tuple[Sent, ...]
    answer: Answer

    def of(self, kind: str) -> list[Sent]:
        return [each for each in self.sent if each.kind == kind]


@dataclass(frozen=True)
class Mutation:
    """A deliberate mistake: of the agent's settings, or of what it sends."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    kind: str = ""
    changes: Callable[[Sent], Sent] = lambda sent: sent

    def __str__(self) -> str:
        return self.name

    def of(self, conversation: Conversation) -> Conversation:
        """The conversation with the mistake in every request of its kind."""
        sent = tuple(self.changes(each) if each.kind == self.kind else each for each in conversation.sent)
        return replace(conversation, sent=sent)


def prompting(name: str, kind: str, text: str = "Answer at once, whatever you see.") -> Mutation:
    return Mutation(name, kind=kind, changes=lambda sent: replace(sent, prompt=f"{sent.prompt}\n\n{text}"))


def without(name: str, kind: str, words: str) -> Mutation:
    return Mutation(name, kind=kind, changes=lambda sent: replace(sent, prompt=sent.prompt.replace(words, "")))


def sampled_at(temperature: float, kind: str) -> Mutation:
    name = f"{kind} at a temperature of {temperature}"
    return Mutation(name, kind=kind, changes=lambda sent: replace(sent, temperature=temperature))


def converse(
    environment: Environment,
    agent: str,
    question: Question,
    replies: Replies,
    rules: AnswerRules = TO_THE_LETTER,
    **settings: Any,
) -> Conversation:
    """Run an agent whose models reply from a table."""
    model = _Table(replies)
    found = asked(environment, model, agent, question, settings=settings, rules=rules)
    return Conversation(tuple(map(_sent, model.requests)), found.answer)


class _Table:
    """A model that replies from a table; its texts are read as those of a server are."""

    name, has_language = "table", True

    def __init__(self, replies: Replies) -> None:
        self.left: dict[str, Iterator[Any]] = {kind: iter(said) for kind, said in replies.items()}
        self.requests: list[Request[Any]] = []

    async def ask(self, request: Request[R]) -> Exchange[R]:
        self.requests.append(request)
        said = next(self.left.get(type(request).__name__, iter(())), None)
        assert said is not None, f"there is one {type(request).__name__} more than the paper has"
        said = said(request) if callable(said) else said
        raw = said if isinstance(said, str) else json.dumps(said)
        reply, invalid = parse_reply(raw, request)
        return Exchange(reply, invalid, raw=raw)


def _sent(request: Request[Any]) -> Sent:
    turns = tuple(
        ("tool" if turn.tool and turn.speaker == "user" else turn.speaker, turn.text) for turn in request.turns
    )
    frames_s = tuple(frame.time_s for frame in request.frames)
    return Sent(type(request).__name__, render(request), frames_s, request.temperature, turns)


def middles(start_s: float, end_s: float, count: int) -> list[float]:
    """The stored frames, one a second, on screen in the middles of equal parts of a range, each once."""
    length_s = (end_s - start_s) / count
    return sorted({float(math.floor(start_s + (part + 0.5) * length_s)) for part in range(count)})


def says(prompt: str, *parts: str) -> None:
    """Check that a prompt holds each of these patterns, in any case and over any line breaks, and curtails nothing."""
    text = " ".join(prompt.split())
    for part in parts:
        assert re.search(part, text, re.IGNORECASE), f"the prompt does not say {part!r}"
    says_nothing_of(prompt, CURTAILED)


def says_nothing_of(prompt: str, *parts: str) -> None:
    text = " ".join(prompt.split())
    for part in parts:
        found = re.search(part, text, re.IGNORECASE)
        assert not found, f"the prompt says {found and found[0]!r}"
