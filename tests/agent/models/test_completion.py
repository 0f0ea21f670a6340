"""Completions: what servers leave out, send in parts, or put in another place."""

from __future__ import annotations

import json

import pytest

from kinodex.agent.models.completion import parse_completion, parse_reply
from kinodex.agent.requests.tree import Queries
from tests.support.servers.chat_server import Behaviour, ChatServer, calling
from tests.support.servers.wire import GO, HOME, QUERIES, Step, Walk, ask, discover


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


def answered(message: dict, **others: object) -> dict:
    """An answer with the least that a server can send."""
    return {"choices": [{"message": message}], **others}


@pytest.mark.parametrize(
    "usage", [{}, None, {"prompt_tokens": 0, "completion_tokens": 0}, {"prompt_tokens": "many"}, "none", [1]]
)
def test_tokens_that_a_server_does_not_count_are_unknown_and_estimated(usage: object) -> None:
    sent = answered({"content": json.dumps(QUERIES)}, usage=usage)
    with ChatServer(lambda _: Behaviour(body=sent)) as server:
        [exchange] = ask(server, discover(), price={"input": 1_000_000.0})
    assert exchange.reply == Queries(queries=QUERIES["queries"])
    assert (exchange.usage.input_tokens, exchange.usage.unknown_calls) == (0, 1)
    prompt = len(server.seen[0].text)
    assert prompt / 5 < exchange.usage.estimated_tokens < prompt / 2
    assert prompt / 5 < exchange.usage.cost < prompt / 2


def test_known_tokens_are_not_estimated() -> None:
    with ChatServer(lambda _: QUERIES) as server:
        [exchange] = ask(server, discover())
    assert exchange.usage.input_tokens > 0
    assert (exchange.usage.unknown_calls, exchange.usage.estimated_tokens) == (0, 0)


def test_the_least_that_a_server_can_send_is_a_completion() -> None:
    completion = parse_completion(answered({"content": "{}"}))
    assert (completion.text, completion.finish_reason, completion.usage_known) == ("{}", "stop", False)


@pytest.mark.parametrize("place", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize("content", [None, "", " \n"])
def test_a_reply_in_the_place_of_the_thoughts_is_read(place: str, content: str | None) -> None:
    thoughts = f'First I wanted {{"queries": ["a dog"]}}, but better: {json.dumps(QUERIES)}'
    completion = parse_completion(answered({"content": content, place: thoughts}))
    assert parse_reply(completion.text, discover()) == (Queries(queries=QUERIES["queries"]), None)


@pytest.mark.parametrize("thoughts", ["Hm, let me see.", '{"queries": ["a', None, 7, [{"text": "{}"}]])
def test_thoughts_without_a_reply_are_an_empty_one(thoughts: object) -> None:
    assert parse_completion(answered({"content": None, "reasoning_content": thoughts})).text == ""


def test_thoughts_beside_a_reply_are_not_read() -> None:
    sent = answered({"content": json.dumps(QUERIES), "reasoning_content": '{"queries": ["a dog"]}'})
    assert json.loads(parse_completion(sent).text) == QUERIES


def test_tokens_below_none_are_none() -> None:
    told = {"prompt_tokens": -5, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": -2}}
    completion = parse_completion({"choices": [{"message": {"content": "{}"}}], "usage": told})
    assert (completion.input_tokens, completion.output_tokens, completion.cached_tokens) == (0, 7, 0)
