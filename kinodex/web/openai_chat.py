"""OpenAI's API over the questions of `kinodex serve`: its routes, and the face of chat completions.

`/v1/models`, `/v1/chat/completions` here, `/v1/responses` in `openai_responses`.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from kinodex.agent.answer import Answer
from kinodex.agent.limits import Ledger
from kinodex.guards import json_response
from kinodex.index.errors import KinodexError
from kinodex.index.library import Library
from kinodex.pipeline.errors import PipelineError
from kinodex.web.openai_errors import RequestRefused, answering, error_body
from kinodex.web.openai_messages import MESSAGES, Message, read_conversation
from kinodex.web.openai_question import (
    BEAT,
    BEAT_S,
    Asked,
    ChatModel,
    CommonFields,
    Desk,
    PictureSearch,
    answer_or_leave,
    begin,
    chat_models,
    find_model,
    library_names,
    own_fields,
    read_request,
    refuse,
    remember,
    rounds,
    stream_of,
    write,
)
from kinodex.web.openai_responses import respond
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
        return await complete(desk, request)

    async def responses(request: Request) -> Response:
        return await respond(desk, request)

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


class ChatRequest(CommonFields):
    """The body of `POST /v1/chat/completions`, as far as it is read."""

    messages: list[Message] = Field(min_length=1, max_length=MESSAGES)
    stream_options: StreamOptions | None = None
    n: int | None = None
    function_call: Any = None
    response_format: dict[str, Any] | None = None
    logprobs: bool | None = None
    modalities: list[str] | None = None

    def check(self) -> None:
        super().check()
        self.check_form(self.response_format, "response_format")
        if self.n not in (None, 1):
            refuse(f"n={self.n}", "a question has one answer, so leave n out", "n")
        if self.function_call not in (None, "auto", "none"):
            refuse("function_call", "the agents call none of your functions, so leave it out", "function_call")
        if self.logprobs:
            refuse("logprobs", "an agent's answer has none, so leave it out", "logprobs")
        if "audio" in (self.modalities or ()):
            refuse("the modality audio", "answers are texts, so leave it out", "modalities")


async def complete(desk: Desk, request: Request) -> Response:
    """Answer `POST /v1/chat/completions`; a client who leaves stops the question."""
    body = await read_request(request, ChatRequest)
    conversation = read_conversation(body.messages)
    asked = await begin(desk, body, conversation, request)

    def note(answer: Answer) -> None:
        remember(desk, asked, conversation, answer)

    if body.stream:
        wants_usage = body.stream_options is not None and body.stream_options.include_usage
        return stream_of(asked, pieces(asked, include_usage=wants_usage, on_answer=note))
    answer = await answer_or_leave(asked, request)
    note(answer)
    return json_response(completion(asked, answer))


def completion(asked: Asked, answer: Answer) -> dict[str, Any]:
    """The whole reply: the answer as content, its costs as usage, and the rest of it under `kinodex`."""
    message = {"role": "assistant", **_said(asked, answer), "refusal": None}
    return {
        **heading(asked, "chat.completion"),
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": usage(answer.ledger),
        "kinodex": own_fields(asked, answer),
    }


def _said(asked: Asked, answer: Answer) -> dict[str, Any]:
    """The content of a message with its annotations."""
    written = write(asked, answer)
    cited = [{"type": "url_citation", "url_citation": asdict(each)} for each in written.citations]
    return {"content": written.text, "annotations": cited}


def heading(asked: Asked, kind: str) -> dict[str, Any]:
    """Fields that a reply and its pieces begin with."""
    return {"id": f"chatcmpl-{asked.key}", "object": kind, "created": asked.created, "model": asked.model}


def usage(ledger: Ledger) -> dict[str, Any]:
    """Tokens of the models' calls; those of servers that count none are estimated, among those of the prompt."""
    prompt = ledger.input_tokens + ledger.estimated_tokens
    return {
        "prompt_tokens": prompt,
        "completion_tokens": ledger.output_tokens,
        "total_tokens": prompt + ledger.output_tokens,
        "prompt_tokens_details": {"cached_tokens": ledger.cached_tokens},
    }


# A reply in pieces: a sentence a round as the model's reasoning, then the answer, then what it cost.

END = b"data: [DONE]\n\n"


async def pieces(
    asked: Asked, *, include_usage: bool, on_answer: Callable[[Answer], None], beat_s: float = BEAT_S
) -> AsyncGenerator[bytes, None]:
    """Messages of a streamed reply. A reader who leaves stops the question."""
    try:
        yield _data(chunk(asked, {"role": "assistant", "content": ""}))
        async with aclosing(rounds(asked, beat_s)) as sentences:
            async for each in sentences:
                yield BEAT if each is None else _data(chunk(asked, {"reasoning_content": f"{each}\n"}))
        answer = await asked.running.finished()
        on_answer(answer)
        yield _data(chunk(asked, _said(asked, answer)))
        yield _data({**chunk(asked, {}, "stop"), "kinodex": own_fields(asked, answer)})
        if include_usage:
            yield _data({**heading(asked, "chat.completion.chunk"), "choices": [], "usage": usage(answer.ledger)})
    except (KinodexError, PipelineError) as error:
        yield _data(error_body(error)[1])
    finally:
        asked.running.stop(at_once=True)
    yield END


def chunk(asked: Asked, delta: Mapping[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    """A piece of a streamed reply."""
    choice = {"index": 0, "delta": dict(delta), "logprobs": None, "finish_reason": finish_reason}
    return {**heading(asked, "chat.completion.chunk"), "choices": [choice]}


def _data(value: Mapping[str, Any]) -> bytes:
    return b"data: %b\n\n" % as_json(value)
