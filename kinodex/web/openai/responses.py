"""The form of responses, whole or as numbered events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pydantic import BaseModel, Field

from kinodex.agent.answer import Answer
from kinodex.web.openai.errors import RequestRefused, error_body
from kinodex.web.openai.messages import MESSAGES, Conversation, Message, Parts, Speaker, read_conversation
from kinodex.web.openai.question import Asked
from kinodex.web.openai.request import Body, TextAlone, unless
from kinodex.web.openai.written_answer import own_fields, usage, write
from kinodex.web.page import as_json

REFERENCE = "item_reference"
ERRORS = {400: "invalid_prompt", 429: "rate_limit_exceeded"}
"""Codes of failed responses by HTTP status; OpenAI's list has few, and server_error for all else."""
LOGPROBS = "message.output_text.logprobs"


class Item(BaseModel):
    """An item of the input: a message, the id of one that a client was given, or what models of others left there."""

    type: str | None = "message"
    role: Speaker | None = None
    content: Parts = None
    id: str | None = None


class TextFields(BaseModel):
    format: TextAlone = None


class ResponseBody(Body):
    """The body of `POST /v1/responses`, as far as it is read."""

    input: str | Annotated[list[Item], Field(max_length=MESSAGES)]
    instructions: str | None = None
    previous_response_id: str | None = None
    metadata: dict[str, str] | None = None
    text: TextFields = TextFields()
    background: Annotated[bool | None, unless("a question ends with its request", lambda wanted: not wanted)] = None
    conversation_: Annotated[
        Any, unless("none is kept under an id, but previous_response_id goes on with one", lambda _: False)
    ] = Field(default=None, alias="conversation")
    prompt: Annotated[Any, unless("no template is kept here, and the question is the input", lambda _: False)] = None
    include: Annotated[
        list[str] | None, unless("an answer has no log-probabilities", lambda names: LOGPROBS not in names)
    ] = None

    def conversation(self) -> Conversation:
        given = [Item(role="user", content=self.input)] if isinstance(self.input, str) else self.input
        referred = [each.id for each in given if each.type == REFERENCE and (each.id or "").startswith("msg_")]
        own = self.kinodex.request
        earlier = own.follow_up or self.previous_response_id or (referred[-1] if referred else None)
        self.kinodex = self.kinodex.model_copy(update={"request": own.model_copy(update={"follow_up": earlier})})
        items = [each for each in given if each.type not in ("reasoning", REFERENCE)]
        if not items or items[-1].role != "user":
            raise RequestRefused("the last item of input has to be the user's message: it is the question", "input")
        said = [Message(role=each.role, content=each.content) for each in items if each.role]
        return read_conversation([Message(role="system", content=self.instructions), *said])

    def reply(self, asked: Asked) -> ResponseReply:
        return ResponseReply(asked, self)


@dataclass(eq=False)
class ResponseReply:
    """A response: an item of the rounds' sentences, then the answer's message; streamed in OpenAI's order of events."""

    asked: Asked
    body: ResponseBody
    _number: int = 0
    _thoughts: int = 0

    def whole(self, answer: Answer) -> dict[str, Any]:
        thought = [self._reasoning("completed")] if self.asked.sentences() else []
        return {
            **self._response("completed"),
            "output": [*thought, self._message("completed", self._part(answer))],
            "usage": usage(answer.ledger, "input", "output"),
            "kinodex": own_fields(self.asked, answer),
        }

    def opening(self) -> Iterator[bytes]:
        for kind in ("created", "in_progress"):
            yield self._event(kind, response=self._response("in_progress"))

    def thought(self, sentence: str) -> Iterator[bytes]:
        item, place = self._reasoning("in_progress"), {"output_index": 0}
        if not self._thoughts:
            yield self._event("output_item.added", **place, item={**item, "summary": []})
        place |= {"item_id": item["id"], "summary_index": self._thoughts}
        yield self._event("reasoning_summary_part.added", **place, part={"type": "summary_text", "text": ""})
        yield self._event("reasoning_summary_text.delta", **place, delta=sentence)
        yield self._event("reasoning_summary_text.done", **place, text=sentence)
        yield self._event("reasoning_summary_part.done", **place, part={"type": "summary_text", "text": sentence})
        self._thoughts += 1

    def closing(self, answer: Answer) -> Iterator[bytes]:
        output = {"output_index": 0}
        if self._thoughts:
            yield self._event("output_item.done", **output, item=self._reasoning("completed"))
            output = {"output_index": 1}
        part = self._part(answer)
        item = self._message("completed", part)
        place = {"item_id": item["id"], **output, "content_index": 0}
        yield self._event("output_item.added", **output, item=self._message("in_progress"))
        yield self._event("content_part.added", **place, part={**part, "text": "", "annotations": []})
        yield self._event("output_text.delta", **place, delta=part["text"], logprobs=[])
        for number, each in enumerate(part["annotations"]):
            yield self._event("output_text.annotation.added", **place, annotation_index=number, annotation=each)
        yield self._event("output_text.done", **place, text=part["text"], logprobs=[])
        yield self._event("content_part.done", **place, part=part)
        yield self._event("output_item.done", **output, item=item)
        yield self._event("completed", response=self.whole(answer))

    def failure(self, error: Exception) -> Iterator[bytes]:
        status, said = error_body(error)
        failed = {"code": ERRORS.get(status, "server_error"), "message": said["error"]["message"]}
        yield self._event("failed", response={**self._response("failed"), "error": failed})

    def _event(self, kind: str, **fields: Any) -> bytes:
        value = {"type": f"response.{kind}", **fields, "sequence_number": self._number}
        self._number += 1
        return b"event: response.%b\ndata: %b\n\n" % (kind.encode(), as_json(value))

    def _response(self, status: str) -> dict[str, Any]:
        """Return the response without an answer; what was asked for without effect is not said to have any."""
        return {
            **self.asked.heading("resp_", "response", "created_at"),
            "status": status,
            **dict.fromkeys(("error", "incomplete_details", "max_output_tokens", "temperature", "top_p", "usage")),
            "instructions": self.body.instructions,
            "output": [],
            "parallel_tool_calls": False,
            "previous_response_id": self.body.previous_response_id,
            "text": {"format": {"type": "text"}},
            "tool_choice": "none",
            "tools": [],
            "metadata": self.body.metadata or {},
        }

    def _reasoning(self, status: str) -> dict[str, Any]:
        summary = [{"type": "summary_text", "text": each} for each in self.asked.sentences()]
        return {"id": f"rs_{self.asked.running.key}", "type": "reasoning", "summary": summary, "status": status}

    def _message(self, status: str, *content: dict[str, Any]) -> dict[str, Any]:
        head = {"id": f"msg_{self.asked.running.key}", "type": "message", "role": "assistant"}
        return {**head, "status": status, "content": content}

    def _part(self, answer: Answer) -> dict[str, Any]:
        written = write(self.asked, answer)
        cited = [{"type": "url_citation", **asdict(each)} for each in written.citations]
        return {"type": "output_text", "text": written.text, "annotations": cited, "logprobs": []}
