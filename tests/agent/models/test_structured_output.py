"""Native calls of tools over the wire: what is offered, how calls are read, and what is done where there are none."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

import pytest
from pydantic import BaseModel, Field

from agent.core.protocol import Request, Turn
from agent.core.replies import Reply
from agent.errors import InvalidReply, ModelRejected
from agent.models.response_cache import ResponseCache
from tests.support.chat_server import Behaviour, ChatServer, calling, failing, in_turn
from tests.support.wire import ask, discover


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
    Reply = Step
    template: ClassVar[str] = "discover_queries"
    role: ClassVar[str] = "policy"
    form: ClassVar[Literal["json", "text", "tools"]] = "tools"
    tools: ClassVar[tuple[type[BaseModel], ...]] = (Go, Stop)
    question: object = discover().question
    turns: tuple[Turn, ...] = ()

    def check(self, reply: Step) -> None:
        if reply.tool == "go" and not reply.where:
            raise InvalidReply("go where?")


GO = {"tool": "go", "where": "home", "fast": None}
HOME = Step(tool="go", where="home")


def test_each_tool_is_a_function_with_its_arguments_and_one_call_is_wanted() -> None:
    with ChatServer(lambda _: calling(GO)) as server:
        [exchange] = ask(server, Walk())
    assert server.problems == []
    assert exchange.reply == HOME
    assert json.loads(exchange.raw) == GO
    body = server.seen[0].body
    assert "response_format" not in body
    assert (body["tool_choice"], body["parallel_tool_calls"]) == ("required", False)
    go, stop = server.seen[0].tools.values()
    assert (go["name"], go["description"], go["strict"]) == ("go", "Walk somewhere.", True)
    assert list(go["parameters"]["properties"]) == ["where", "fast"]
    assert stop["parameters"]["properties"] == {}


def test_other_requests_offer_no_tools() -> None:
    with ChatServer(lambda _: {"queries": ["a"]}) as server:
        ask(server, discover())
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(server.seen[0].body)


@pytest.mark.parametrize("arguments", ['{"where": "home"}', {"where": "home"}, '{"where": "home", "tool": "stop"}'])
def test_arguments_may_be_text_or_an_object_and_do_not_change_the_tool(arguments: object) -> None:
    with ChatServer(lambda _: Behaviour(calls=(("go", arguments),))) as server:
        [exchange] = ask(server, Walk())
    assert exchange.reply == HOME


@pytest.mark.parametrize("arguments", ["", None, "{}", {}])
def test_a_tool_without_arguments_needs_none(arguments: object) -> None:
    with ChatServer(lambda _: Behaviour(calls=(("stop", arguments),))) as server:
        [exchange] = ask(server, Walk())
    assert exchange.reply == Step(tool="stop")


@pytest.mark.parametrize("text", [json.dumps(GO), f"I go home.\n```json\n{json.dumps(GO)}\n```"])
def test_without_a_call_the_text_is_read(text: str) -> None:
    with ChatServer(lambda _: text) as server:
        [exchange] = ask(server, Walk())
    assert exchange.reply == HOME


@pytest.mark.parametrize(
    ("said", "invalid"),
    [
        (calling(GO, {"tool": "stop"}), "it holds 2 calls of tools; give one"),
        (calling(GO, GO), "it holds 2 calls of tools; give one"),
        (calling({"tool": "fly"}), "tool: Input should be 'go' or 'stop'"),
        (calling({"tool": "go"}), "go where?"),
        (calling({**GO, "fast": "very"}), "fast: Input should be a valid boolean"),
        (Behaviour(calls=(("go", '{"where": "ho'),)), "breaks off"),
        (Behaviour(calls=(("stop", '{"why": '),)), "breaks off"),
        (Behaviour(calls=(("stop", "[1]"),)), "valid dictionary"),
        (Behaviour(calls=(("stop", "now"),)), "there is no JSON in it"),
        (Behaviour(calls=(("stop", '{"a": ' + "[" * 3000),)), "nested too deeply"),
        (Behaviour(calls=(("", "{}"),)), "tool: Input should be 'go' or 'stop'"),
        ("I would rather stay.", "there is no JSON in it"),
        ("", "empty"),
    ],
)
def test_a_call_that_cannot_be_used_is_data_with_its_reason(said: Behaviour | str, invalid: str) -> None:
    with ChatServer(lambda _: said) as server:
        [exchange] = ask(server, Walk())
    assert exchange.reply is None
    assert invalid in (exchange.invalid or "")


def test_both_of_two_calls_stand_in_the_record() -> None:
    with ChatServer(lambda _: calling(GO, {"tool": "stop"})) as server:
        [exchange] = ask(server, Walk())
    assert [json.loads(line)["tool"] for line in exchange.raw.splitlines()] == ["go", "stop"]


def test_a_repair_shows_the_call_and_asks_for_one_call() -> None:
    with ChatServer(in_turn(calling(GO, {"tool": "stop"}), calling(GO))) as server:
        [bad] = ask(server, Walk())
        [good] = ask(server, replace(Walk(), attempt=1, complaint=bad.invalid or "", bad_reply=bad.raw))
    assert good.reply == HOME
    assert server.problems == []
    _, reply, wish = server.seen[1].body["messages"]
    assert reply == {"role": "assistant", "content": bad.raw}
    assert "give one" in wish["content"]
    assert "one call of one tool" in wish["content"]
    assert server.seen[1].tools


def test_a_conversation_is_plain_turns() -> None:
    turns = (Turn("assistant", json.dumps(GO)), Turn("user", "You are there."))
    with ChatServer(lambda _: calling({"tool": "stop"})) as server:
        ask(server, Walk(turns=turns))
    said = [(each["role"], each["content"]) for each in server.seen[0].body["messages"][1:]]
    assert said == [("assistant", json.dumps(GO)), ("user", "You are there.")]


def test_two_turns_of_one_speaker_are_one_message() -> None:
    turns = (Turn("user", "One."), Turn("user", "Two."), Turn("assistant", "Three."), Turn("user", "Four."))
    with ChatServer(lambda _: calling({"tool": "stop"})) as server:
        ask(server, Walk(turns=turns))
    first, *said = [(each["role"], each["content"]) for each in server.seen[0].body["messages"]]
    assert first[1].endswith("\n\nOne.\n\nTwo.")
    assert said == [("assistant", "Three."), ("user", "Four.")]


@pytest.mark.parametrize("rejects", ["tools", "tool_choice"])
def test_an_endpoint_that_refuses_tools_is_asked_for_json_from_then_on(
    rejects: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), ChatServer(lambda _: GO, rejects=[rejects]) as server:
        first, second = ask(server, Walk(), Walk())
    assert first.reply == second.reply == HOME
    assert [bool(seen.tools) for seen in server.seen] == [True, False, False]
    assert server.seen[1].schema == "Step"
    assert caplog.text.count("takes no tools") == 1


def test_the_json_ladder_goes_on_below_the_tools() -> None:
    with ChatServer(lambda _: GO, rejects=["tools", "json_schema", "json_object"]) as server:
        [exchange] = ask(server, Walk())
    assert exchange.reply == HOME
    assert [seen.body.get("response_format", {}).get("type") for seen in server.seen] == [
        None,
        "json_schema",
        "json_object",
        None,
    ]
    assert "JSON schema" in server.seen[-1].text


def test_parallel_calls_are_a_parameter_that_may_be_left_out() -> None:
    with ChatServer(lambda _: calling(GO), rejects=["parallel_tool_calls"]) as server:
        first, second = ask(server, Walk(), Walk())
    assert first.reply == second.reply == HOME
    assert ["parallel_tool_calls" in seen.body for seen in server.seen] == [True, False, False]
    assert all(seen.tools for seen in server.seen)


@pytest.mark.parametrize(
    "refusal",
    [
        failing(400, "registry/tester does not support tools"),
        failing(404, "No endpoints found that support tool use."),
        failing(400, "Failed to call a function. Please adjust your prompt.", code="tool_use_failed"),
        failing(500, "tools param requires --jinja flag"),
        failing(501, "Only 'auto' or 'none' tool_choice is supported"),
    ],
)
def test_refusals_as_servers_word_them(refusal: Behaviour) -> None:
    with ChatServer(lambda request: refusal if "tools" in request else GO) as server:
        [exchange] = ask(server, Walk(), attempts=1)
    assert exchange.reply == HOME


def test_tools_of_the_users_own_that_are_refused_are_an_error() -> None:
    schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    own = {"tools": [{"type": "function", "function": {"name": "fly", "description": "Up.", "parameters": schema}}]}
    with ChatServer(lambda _: failing(400, "no such tool")) as server, pytest.raises(ModelRejected, match="no such"):
        ask(server, discover(), extra=own)


def test_a_call_is_repeated_from_the_cache_whatever_the_server_learnt(tmp_path: Path) -> None:
    with ResponseCache(tmp_path / "c") as cache:
        with ChatServer(in_turn(calling(GO, GO), calling(GO))) as server:
            ask(server, Walk(), replace(Walk(), attempt=1), cache=cache)
        first, second = ask(server, Walk(), replace(Walk(), attempt=1), cache=cache, attempts=1)
    assert (first.cached, second.cached) == (True, True)
    assert first.invalid == "it holds 2 calls of tools; give one"
    assert second.reply == HOME
