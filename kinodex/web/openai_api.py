"""OpenAI's API over the questions of `kinodex serve`: its routes, and the two forms of a request and its reply.

`/v1/models`, `/v1/chat/completions` and `/v1/responses`.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field

from kinodex.agent.answer import Answer
from kinodex.agent.errors import ModelError, TraceError
from kinodex.agent.limits.ledger import Ledger
from kinodex.errors import KinodexError
from kinodex.guards import NotGiven, json_response, say_when
from kinodex.index.errors import LibraryError, QueryError, UnknownVideo
from kinodex.index.library import Library
from kinodex.redaction import redact
from kinodex.web.chat_models import ChatModel, chat_models, find_model, library_names
from kinodex.web.failures import QuestionFault
from kinodex.web.openai_messages import (
    MESSAGES,
    Conversation,
    Message,
    Parts,
    RequestRefused,
    Speaker,
    read_conversation,
)
from kinodex.web.openai_question import Asked, Body, ChatDesk, NoLogprobs, NoTools, TextAlone, reply_to, unless
from kinodex.web.page import as_json
from kinodex.web.picture_search import PictureSearch
from kinodex.web.questions import MoneySpent, Questions, TooManyQuestions
from kinodex.web.written_answer import own_fields, write

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

BAD_REQUEST, LIMIT, SERVER = "invalid_request_error", "rate_limit_error", "server_error"
REFERENCE = "item_reference"
ERRORS = {400: "invalid_prompt", 429: "rate_limit_exceeded"}
"""Codes of failed responses by HTTP status; OpenAI's list has few, and server_error for all else."""
TOKENS = "prompt", "completion"
LOGPROBS = "message.output_text.logprobs"


def openai_routes(questions: Questions, libraries: Sequence[Library]) -> list[Any]:
    """Routes of the API over these libraries, which belong to the thread of the server's loop."""
    from starlette.routing import Route

    settings, began = questions.settings, int(time.time())
    uris = [library.uri for library in libraries]
    models = chat_models(library_names(uris), settings.agent, has_language=settings.choice.has_language)
    desk = ChatDesk(questions, libraries, models, PictureSearch(uris, settings.space))

    def listed(model: ChatModel) -> dict[str, Any]:
        return {"id": model.name, "object": "model", "created": began, "owned_by": "kinodex"}

    async def listing(request: Request) -> Response:
        return json_response({"object": "list", "data": [listed(each) for each in models]})

    async def one(request: Request) -> Response:
        return json_response(listed(find_model(models, request.path_params["name"])))

    async def completions(request: Request) -> Response:
        return await reply_to(desk, request, ChatBody)

    async def responses(request: Request) -> Response:
        return await reply_to(desk, request, ResponseBody)

    async def unknown(request: Request) -> Response:
        raise RequestRefused(
            f"there is no {request.method} {request.url.path[:100]} here; there are GET /v1/models, POST "
            "/v1/chat/completions and POST /v1/responses",
            code="unknown_url",
            status=404,
        )

    every = ["GET", "POST", "PUT", "PATCH", "DELETE"]
    return [
        Route("/v1/models", answering(listing)),
        Route("/v1/models/{name:path}", answering(one)),
        Route("/v1/chat/completions", answering(completions), methods=["POST"]),
        Route("/v1/responses", answering(responses), methods=["POST"]),
        Route("/v1/{rest:path}", answering(unknown), methods=every),
    ]


# The form of chat completions, whole or as chunks.


class StreamOptions(BaseModel):
    include_usage: bool = False


class ChatBody(Body):
    """The body of `POST /v1/chat/completions`, as far as it is read."""

    messages: list[Message] = Field(min_length=1, max_length=MESSAGES)
    stream_options: StreamOptions | None = None
    n: Annotated[int | None, unless("a question has one answer", lambda n: n == 1)] = None
    function_call: NoTools = None
    response_format: TextAlone = None
    logprobs: NoLogprobs = None
    modalities: Annotated[list[str] | None, unless("answers are texts", lambda kinds: "audio" not in kinds)] = None

    def conversation(self) -> Conversation:
        return read_conversation(self.messages)

    def reply(self, asked: Asked) -> Completion:
        return Completion(asked, self.stream_options is not None and self.stream_options.include_usage)


@dataclass(frozen=True, slots=True)
class Completion:
    """A chat completion: answer, costs, the rest under `kinodex`; streamed, a sentence a round as reasoning first."""

    asked: Asked
    wants_usage: bool = False

    def whole(self, answer: Answer) -> dict[str, Any]:
        message = {"role": "assistant", **self._said(answer), "refusal": None}
        return {
            **self.asked.heading("chatcmpl-", "chat.completion"),
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
            "usage": usage(answer.ledger, *TOKENS),
            "kinodex": own_fields(self.asked, answer),
        }

    def opening(self) -> Iterator[bytes]:
        yield self._chunk({"role": "assistant", "content": ""})

    def thought(self, sentence: str) -> Iterator[bytes]:
        yield self._chunk({"reasoning_content": f"{sentence}\n"})

    def closing(self, answer: Answer) -> Iterator[bytes]:
        yield self._chunk(self._said(answer))
        yield self._chunk({}, "stop", kinodex=own_fields(self.asked, answer))
        if self.wants_usage:
            yield self._chunk(None, usage=usage(answer.ledger, *TOKENS))
        yield _data(b"[DONE]")

    def failure(self, error: Exception) -> Iterator[bytes]:
        yield _data(as_json(error_body(error)[1]))
        yield _data(b"[DONE]")

    def _said(self, answer: Answer) -> dict[str, Any]:
        written = write(self.asked, answer)
        cited = [{"type": "url_citation", "url_citation": asdict(each)} for each in written.citations]
        return {"content": written.text, "annotations": cited}

    def _chunk(self, delta: Mapping[str, Any] | None, finish_reason: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        choices = [] if delta is None else [choice]
        return _data(as_json({**self.asked.heading("chatcmpl-", "chat.completion.chunk"), "choices": choices, **more}))


# The form of responses, whole or as numbered events.


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
        """The response without an answer; what was asked for without effect is not said to have any."""
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


# Parts of both.


def usage(ledger: Ledger, read: str, written: str) -> dict[str, Any]:
    tokens_read = ledger.input_tokens + ledger.estimated_tokens
    return {
        f"{read}_tokens": tokens_read,
        f"{written}_tokens": ledger.output_tokens,
        "total_tokens": tokens_read + ledger.output_tokens,
        f"{read}_tokens_details": {"cached_tokens": ledger.cached_tokens, "cache_write_tokens": 0},
        f"{written}_tokens_details": {"reasoning_tokens": 0},
    }


def _data(value: bytes) -> bytes:
    return b"data: %b\n\n" % value


# Errors in OpenAI's form: a message, a type, the parameter at fault and a code.


def answering(answer: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Turn errors about a request into OpenAI's form; any other exception is a fault and stays one."""

    async def respond(request: Request) -> Response:
        try:
            return await answer(request)
        except KinodexError as error:
            status, body = error_body(error)
            return say_when(error, json_response(body, status=status))

    return respond


def error_body(error: Exception) -> tuple[int, dict[str, Any]]:
    status, kind, code = _class(error)
    param = error.param if isinstance(error, RequestRefused) else None
    return status, {"error": {"message": redact(str(error)), "type": kind, "param": param, "code": code}}


def _class(error: Exception) -> tuple[int, str, str | None]:
    match error:
        case RequestRefused():
            return error.status, BAD_REQUEST, error.code
        case TooManyQuestions():
            return 429, LIMIT, "rate_limit_exceeded"
        case MoneySpent():
            return 429, "insufficient_quota", "insufficient_quota"
        case ModelError():
            return 502, SERVER, "model_unusable"
        case QuestionFault():
            return 500, SERVER, None
        case NotGiven() | TraceError():
            return 404, BAD_REQUEST, "not_found"
        case UnknownVideo() | QueryError():
            return 400, BAD_REQUEST, "video_not_found" if isinstance(error, UnknownVideo) else None
        case LibraryError():
            return 503, SERVER, "library_unusable"
    return 400, BAD_REQUEST, None
