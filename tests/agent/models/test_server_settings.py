"""Servers of one's own are asked for the context in use and the requests they answer together; cut prompts end it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from kinodex.agent.errors import PromptCut
from kinodex.agent.models.openai_model import OpenAIModel
from kinodex.agent.protocol.notes import Note
from kinodex.agent.requests.answer import AnswerNotes
from tests.support.loopback import Answer, Call
from tests.support.servers.chat_server import Behaviour, ChatServer
from tests.support.servers.wire import QUESTION, VIDEO, ask, discover, role

REPLY = {"reasoning": "", "action": "answer", "option": "A", "answer": None, "evidence": [1]}
LLAMA_CPP = {"/props": {"default_generation_settings": {"n_ctx": 6144}, "total_slots": 2}}
LOADED = {"models": [{"name": "tester:latest", "model": "tester:latest", "context_length": 4096}]}


class OwnServer(ChatServer):
    """A chat server that answers some other paths too; `asked` are those that it was asked for, with their bodies."""

    def __init__(self, told: Mapping[str, Any], reply: Any = REPLY) -> None:
        super().__init__(lambda _: reply)
        self.told, self.asked = dict(told), list[str]()

    def respond(self, call: Call) -> Answer:
        if not call.path.startswith("/v1"):
            self.asked.append(call.path)
            said = self.told.get(call.path)
            if callable(said):
                said = said(self, call.json if call.body else None)
            return Answer(404 if said is None else 200, said or {})
        return super().respond(call)


def reading(seconds: int) -> AnswerNotes:
    """A request with a caption for each second."""
    text = "a crowd moves past market stalls with fruit, bread and flowers while a cyclist waits " * 4
    notes = tuple(Note(VIDEO.video_id, each, each + 1, "captions", text) for each in range(seconds))
    return AnswerNotes(question=QUESTION, videos=(VIDEO,), notes=notes)


def sent_characters(server: ChatServer) -> int:
    return len(server.seen[-1].text)


def test_llama_cpp_is_sent_as_many_requests_and_as_long_ones_as_it_says() -> None:
    async def run(server: ChatServer) -> None:
        async with OpenAIModel(role(server, at_once=16)) as model:
            await asyncio.gather(*(model.ask(reading(10 + each)) for each in range(12)))
            await model.ask(reading(150))

    with OwnServer(LLAMA_CPP, Behaviour(json.dumps(REPLY), after_s=0.05)) as server:
        asyncio.run(run(server))
    assert server.asked == ["/props"] and server.most_at_once == 2
    assert sent_characters(server) / 4 < 6144


def test_ollama_says_the_context_in_use_once_the_model_is_loaded() -> None:
    with OwnServer({"/api/ps": LOADED}) as server:
        ask(server, reading(150))
    assert sent_characters(server) / 4 < 4096
    assert server.asked == ["/props", "/api/ps"]


def test_ollama_is_asked_to_load_a_model_whose_file_does_not_say_the_context() -> None:
    def load(server: OwnServer, body: dict) -> dict:
        assert body == {"model": "tester"}
        server.told["/api/ps"] = LOADED
        return {"done": True}

    unloaded: dict[str, Any] = {"/api/ps": {"models": []}}
    with OwnServer(unloaded | {"/api/show": {"parameters": "stop </s>\nnum_ctx   8192"}}) as server:
        ask(server, reading(150))
    assert 4096 < sent_characters(server) / 4 < 8192 and "/api/generate" not in server.asked
    with OwnServer(unloaded | {"/api/show": {"parameters": ""}, "/api/generate": load}) as server:
        ask(server, reading(150))
    assert sent_characters(server) / 4 < 4096 and server.asked[-2:] == ["/api/generate", "/api/ps"]


def test_a_short_request_asks_nobody_for_the_context() -> None:
    with OwnServer({"/api/ps": LOADED}) as server:
        ask(server, discover())
    assert server.asked == ["/props"]


def test_a_prompt_that_the_server_cuts_ends_the_question_with_what_to_set() -> None:
    cut = Behaviour(json.dumps(REPLY), usage={"prompt_tokens": 4096, "completion_tokens": 20})
    with ChatServer(lambda _: cut) as server, pytest.raises(PromptCut) as caught:
        ask(server, reading(150))
    said = str(caught.value)
    assert "\n" not in said and "read 4,096 tokens of a request of" in said
    assert "OLLAMA_CONTEXT_LENGTH=" in said and "num_ctx" in said and "context_tokens" in said
    with ChatServer(lambda _: cut) as server:
        [exchange] = ask(server, reading(150), context_tokens=4096)
    assert exchange.reply is not None


@pytest.mark.parametrize("usage", [{"prompt_tokens": 300}, {"prompt_tokens": 2000, "cached": 9000}, {}])
def test_counts_that_leave_out_what_a_cache_held_or_are_no_counts_say_nothing(usage: dict[str, int]) -> None:
    details = {"cached_tokens": usage.get("cached", 0)}
    counted = {"prompt_tokens": usage.get("prompt_tokens", 0), "prompt_tokens_details": details}
    with ChatServer(lambda _: Behaviour(json.dumps(REPLY), usage=counted)) as server:
        [exchange] = ask(server, reading(150))
    assert exchange.reply is not None
