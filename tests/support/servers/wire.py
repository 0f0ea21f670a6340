"""Requests for tests with a chat server: small real frames, known right replies, roles, and a request with tools."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import pytest
from PIL import Image
from pydantic import BaseModel, Field

from kinodex.agent.errors import InvalidReply, ModelError
from kinodex.agent.models.openai_model import OpenAIModel
from kinodex.agent.models.response_cache import ResponseCache
from kinodex.agent.models.roles import Role
from kinodex.agent.protocol.exchange import Exchange
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.reply import Reply
from kinodex.agent.protocol.request import Request, Turn
from kinodex.agent.protocol.videos import Segment, Video
from kinodex.agent.requests.tree import Decide, DiscoverQueries, ScoreSegments
from kinodex.agent.variants.eea.requests import RewardSegments
from kinodex.agent.variants.kino.requests import ChooseStep
from tests.support.servers.chat_server import ChatServer

QUESTION = Question("What colour is the kite?", ("red", "blue"))
VIDEO = Video("a" * 32, "kites", 0.0, 60.0)
QUERIES = {"queries": ["a kite in the sky"]}
SCORES = {"segments": [{"segment": number, "explanation": "sky", "score": 10 * number} for number in (1, 2, 3)]}
ANSWER = {"action": "answer", "segment": None, "option": "A", "answer": "red", "evidence": [1]}


def frame(number: int, *, time_s: float | None = None, size: tuple[int, int] = (64, 48), video: str = "a" * 32):
    """A stored frame with a real JPEG of one colour."""
    encoded = io.BytesIO()
    Image.new("RGB", size, (40 * number % 256, 90, 160)).save(encoded, "JPEG")
    at_s = float(number) if time_s is None else time_s
    return ShownFrame(video, number, at_s, *size, encoded.getvalue())


def discover() -> DiscoverQueries:
    return DiscoverQueries(question=QUESTION)


def score(frames: Sequence[ShownFrame] = ()) -> ScoreSegments:
    """A request to score the segments 1, 2 and 3."""
    segments = tuple(Segment(number, VIDEO.video_id, 20.0 * number - 20, 20.0 * number) for number in (1, 2, 3))
    shown = tuple(frames) or (frame(20), frame(40))
    return RewardSegments(question=QUESTION, videos=(VIDEO,), segments=segments, frames=shown)


def decide() -> Decide:
    return ChooseStep(question=QUESTION, videos=(VIDEO,), candidates=(), frames=(frame(12),), must_answer=True)


def role(server: ChatServer, **settings: object) -> Role:
    return Role.model_validate({"base_url": server.base_url, "model": "tester", **settings})


def ask(
    server: ChatServer, *requests: Request, cache: ResponseCache | None = None, sample: int = 0, **settings: object
) -> list[Exchange]:
    """The exchanges of `requests`, asked one after the other of one model."""

    async def run() -> list[Exchange]:
        async with OpenAIModel(role(server, **settings), cache=cache, sample=sample) as model:
            return [await model.ask(request) for request in requests]

    return asyncio.run(run())


class Go(BaseModel):
    """Walk somewhere."""

    tool: Literal["go"]
    where: str
    fast: bool | None


class Stop(BaseModel):
    """Stand still."""

    tool: Literal["stop"]


class Step(Reply):
    tool: Literal["go", "stop"]
    where: str | None = Field(default=None)
    fast: bool | None = Field(default=None)


@dataclass(frozen=True, kw_only=True)
class Walk(Request[Step]):
    """A request of form "tools"."""

    Reply = Step
    template: ClassVar[str] = "discover_queries"
    role: ClassVar[str] = "policy"
    form: ClassVar[Literal["json", "text", "tools"]] = "tools"
    tools: ClassVar[tuple[type[BaseModel], ...]] = (Go, Stop)
    question: object = QUESTION
    turns: tuple[Turn, ...] = ()

    def check(self, reply: Step) -> None:
        if reply.tool == "go" and not reply.where:
            raise InvalidReply("go where?")


GO = {"tool": "go", "where": "home", "fast": None}
HOME = Step(tool="go", where="home")


def one_line(error: pytest.ExceptionInfo[ModelError]) -> str:
    """The error's message, which must be one line."""
    text = str(error.value)
    assert "\n" not in text
    return text
