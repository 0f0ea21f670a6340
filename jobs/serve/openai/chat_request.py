"""The body of `POST /v1/chat/completions`, with the fields of kinodex's own under `kinodex`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, Field, ValidationError

from agent.core.question import MAX_OPTIONS
from jobs.serve.asking_routes import AskFields, first_fault
from jobs.serve.openai.errors import RequestRefused

if TYPE_CHECKING:
    from starlette.requests import Request

CHARACTERS = 200_000
"""Of all texts of a request."""
MESSAGES = 1000


class OwnFields(AskFields):
    """Fields that OpenAI's form has no place for (`extra_body={"kinodex": {...}}`).

    `options` None: those that the text lists; an empty list: none, whatever the text looks like. `reasoning`: stream
    each round as a sentence. `cite`: end the content with the evidence in words.
    """

    options: list[str] | None = Field(default=None, max_length=MAX_OPTIONS + 1)
    reasoning: bool = True
    cite: bool = False


class Message(BaseModel):
    """One turn: a text, or parts with texts, pictures and names of videos."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[dict[str, Any]] | None = None


class StreamOptions(BaseModel):
    """Options of a streamed reply; `include_usage`: a last chunk with the tokens."""

    include_usage: bool = False


class ChatRequest(BaseModel):
    """The parts of a request that are read. Settings of sampling are taken, without effect."""

    model: str
    messages: list[Message] = Field(min_length=1, max_length=MESSAGES)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    tools: list[Any] | None = None
    functions: list[Any] | None = None
    tool_choice: Any = None
    response_format: dict[str, Any] | None = None
    logprobs: bool | None = None
    modalities: list[str] | None = None
    kinodex: OwnFields = OwnFields()


async def read_request(request: Request) -> ChatRequest:
    """Read a request; raises RequestRefused for one that does not fit, or asks for what cannot be had here."""
    try:
        body = ChatRequest.model_validate_json(await request.body())
    except ValidationError as error:
        where, message = first_fault(error)
        raise RequestRefused(f"{where or 'the body'}: {message}", where or None) from error
    check_supported(body)
    return body


def check_supported(body: ChatRequest) -> None:
    """Raise RequestRefused for a request whose reply would not be what its sender counts on."""
    if body.n not in (None, 1):
        raise RequestRefused(f"got n={body.n}; a question has one answer, so leave n out", "n")
    if (body.tools or body.functions) and body.tool_choice != "none":
        raise RequestRefused("got tools; the agents use their own and call none of yours, so leave tools out", "tools")
    form = (body.response_format or {}).get("type", "text")
    if form != "text":
        raise RequestRefused(
            f"got response_format {form!r}; the answer is a text, and its parts are data in the field kinodex of the "
            "reply, so leave response_format out",
            "response_format",
        )
    if body.logprobs:
        raise RequestRefused("got logprobs; an agent's answer has none, so leave it out", "logprobs")
    if "audio" in (body.modalities or ()):
        raise RequestRefused("got the modality audio; answers are texts", "modalities")
