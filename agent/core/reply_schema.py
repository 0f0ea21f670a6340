"""JSON schemas of replies in strict mode: each key required, no others, no defaults; and values that fit them.

Servers that enforce a schema write its keys in its order, so the order of a reply's fields is the order of thinking:
`reasoning`, the action, what the action needs, evidence. The same schema is sent to servers, described in words at the
end of a prompt (`agent.prompts.reply_line`), and its class reads the reply.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from pydantic import BaseModel

REASONING = "reasoning"
"""The name of the field in which a model thinks before it commits itself."""
NAMED = "properties"
UNSUPPORTED = {"default", "title", "discriminator", "$defs"}
NULL: Mapping[str, object] = {"type": "null"}
Schema = dict[str, Any]
Bounds = Mapping[str, Mapping[str, object]]
"""Words of the schema language by the property that they bind; "a.b" is the property b of a, or of a's items."""


@cache
def strict_schema(reply: type[BaseModel]) -> Schema:
    """The JSON schema of a class of replies in strict mode, without references; callers must not change it."""
    schema = reply.model_json_schema()
    strict = _strict(schema, schema.get("$defs", {}))
    assert isinstance(strict, dict)
    return strict


def _strict(node: object, definitions: Mapping[str, object]) -> object:
    if isinstance(node, list):
        return [_strict(each, definitions) for each in node]
    if not isinstance(node, dict):
        return node
    strict: Schema = {}
    if "$ref" in node:
        inner = _strict(definitions[node["$ref"].rpartition("/")[2]], definitions)
        assert isinstance(inner, dict)
        strict |= inner
    for key, value in node.items():
        if key == NAMED:  # the keys are names of the reply, not words of the schema language
            strict[key] = {name: _strict(each, definitions) for name, each in value.items()}
        elif key not in UNSUPPORTED and key != "$ref":
            strict["anyOf" if key == "oneOf" else key] = _strict(value, definitions)
    if NAMED in node:
        strict |= {"required": list(node[NAMED]), "additionalProperties": False}
    return strict


def bound_schema(schema: Schema, bounds: Bounds) -> Schema:
    """A schema with further words for some properties; those that give a type take the place of what was there."""
    bound = copy.deepcopy(schema)
    for path, words in bounds.items():
        *outer, name = path.split(".")
        properties = bound[NAMED]
        for each in outer:
            inner = properties[each]
            properties = inner.get("items", inner)[NAMED]
        kept = properties[name]
        if "type" in words:
            kept = {key: kept[key] for key in ("description",) if key in kept and words != NULL}
        properties[name] = {**kept, **words}
    return bound


def without_reasoning(schema: Schema) -> Schema:
    """A schema without the field in which a model thinks, for models that think before they write."""
    properties = {name: each for name, each in schema[NAMED].items() if name != REASONING}
    return {**schema, NAMED: properties, "required": list(properties)}


def exactly(count: int) -> Mapping[str, object]:
    """Bind a list to one length. It seldom changes between the requests of a run: some servers compile each schema."""
    return {"minItems": count, "maxItems": count}


def one_of(values: Sequence[str], *, or_null: bool = False) -> Mapping[str, object]:
    """Bind a text to some values, which are few and the same from request to request."""
    if not or_null:
        return {"type": "string", "enum": list(values)}
    return {"type": ["string", "null"], "enum": [*values, None]}


def in_order(value: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """The properties of a schema from a value, in the schema's order; those that the value lacks are null."""
    return {name: value.get(name) for name in schema[NAMED]}


def plainest(schema: Schema) -> Any:
    """The plainest value that fits a strict schema: the first of several values, lists as short as may be."""
    if "enum" in schema or "const" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    if "anyOf" in schema:
        return plainest(schema["anyOf"][0])
    kind = schema.get("type")
    if kind == "object":
        return {name: plainest(each) for name, each in schema[NAMED].items()}
    if kind == "array":
        return [plainest(schema["items"]) for _ in range(schema.get("minItems", 1))]
    number = schema.get("minimum", 1)
    return {"string": "...", "integer": number, "number": number, "boolean": True}.get(str(kind))
