"""Calls of tools in the forms of several chat templates."""

from __future__ import annotations

import json

import pytest

from kinodex.agent.models.completion import parse_json
from kinodex.agent.replies import flat_call
from tests.support.servers.wire import GO, HOME, Walk

INNER = {"name": "go", "arguments": {"where": "home", "fast": None}}


@pytest.mark.parametrize(
    "said",
    [
        GO,
        INNER,
        [INNER],
        {"name": "go", "parameters": {"where": "home", "fast": None}},
        {"tool": "go", "args": {"where": "home"}},
        {"name": "go", "arguments": '{"where": "home", "fast": null}'},
        {"function": INNER},
        {"type": "function", "function": {"name": "go", "arguments": '{"where": "home"}'}},
        {"tool_calls": [{"id": "1", "type": "function", "function": INNER}]},
        {"function": "go", "arguments": {"where": "home"}},
    ],
)
def test_one_call_in_any_form_is_read(said: object) -> None:
    for text in (json.dumps(said), f"I go.\n<tool_call>\n{json.dumps(said)}\n</tool_call>"):
        assert parse_json(text, Walk()) == HOME


@pytest.mark.parametrize(
    "said",
    [
        {"queries": ["a"]},
        {"name": "go"},
        {"name": "go", "arguments": "home"},
        {"name": "go", "arguments": "[" * 3000},
        {"name": {}, "arguments": {}},
        {"function": None, "tool_calls": []},
        {"tool_calls": [INNER, INNER]},
        [INNER, INNER],
        [],
        7,
    ],
)
def test_what_is_no_single_call_stays_as_it_is(said: object) -> None:
    assert flat_call(said) is said


def test_an_argument_cannot_change_the_tool() -> None:
    assert flat_call({"name": "go", "arguments": {"tool": "stop"}}) == {"tool": "go"}
