"""JSON schemas of replies in strict mode: each key required, no others, no defaults; and values that fit them."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from pydantic import BaseModel

REASONING = "reasoning"
"""The name of the field in which a model thinks before it commits itself."""
REASONING_NAMES = (REASONING, "thought", "thoughts", "explanation", "reason", "rationale", "analysis")
"""Names under which reasons are read: papers' prompts have "thought" and "explanation"."""
NAMED = "properties"
CHOICES = frozenset({"enum", "const", "pattern", "format"})
"""Words that say which texts there may be."""
UNSUPPORTED = {"default", "title", "discriminator", "$defs"}
NULL: Mapping[str, object] = {"type": "null"}
LEFT_OUT: Mapping[str, object] = {}
"""In the place of a property's bounds: it is not asked for."""
DOTS = "..."
"""The place of a text or a number in the form of a reply that a prompt shows."""
WORDS = "A man in a red coat lifts a box."
"""The text in the example of a reply that a prompt shows; what repeats it says nothing."""
_SOUGHT = "man in a red coat lifting a box"
FORM_WORDS = {
    **dict.fromkeys(("queries", "search", "label", "description", "query"), _SOUGHT),
    "steps": "Find when the man in a red coat lifts a box.",
    "title": "The red coat and the box",
    "name": "coat_and_box",
}
"""Texts there of keys that hold no sentence."""
Schema = dict[str, Any]
Bounds = Mapping[str, Mapping[str, object]]
"""Words of the schema language by the property that they bind; "a.b" is the property b of a, or of a's items."""


@cache
def strict_schema(reply: type[BaseModel]) -> Schema:
    """Return the JSON schema of a class of replies in strict mode, without references; callers must not change it."""
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
    """Return a schema with further words for some properties, and without those that are left out.

    Words that give a type take the place of what was there.
    """
    bound = copy.deepcopy(schema)
    for path, words in bounds.items():
        *outer, name = path.split(".")
        parent = bound
        for each in outer:
            inner = parent[NAMED][each]
            parent = inner.get("items", inner)
        properties = parent[NAMED]
        if words == LEFT_OUT:
            del properties[name]
            parent["required"] = list(properties)
            continue
        kept = properties[name]
        if "type" in words:
            kept = {key: kept[key] for key in ("description",) if key in kept and words != NULL}
        properties[name] = {**kept, **words}
    return bound


def without_reasoning(schema: Schema) -> Schema:
    """Return a schema without the field in which a model thinks, for models that think before they write."""
    properties = {name: each for name, each in schema[NAMED].items() if name != REASONING}
    return {**schema, NAMED: properties, "required": list(properties)}


def only(schema: Schema, name: str) -> Schema:
    """Return a schema of an object with one of its properties alone."""
    return {**schema, NAMED: {name: schema[NAMED][name]}, "required": [name]}


def exactly(count: int) -> Mapping[str, object]:
    """Bind a list to one length. It seldom changes between the requests of a run: some servers compile each schema."""
    return {"minItems": count, "maxItems": count}


def one_of(values: Sequence[str], *, or_null: bool = False) -> Mapping[str, object]:
    """Bind a text to some values, which are few and the same from request to request."""
    if not or_null:
        return {"type": "string", "enum": list(values)}
    return {"type": ["string", "null"], "enum": [*values, None]}


@cache
def words_of_form(reply: type[BaseModel]) -> frozenset[str]:
    """Return texts that a prompt has in the place of a reply's content: its example, dots, descriptions of keys."""
    said = re.findall(r'"description": "([^"]* [^"]*)"', json.dumps(strict_schema(reply)))
    shown = {WORDS, *FORM_WORDS.values()}
    return frozenset({DOTS, "…", *map(str.casefold, shown), *map(str.casefold, said)})


def filled_in(value: object, blank: frozenset[str]) -> object:
    """Return a reply's JSON values with null for texts that say nothing but what the form of the reply says."""
    if isinstance(value, str):
        return None if value.strip().strip("<>[]").casefold() in blank else value
    if isinstance(value, list):
        return [filled_in(each, blank) for each in value]
    return {key: filled_in(each, blank) for key, each in value.items()} if isinstance(value, dict) else value


SAMPLE = "A boy kicks a ball on a meadow, and it is not seen where it comes to lie."
NO_NUMBERS: Mapping[str, Sequence[Any]] = {}


def plainest(schema: Schema, known: Mapping[str, Sequence[Any]] = NO_NUMBERS, name: str = "", at: int = 0) -> Any:
    """Return the plainest value that fits a strict schema: the first of several values, lists as short as may be.

    `known` has the values of some keys, by their names: the first, in a list of objects one for each.
    """
    if "enum" in schema or "const" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    if "anyOf" in schema:
        return plainest(schema["anyOf"][0], known, name, at)
    kind = schema.get("type")
    if kind == "object":
        return {key: plainest(each, known, key, at) for key, each in schema[NAMED].items()}
    if kind == "array":
        count = min(schema.get("minItems", 1), schema.get("maxItems", 1))
        return [plainest(schema["items"], known, name, place) for place in range(max(count, schema.get("minItems", 0)))]
    if kind != "null" and (values := known.get(name)):
        return values[min(at, len(values) - 1)]
    number = schema.get("minimum", 1)
    return {"string": SAMPLE, "integer": number, "number": number, "boolean": True}.get(str(kind))
