"""Endpoints with all abilities, with fewer, and with none."""

from __future__ import annotations

import json

import pytest

from kinodex.doctor.endpoint import ABILITIES, SPEAKERS, check_endpoint
from tests.support.runs.check_results import able, by_name, states
from tests.support.servers.chat_server import Behaviour, ChatServer, failing
from tests.support.servers.rule_server import Rules, RuleServer


def test_an_endpoint_that_can_do_everything() -> None:
    with ChatServer(able) as server:
        found = check_endpoint(server.base_url, None, None)
    assert set(states(found).values()) == {"ok"}
    assert by_name(found)["tools"].said.startswith("called ")
    assert server.problems == []


def test_endpoints_that_can_do_less() -> None:
    def blind(body: dict) -> Behaviour | dict | str:
        return failing(400, "image input is not supported") if "image_url" in json.dumps(body) else "Blue, I think."

    with ChatServer(blind, rejects=["json_schema", "tools"]) as server:
        found = by_name(check_endpoint(server.base_url, None, None))
    assert states([*found.values()]) == {
        "model list": "ok", "chat": "ok", "usage": "ok", "images": "missing", "several images": "missing",
        "json_schema": "missing", "tools": "missing", "system role": "ok", "thoughts": "ok",
    }  # fmt: skip
    assert "image input is not supported" in found["images"].said
    assert "asks it for json_object" in found["json_schema"].said
    with ChatServer(lambda body: "It is green.") as server:
        found = by_name(check_endpoint(server.base_url, "tester", None))
    assert found["images"].said == "says of a blue picture: 'It is green.'"
    assert found["json_schema"].said == "takes one, and says 'It is green.'"
    assert found["tools"].said == "takes some, called none and said 'It is green.'"


def test_endpoints_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with ChatServer(able, key="another") as server:
        found = check_endpoint(server.base_url, "tester", None)
    with ChatServer(able, models=()) as empty:
        unlisted = check_endpoint(empty.base_url, None, None)
    assert "check the key" in by_name(found)["chat"].said
    assert "lists no model; name one with --model" in by_name(unlisted)["chat"].said
    found = check_endpoint(server.base_url, "tester", None)
    assert f"nobody answers at {server.base_url}" in by_name(found)["chat"].said
    assert states(found).pop("chat") == "broken"
    assert list(states(found).values()).count("missing") == len(found) - 1 == len(ABILITIES) + len(SPEAKERS)
    found = check_endpoint("https://models.example.org/v1", "tester", "KEY_OF_EXAMPLE")
    assert "KEY_OF_EXAMPLE is not set" in by_name(found)["chat"].said


def test_a_server_of_one_picture_that_counts_no_tokens() -> None:
    def one(body: dict) -> Behaviour | dict | str:
        if json.dumps(body).count('"image_url": {') > 1:
            return failing(500, "vision model only supports a single image per message")
        return Behaviour(content="blue", usage={})

    with ChatServer(one) as server:
        found = by_name(check_endpoint(server.base_url, None, None))
    assert found["usage"].said == "counts no tokens"
    assert found["several images"].said == "takes 1 in a request"
    assert "set images = 1 for the role" in found["several images"].todo


@pytest.mark.slow
def test_the_rule_server_stands_every_check() -> None:
    """Its rules know agents' requests; what the doctor asks ended in a closed connection."""
    with RuleServer(Rules()) as server:
        found = check_endpoint(server.base_url, None, None)
    assert set(states(found).values()) == {"ok"}, [each.said for each in found]


def test_a_server_that_sends_thoughts_and_takes_no_system_message() -> None:
    def thinking(body: dict) -> Behaviour | dict | str:
        if any(message["role"] == "system" for message in body["messages"]):
            return failing(400, "System role not supported")
        if "tools" in body or "response_format" in body:
            return able(body)
        message = {"role": "assistant", "content": "Blue, ready.", "reasoning_content": "The user wants a word."}
        return Behaviour(body={"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    with ChatServer(thinking) as server:
        found = by_name(check_endpoint(server.base_url, None, None))
    assert (found["system role"].state, found["system role"].todo) == ("missing", "nothing: kinodex sends none")
    assert "System role not supported" in found["system role"].said
    assert found["thoughts"].said.startswith("returns them in reasoning_content")
    with ChatServer(able) as server:
        found = by_name(check_endpoint(server.base_url, None, None))
    assert found["system role"].said.startswith("takes a system message")
    assert found["thoughts"].said == "returns none beside the reply"
