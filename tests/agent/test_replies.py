"""Schemas of replies: strict, without references, bound by inputs, and values that fit them."""

from __future__ import annotations

import json
import math
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from kinodex.agent.models.reply_parser import parse_json
from kinodex.agent.replies.calls import flat_call
from kinodex.agent.replies.schema import NULL, bound_schema, exactly, one_of, plainest, strict_schema, without_reasoning
from kinodex.agent.replies.values import Confidence, Numbers, Score, Seconds, WholeNumber
from tests.support.models.constrained_decoders import llguidance_accepts, written
from tests.support.servers.wire import GO, HOME, Walk
from tests.support.strict_mode import violations


class Part(BaseModel):
    """One part."""

    number: int = Field(ge=1, le=9, description="its number")
    note: str | None = None


class Whole(BaseModel):
    """A reply of parts."""

    reasoning: str = ""
    kind: Literal["a", "b"] = Field(description="of which kind")
    parts: list[Part]
    best: Part


SCHEMA = strict_schema(Whole)


def test_every_key_is_required_nothing_refers_to_anything_else_and_the_plainest_value_fits() -> None:
    assert violations(SCHEMA) == []
    assert list(SCHEMA["properties"]) == SCHEMA["required"] == ["reasoning", "kind", "parts", "best"]
    number = {"type": "integer", "minimum": 1, "maximum": 9, "description": "its number"}
    assert SCHEMA["properties"]["best"]["properties"]["number"] == number
    for schema in (SCHEMA, without_reasoning(SCHEMA), bound_schema(SCHEMA, {"parts": exactly(3)})):
        assert llguidance_accepts(schema, written(plainest(schema))), schema


def test_bounds_reach_parts_of_lists_and_of_objects_and_leave_the_class_alone() -> None:
    bound = bound_schema(
        SCHEMA,
        {
            "parts": exactly(2),
            "parts.note": NULL,
            "best.note": one_of(("x", "y"), or_null=True),
            "kind": one_of(("a",)),
        },
    )
    properties = bound["properties"]
    assert (properties["parts"]["minItems"], properties["parts"]["maxItems"]) == (2, 2)
    assert properties["parts"]["items"]["properties"]["note"] == {"type": "null"}
    assert properties["best"]["properties"]["note"]["enum"] == ["x", "y", None]
    assert properties["kind"] == {"description": "of which kind", "type": "string", "enum": ["a"]}
    assert violations(bound) == [] and "minItems" not in strict_schema(Whole)["properties"]["parts"]


# Numbers, times and lists as models write them: what is meant without doubt is read, the rest is refused.


def test_what_is_meant_is_read() -> None:
    for kind, said, meant in [
        (WholeNumber, "3", 3),
        (WholeNumber, 3.0, 3),
        (WholeNumber, "Segment 3", 3),
        (WholeNumber, "Segment 3: 10.0 s to 20.0 s", 3),
        (WholeNumber, "three", 3),
        (WholeNumber, "2/3", 2),
        (Score, 85, 85),
        (Score, "85%", 85),
        (Score, "85/100", 85),
        (Score, "8.5 out of 10", 85),
        (Confidence, 0.85, 0.85),
        (Confidence, "85 %", 0.85),
        (Seconds, 12.5, 12.5),
        (Seconds, "12.5 s", 12.5),
        (Seconds, "10:00", 600),
        (Seconds, "1:02:03", 3723),
        (Seconds, "00:10.5", 10.5),
        (Seconds, "1m30s", 90),
        (Seconds, "5 minutes", 300),
        (Seconds, "at 31.00 s", 31),
        (Numbers, [1, 2], [1, 2]),
        (Numbers, "1, 2 and 4", [1, 2, 4]),
        (Numbers, "<clip_3>, <clip_4>", [3, 4]),
        (Numbers, ["frame 2", 5], [2, 5]),
        (Numbers, 3, [3]),
        (Numbers, None, []),
        (Numbers, "none", []),
        (Numbers, " Null ", []),
    ]:
        assert TypeAdapter(kind).validate_python(said) == pytest.approx(meant), kind


def test_what_may_mean_several_things_or_nothing_is_refused() -> None:
    numbers = (WholeNumber, Score, Confidence, Seconds)
    nothing: tuple[object, ...] = (math.nan, math.inf, -math.inf, True, "", "soon", "NaN", {}, "1e999", "9" * 5000)
    refused: dict[Any, tuple[object, ...]] = {
        WholeNumber: (3.5, "3 or 4", "not segment 3", "It isn't 3"),
        Score: ("between 60 and 70", 101, "120%"),
        Confidence: (85,),
        Seconds: ("not at 90 s", "10:00 to 11:00", "1:2:3:4", "1:75"),
        Numbers: ("9" * 5000, "not 3", "1-3", "many", [[1]], [True]),
    }
    for kind, values in refused.items():
        for said in (*values, *(nothing if kind in numbers else ())):
            with pytest.raises(ValidationError):
                TypeAdapter(kind).validate_python(said)


# Calls of tools in the forms of several chat templates.


def test_one_call_in_any_form_is_read_and_what_is_none_stays_as_it_is() -> None:
    inner = {"name": "go", "arguments": {"where": "home", "fast": None}}
    for said in (
        GO,
        inner,
        [inner],
        {"name": "go", "parameters": {"where": "home", "fast": None}},
        {"tool": "go", "args": {"where": "home"}},
        {"name": "go", "arguments": '{"where": "home", "fast": null}'},
        {"function": inner},
        {"type": "function", "function": {"name": "go", "arguments": '{"where": "home"}'}},
        {"tool_calls": [{"id": "1", "type": "function", "function": inner}]},
        {"function": "go", "arguments": {"where": "home"}},
    ):
        for text in (json.dumps(said), f"I go.\n<tool_call>\n{json.dumps(said)}\n</tool_call>"):
            assert parse_json(text, Walk()) == HOME, said
    others: list[Any] = [{"queries": ["a"]}, {"name": "go"}, {"name": "go", "arguments": "home"}, [], 7]
    others += [
        {"name": "go", "arguments": "[" * 3000},
        {"name": {}, "arguments": {}},
        {"function": None, "tool_calls": []},
    ]
    for other in (*others, {"tool_calls": [inner, inner]}, [inner, inner]):
        assert flat_call(other) is other, other
