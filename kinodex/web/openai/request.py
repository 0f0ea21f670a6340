"""A request in OpenAI's form, and its reply, whole or as a stream.

Chat completions and responses share this, and each has a form of its own.
"""

from __future__ import annotations

import asyncio
import reprlib
from abc import abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from pydantic import AfterValidator, BaseModel, ValidationError
from pydantic_core import PydanticCustomError

from kinodex.agent.answer import Answer
from kinodex.errors import KinodexError
from kinodex.server.responses import disconnected, json_response, streamed
from kinodex.web.bodies import first_fault
from kinodex.web.openai.chat_tasks import refuse_task
from kinodex.web.openai.errors import RequestRefused
from kinodex.web.openai.messages import Conversation
from kinodex.web.openai.own_fields import OwnFields
from kinodex.web.openai.question import Asked, ChatDesk, begin, remember
from kinodex.web.openai.written_answer import write

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

BEAT_S, BEAT = 10.0, b": still at work\n\n"
"""Seconds after which a silent stream says that it lives, and how."""
STREAM_HEADERS = {"content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no"}


def unless(why: str, fits: Callable[[Any], bool]) -> AfterValidator:
    """Refuse what a client counts on and cannot have: a value of a field that neither is None nor fits."""

    def check(value: Any) -> Any:
        if value is None or fits(value):
            return value
        raise PydanticCustomError(
            "refused", "got {got}; {why}, so leave it out", {"got": reprlib.repr(value), "why": why}
        )

    return AfterValidator(check)


def _is_free(choice: Any) -> bool:
    """Return True for a choice of tools that leaves it to the model to call none."""
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
        choice = choice.get("allowed_tools", choice).get("mode")
    return choice in ("auto", "none")


NoTools = Annotated[Any, unless("the agents call none of your tools", _is_free)]
NoLogprobs = Annotated[Any, unless("an agent's answer has no log-probabilities", lambda asked: not asked)]
TextAlone = Annotated[
    dict[str, Any] | None,
    unless(
        "the answer is a text, and its parts are data in the field kinodex of the reply",
        lambda form: form.get("type") == "text",
    ),
]


class Body(BaseModel):
    """Fields of both forms that are read. All others, settings of sampling among them, are taken without effect."""

    model: str
    stream: bool | None = None
    tool_choice: NoTools = None
    top_logprobs: NoLogprobs = None
    kinodex: OwnFields = OwnFields()

    @abstractmethod
    def conversation(self) -> Conversation:
        """Return the messages of the request; raises RequestRefused for what cannot be understood."""

    @abstractmethod
    def reply(self, asked: Asked) -> Reply:
        """Return the reply that the request gets."""


class Reply(Protocol):
    """The form of a reply: whole, or as the messages of a stream in their order."""

    def whole(self, answer: Answer) -> dict[str, Any]: ...
    def opening(self) -> Iterator[bytes]: ...
    def thought(self, sentence: str) -> Iterator[bytes]: ...
    def closing(self, answer: Answer) -> Iterator[bytes]: ...
    def failure(self, error: Exception) -> Iterator[bytes]: ...


async def reply_to(desk: ChatDesk, request: Request, form: type[Body]) -> Response:
    """Answer a request of this form; a client who leaves stops the question. Raises what is wrong with the request."""
    try:
        body = form.model_validate_json(await request.body())
    except ValidationError as error:
        where, message = first_fault(error)
        raise RequestRefused(f"{where or 'the body'}: {message}", where or None) from error
    conversation = body.conversation()
    refuse_task(conversation)
    asked = await begin(desk, body.model, body.kinodex, conversation, request)
    reply = body.reply(asked)

    def note(answer: Answer) -> None:
        remember(desk, asked, conversation, write(asked, answer).text)

    if body.stream:
        # The question ends with it, also where the client left before the first piece.
        return streamed(pieces(asked, reply, note), STREAM_HEADERS, on_end=lambda: asked.running.stop(at_once=True))
    answer = await _answer_or_leave(asked, request)
    note(answer)
    return json_response(reply.whole(answer))


async def pieces(
    asked: Asked, reply: Reply, on_answer: Callable[[Answer], None], beat_s: float = BEAT_S
) -> AsyncGenerator[bytes, None]:
    """Messages of a streamed reply, a comment after each silent `beat_s`. A reader who leaves stops the question."""
    try:
        for message in reply.opening():
            yield message
        sent = 0
        async with aclosing(asked.running.changes(beat_s=beat_s)) as changes:
            async for version in changes:
                sentences = asked.sentences() if version is not None else []
                for message in chain.from_iterable(map(reply.thought, sentences[sent:])):
                    yield message
                sent = max(sent, len(sentences))
                if version is None:
                    yield BEAT
        answer = await asked.running.finished()
        on_answer(answer)
        for message in reply.closing(answer):
            yield message
    except KinodexError as error:
        for message in reply.failure(error):
            yield message
    finally:
        asked.running.stop(at_once=True)


async def _answer_or_leave(asked: Asked, request: Request) -> Answer:
    """Wait for the answer, or for the client to go, which stops the question."""
    answer = asyncio.ensure_future(asked.running.finished())
    left = asyncio.ensure_future(disconnected(request))
    try:
        await asyncio.wait([answer, left], return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            asked.running.stop(at_once=True)
        return await answer
    finally:
        left.cancel()
        asked.running.stop(at_once=True)
