"""The face of responses over the questions of `kinodex serve`: `POST /v1/responses`, whole or as numbered events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field

from kinodex.agent.answer import Answer
from kinodex.agent.limits import Ledger
from kinodex.guards import json_response
from kinodex.index.errors import KinodexError
from kinodex.pipeline.errors import PipelineError
from kinodex.web.openai_errors import RequestRefused, error_body
from kinodex.web.openai_messages import MESSAGES, Conversation, Message, Speaker, read_conversation
from kinodex.web.openai_question import (
    BEAT,
    BEAT_S,
    Asked,
    CommonFields,
    Desk,
    answer_or_leave,
    begin,
    own_fields,
    read_request,
    refuse,
    remember,
    rounds,
    sentences_of,
    stream_of,
    write,
)
from kinodex.web.page import as_json

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

MESSAGE = "message"
REFERENCE = "item_reference"
ERRORS = {400: "invalid_prompt", 429: "rate_limit_exceeded"}
"""Codes of failed responses by HTTP status; OpenAI's list has few, and server_error for all else."""


class Item(BaseModel):
    """An item of the input: a message, the id of one that a client was given, or what models of others left there."""

    type: str | None = MESSAGE
    role: Speaker | None = None
    content: str | list[dict[str, Any]] | None = None
    id: str | None = None


class TextFields(BaseModel):
    """The form of the text."""

    format: dict[str, Any] | None = None


class ResponseRequest(CommonFields):
    """The body of `POST /v1/responses`, as far as it is read."""

    input: str | Annotated[list[Item], Field(max_length=MESSAGES)]
    instructions: str | None = None
    previous_response_id: str | None = None
    metadata: dict[str, str] | None = None
    text: TextFields | None = None
    background: bool | None = None
    conversation: Any = None
    prompt: Any = None
    include: list[str] | None = None

    def check(self) -> None:
        super().check()
        self.check_form(self.text and self.text.format, "text.format")
        if self.background:
            refuse("background", "a question ends with its request, so leave it out or stream", "background")
        if self.conversation is not None:
            refuse("conversation", "none is kept under an id; go on with previous_response_id", "conversation")
        if self.prompt is not None:
            refuse("prompt", "no template is kept here; send the question as input", "prompt")
        if "message.output_text.logprobs" in (self.include or ()):
            refuse("include of logprobs", "an agent's answer has none, so leave it out", "include")

    @property
    def items(self) -> list[Item]:
        return [Item(role="user", content=self.input)] if isinstance(self.input, str) else self.input

    def read(self) -> Conversation:
        """The conversation of the input; raises RequestRefused."""
        items = [each for each in self.items if each.type not in ("reasoning", REFERENCE)]
        if not items or items[-1].role != "user":
            raise RequestRefused("the last item of input has to be the user's message: it is the question", "input")
        said = [Message(role=each.role, content=each.content) for each in items if each.role]
        first = [] if self.instructions is None else [Message(role="system", content=self.instructions)]
        return read_conversation([*first, *said])

    @property
    def after(self) -> str | None:
        """Id of the response, or of its message, that this one goes on from."""
        referred = [each.id for each in self.items if each.type == REFERENCE and (each.id or "").startswith("msg_")]
        return self.previous_response_id or (referred[-1] if referred else None)


async def respond(desk: Desk, request: Request) -> Response:
    """Answer `POST /v1/responses`; a client who leaves stops the question."""
    body = await read_request(request, ResponseRequest)
    if body.after is not None:
        body.kinodex = body.kinodex.model_copy(update={"after": body.kinodex.after or body.after})
    conversation = body.read()
    asked = await begin(desk, body, conversation, request)

    def note(answer: Answer) -> None:
        remember(desk, asked, conversation, answer)

    if body.stream:
        return stream_of(asked, events(asked, body, on_answer=note))
    answer = await answer_or_leave(asked, request)
    note(answer)
    return json_response(Reply(asked, body, answer, tuple(sentences_of(asked) if asked.own.reasoning else ())).whole())


@dataclass(frozen=True, slots=True)
class Reply:
    """A response: of a question under way without `answer`; `thoughts` are the sentences of its rounds."""

    asked: Asked
    body: ResponseRequest
    answer: Answer | None = None
    thoughts: tuple[str, ...] = ()

    def whole(self, status: str = "completed", error: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The response itself; what was asked for without effect is not said to have any."""
        asked, body, answer = self.asked, self.body, self.answer
        thought = [self.reasoning("completed")] if self.thoughts else []
        return {
            "id": f"resp_{asked.key}",
            "object": "response",
            "created_at": asked.created,
            "status": status,
            "error": error,
            "incomplete_details": None,
            "instructions": body.instructions,
            "max_output_tokens": None,
            "model": asked.model,
            "output": thought if answer is None else [*thought, self.message("completed")],
            "parallel_tool_calls": False,
            "previous_response_id": body.previous_response_id,
            "reasoning": {"effort": None, "summary": None},
            "temperature": None,
            "text": {"format": {"type": "text"}},
            "tool_choice": "none",
            "tools": [],
            "top_p": None,
            "truncation": "disabled",
            "usage": None if answer is None else usage(answer.ledger),
            "metadata": body.metadata or {},
            **({} if answer is None else {"kinodex": own_fields(asked, answer)}),
        }

    def reasoning(self, status: str) -> dict[str, Any]:
        """The item of the rounds."""
        summary = [{"type": "summary_text", "text": each} for each in self.thoughts]
        return {"id": f"rs_{self.asked.key}", "type": "reasoning", "summary": summary, "status": status}

    def message(self, status: str) -> dict[str, Any]:
        """The item of the answer; it is empty while there is none."""
        content = [] if self.answer is None else [self.part()]
        head = {"id": f"msg_{self.asked.key}", "type": MESSAGE, "role": "assistant"}
        return {**head, "status": status, "content": content}

    def part(self) -> dict[str, Any]:
        """The text of the message with its annotations."""
        if self.answer is None:
            return {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        written = write(self.asked, self.answer)
        cited = [{"type": "url_citation", **asdict(each)} for each in written.citations]
        return {"type": "output_text", "text": written.text, "annotations": cited, "logprobs": []}


def usage(ledger: Ledger) -> dict[str, Any]:
    """Tokens of the models' calls; those of servers that count none are estimated, among those of the input."""
    prompt = ledger.input_tokens + ledger.estimated_tokens
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": ledger.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": ledger.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt + ledger.output_tokens,
    }


# A response as events, in OpenAI's order: the response, an item of the rounds, the message, the response again.


async def events(
    asked: Asked, body: ResponseRequest, *, on_answer: Callable[[Answer], None], beat_s: float = BEAT_S
) -> AsyncGenerator[bytes, None]:
    """Events of a streamed response, numbered from 0. A reader who leaves stops the question."""
    numbers, reply = count(), Reply(asked, body)

    def event(kind: str, **fields: Any) -> bytes:
        name = f"response.{kind}"
        value = {"type": name, **fields, "sequence_number": next(numbers)}
        return b"event: %b\ndata: %b\n\n" % (name.encode(), as_json(value))

    try:
        for kind in ("created", "in_progress"):
            yield event(kind, response=reply.whole("in_progress"))
        async with aclosing(rounds(asked, beat_s)) as sentences:
            async for each in sentences:
                if each is None:
                    yield BEAT
                    continue
                if not reply.thoughts:
                    yield event("output_item.added", output_index=0, item=reply.reasoning("in_progress"))
                for kind, fields in _thought(reply, each):
                    yield event(kind, **fields)
                reply = replace(reply, thoughts=(*reply.thoughts, each))
        if reply.thoughts:
            yield event("output_item.done", output_index=0, item=reply.reasoning("completed"))
        answer = await asked.running.finished()
        on_answer(answer)
        for kind, fields in _message(reply, replace(reply, answer=answer)):
            yield event(kind, **fields)
        yield event("completed", response=replace(reply, answer=answer).whole())
    except (KinodexError, PipelineError) as error:
        status, said = error_body(error)
        failure = {"code": ERRORS.get(status, "server_error"), "message": said["error"]["message"]}
        yield event("failed", response=reply.whole("failed", failure))
    finally:
        asked.running.stop(at_once=True)


def _thought(reply: Reply, sentence: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Events of one round as a part of the summary."""
    place = {"item_id": reply.reasoning("")["id"], "output_index": 0, "summary_index": len(reply.thoughts)}
    yield "reasoning_summary_part.added", {**place, "part": {"type": "summary_text", "text": ""}}
    yield "reasoning_summary_text.delta", {**place, "delta": sentence}
    yield "reasoning_summary_text.done", {**place, "text": sentence}
    yield "reasoning_summary_part.done", {**place, "part": {"type": "summary_text", "text": sentence}}


def _message(before: Reply, reply: Reply) -> Iterator[tuple[str, dict[str, Any]]]:
    """Events of the answer, from the reply `before` it to that with it."""
    item, part = reply.message("completed"), reply.part()
    output = {"output_index": 1 if reply.thoughts else 0}
    place = {"item_id": item["id"], **output, "content_index": 0}
    yield "output_item.added", {**output, "item": before.message("in_progress")}
    yield "content_part.added", {**place, "part": before.part()}
    yield "output_text.delta", {**place, "delta": part["text"], "logprobs": []}
    for number, each in enumerate(part["annotations"]):
        yield "output_text.annotation.added", {**place, "annotation_index": number, "annotation": each}
    yield "output_text.done", {**place, "text": part["text"], "logprobs": []}
    yield "content_part.done", {**place, "part": part}
    yield "output_item.done", {**output, "item": item}
