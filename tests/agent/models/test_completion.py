"""Chat completions as servers send them: text in parts, calls of tools, refusals, counts of tokens."""

from __future__ import annotations

import json

import pytest

from agent.models.completion import parse_completion
from agent.requests.tree import Queries
from tests.support.chat_server import Behaviour, ChatServer, calling
from tests.support.wire import GO, HOME, QUERIES, Step, Walk, ask, discover


def test_text_in_parts_is_put_together_without_the_thoughts() -> None:
    parts = [
        {"type": "thinking", "thinking": []},
        {"type": "text", "text": '{"queries":'},
        {"type": "text", "text": ' ["a"]}'},
    ]
    sent = {"choices": [{"index": 0, "message": {"role": "assistant", "content": parts}, "finish_reason": "stop"}]}
    with ChatServer(lambda _: Behaviour(body=sent)) as server:
        [exchange] = ask(server, discover())
    assert exchange.reply == Queries(queries=["a"])


def test_half_a_character_does_not_travel() -> None:
    with ChatServer(lambda _: Behaviour(content="a \ud800 kite")) as server:
        [exchange] = ask(server, discover())
    assert exchange.raw == "a ? kite"


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


def test_both_of_two_calls_stand_in_the_record() -> None:
    with ChatServer(lambda _: calling(GO, {"tool": "stop"})) as server:
        [exchange] = ask(server, Walk())
    assert [json.loads(line)["tool"] for line in exchange.raw.splitlines()] == ["go", "stop"]


def test_a_server_that_counts_no_tokens_is_no_error() -> None:
    with ChatServer(lambda _: Behaviour(content=json.dumps(QUERIES), usage={})) as server:
        [exchange] = ask(server, discover())
    assert exchange.reply is not None
    assert exchange.usage.input_tokens == 0


def test_tokens_below_none_are_none() -> None:
    told = {"prompt_tokens": -5, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": -2}}
    completion = parse_completion({"choices": [{"message": {"content": "{}"}}], "usage": told})
    assert (completion.input_tokens, completion.output_tokens, completion.cached_tokens) == (0, 7, 0)
