"""OpenAI's API over the questions of `kinodex serve`: its routes, and the face of chat completions.

`/v1/models`, `/v1/chat/completions` here, `/v1/responses` in `openai_responses`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field

from kinodex.agent.answer import Answer
from kinodex.agent.limits import Ledger
from kinodex.guards import json_response
from kinodex.index.library import Library
from kinodex.web.openai_errors import RequestRefused, answering, error_body
from kinodex.web.openai_messages import MESSAGES, Conversation, Message, read_conversation
from kinodex.web.openai_question import (
    Asked,
    Body,
    ChatModel,
    Desk,
    NoLogprobs,
    NoTools,
    PictureSearch,
    TextAlone,
    chat_models,
    find_model,
    library_names,
    own_fields,
    reply_to,
    unless,
    write,
)
from kinodex.web.openai_responses import ResponseBody
from kinodex.web.page import as_json
from kinodex.web.questions import Questions

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


def openai_routes(questions: Questions, libraries: Sequence[Library]) -> list[Any]:
    """Routes of the API over these libraries, which belong to the thread of the server's loop."""
    from starlette.routing import Route

    settings, began = questions.settings, int(time.time())
    uris = [library.uri for library in libraries]
    models = chat_models(library_names(uris), settings.agent, has_language=settings.choice.has_language)
    desk = Desk(questions, libraries, models, PictureSearch(uris, settings.space))

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


class StreamOptions(BaseModel):
    """Options of a streamed reply; `include_usage`: a last chunk with the tokens."""

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
    """A chat completion: the answer as content, its costs as usage, and the rest of it under `kinodex`.

    Its stream has a sentence a round as the model's reasoning, then the answer, then what it cost, if that is wanted.
    """

    asked: Asked
    wants_usage: bool = False

    def whole(self, answer: Answer) -> dict[str, Any]:
        """The reply in one."""
        message = {"role": "assistant", **self._said(answer), "refusal": None}
        return {
            **self.asked.heading("chatcmpl-", "chat.completion"),
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
            "usage": usage(answer.ledger),
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
            yield self._chunk(None, usage=usage(answer.ledger))
        yield _data(b"[DONE]")

    def failure(self, error: Exception) -> Iterator[bytes]:
        yield _data(as_json(error_body(error)[1]))
        yield _data(b"[DONE]")

    def _said(self, answer: Answer) -> dict[str, Any]:
        """The content of a message with its annotations."""
        written = write(self.asked, answer)
        cited = [{"type": "url_citation", "url_citation": asdict(each)} for each in written.citations]
        return {"content": written.text, "annotations": cited}

    def _chunk(self, delta: Mapping[str, Any] | None, finish_reason: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        choices = [] if delta is None else [choice]
        return _data(as_json({**self.asked.heading("chatcmpl-", "chat.completion.chunk"), "choices": choices, **more}))


def usage(ledger: Ledger) -> dict[str, Any]:
    """Tokens of the models' calls; those of servers that count none are estimated, among those of the prompt."""
    prompt = ledger.input_tokens + ledger.estimated_tokens
    return {
        "prompt_tokens": prompt,
        "completion_tokens": ledger.output_tokens,
        "total_tokens": prompt + ledger.output_tokens,
        "prompt_tokens_details": {"cached_tokens": ledger.cached_tokens},
    }


def _data(value: bytes) -> bytes:
    return b"data: %b\n\n" % value
