"""Schemas of replies: strict, without references, bound by inputs, and values that fit them."""

from __future__ import annotations

from typing import Literal

import pytest
from pydantic import BaseModel, Field

from kinodex.agent.replies import (
    NULL,
    bound_schema,
    exactly,
    in_order,
    one_of,
    plainest,
    strict_schema,
    without_reasoning,
)
from tests.support.models.constrained_decoders import llguidance_accepts, written
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


def test_every_key_is_required_and_nothing_refers_to_anything_else() -> None:
    assert violations(SCHEMA) == []
    assert list(SCHEMA["properties"]) == SCHEMA["required"] == ["reasoning", "kind", "parts", "best"]
    assert SCHEMA["properties"]["best"]["properties"]["number"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 9,
        "description": "its number",
    }


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


def test_a_bound_of_an_unknown_property_is_a_slip_that_shows() -> None:
    with pytest.raises(KeyError):
        bound_schema(SCHEMA, {"part": exactly(2)})


@pytest.mark.parametrize("schema", [SCHEMA, without_reasoning(SCHEMA), bound_schema(SCHEMA, {"parts": exactly(3)})])
def test_the_plainest_value_fits(schema) -> None:
    assert llguidance_accepts(schema, written(plainest(schema)))


def test_a_value_is_put_in_order_and_what_it_lacks_is_null() -> None:
    assert list(in_order({"best": 1, "kind": "a"}, SCHEMA).items()) == [
        ("reasoning", None),
        ("kind", "a"),
        ("parts", None),
        ("best", 1),
    ]
