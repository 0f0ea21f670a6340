"""The form of chat completions, whole or as chunks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pydantic import BaseModel, Field

from kinodex.agent.answer import Answer
from kinodex.web.openai.errors import error_body
from kinodex.web.openai.messages import MESSAGES, Conversation, Message, read_conversation
from kinodex.web.openai.question import Asked
from kinodex.web.openai.request import Body, NoLogprobs, NoTools, TextAlone, unless
from kinodex.web.openai.written_answer import own_fields, usage, write
from kinodex.web.page import as_json

TOKENS = "prompt", "completion"


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


def _data(value: bytes) -> bytes:
    return b"data: %b\n\n" % value
