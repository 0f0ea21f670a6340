"""Attributes of spans: steps with tools, events of a run, and texts without secrets."""

from __future__ import annotations

import json

from kinodex.agent.protocol import Note
from kinodex.agent.trace import Acted
from kinodex.jobs.telemetry import MOST_TEXT, flat, tool_attributes

SECRET = "sk-" + "a1B2c3D4" * 4


def test_a_step_with_a_tool() -> None:
    note = Note("film", 1.0, 2.0, "look", "a gull")
    made = tool_attributes(Acted(3, "look", {"query": f"key {SECRET}", "from": 1.5}, notes=(note,)))
    assert (made["gen_ai.operation.name"], made["gen_ai.tool.name"]) == ("execute_tool", "look")
    assert json.loads(str(made["gen_ai.tool.call.arguments"])) == {"query": "key ***", "from": 1.5}
    assert (made["kinodex.round"], made["kinodex.notes"]) == (3, 1)
    assert "error.type" not in made
    assert tool_attributes(Acted(3, "look", {}, problem="no such video"))["error.type"] == "tool_error"


def test_fields_of_an_event_are_plain_and_short() -> None:
    fields = {"round": 2, "forced": False, "segment": None, "action": f"explore {SECRET}", "children": [1, 2, 3]}
    assert flat(fields) == {
        "kinodex.round": 2,
        "kinodex.forced": False,
        "kinodex.action": "explore ***",
        "kinodex.children.count": 3,
    }
    assert len(str(flat({"thought": "x" * 10_000})["kinodex.thought"])) == MOST_TEXT
