"""Schemas of rows that a user gives, as the columns of a table.

A schema is JSON's, as pydantic writes it, of which only that is read which every server's decoder takes and a table's
columns can hold; anything else is an error that names the place. Its keys stay in their order: a model writes them in
it, so what is to be thought of first stands first.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kinodex.agent.errors import BadSettings
from kinodex.agent.replies.schema import NAMED, Schema

EVIDENCE = "evidence"
ROWS = "rows"
DEEPEST = 4
"""Objects and lists within each other; some servers refuse more than five."""
MOST_KEYS = 100
"""OpenAI's least limit of the keys of a schema."""
MOST_ITEMS = 1000
"""Most items that a schema may ask a list to have; no reply is as long."""
LIMITS, LENGTHS = {"minimum", "maximum"}, {"minItems", "maxItems"}
KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
SCALARS: dict[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool}
COMMON = {"type", "description", "title", "default", "examples", "$ref", "anyOf"}
WORDS = {
    "object": {NAMED, "required", "additionalProperties"},
    "array": {"items", "minItems", "maxItems"},
    "string": {"enum", "const"},
    "integer": {"minimum", "maximum"},
    "number": {"minimum", "maximum"},
    "boolean": set[str](),
}
"""Words of the schema language that are read, by the type they stand with."""


@dataclass(frozen=True, slots=True)
class RowSchema:
    """A schema that was read: the columns' schemas without references, by name, and if a part has `several` rows."""

    title: str
    description: str
    several: bool
    columns: Mapping[str, Schema] = field(hash=False)

    def as_json(self) -> str:
        """Return the same schema as one text, which is equal where what models are asked is."""
        row: Schema = {"title": self.title, "description": self.description, "type": "object", NAMED: self.columns}
        return json.dumps({"type": "array", "items": row} if self.several else row)


def read_schema(given: object, reserved: Sequence[str] = ()) -> RowSchema:
    """Read a schema: of an object, a row, or of an array of these; raises BadSettings for what it cannot hold."""
    if not isinstance(given, Mapping):
        raise BadSettings(
            f"got a schema of {type(given).__name__}; give a JSON schema of an object, or an array of them"
        )
    _check_texts(given)
    definitions = given.get("$defs", given.get("definitions", {}))
    several = given.get("type") == "array"
    row = _resolved(given.get("items", {}) if several else given, definitions, (), "the schema")
    if row.get("type") != "object":
        raise BadSettings(
            f"got a schema of type {row.get('type')!r}; give one of an object, whose properties are the columns, or of "
            "an array of such objects for several rows a part"
        )
    columns: dict[str, Schema] = row[NAMED]
    taken = {name.lower() for name in (*reserved, EVIDENCE)}
    for name in columns:
        if name.lower() in taken:
            raise BadSettings(f"got a property {name}, a column that every extract has; call it otherwise")
    if _count(row) > MOST_KEYS:
        raise BadSettings(f"got a schema of {_count(row)} keys; servers take {MOST_KEYS}: leave some out")
    of_row = given.get("items", {}) if several else given
    title = str(of_row.get("title") or str(of_row.get("$ref", "")).rpartition("/")[2] or "Row")
    return RowSchema(title, str(row.get("description") or given.get("description") or ""), several, columns)


def _check_texts(given: Mapping[str, Any]) -> None:
    """Raise BadSettings for half of a character, as JSON's "\\ud800", which no model and no table takes."""
    try:
        json.dumps(given, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start : error.end]
        raise BadSettings(f"the schema has {half!r}, which is half of a character; write the whole one") from error


def _check_limits(plain: Mapping[str, Any], place: str) -> None:
    """Raise BadSettings for limits that no reply can be held to."""
    for name in LIMITS & plain.keys():
        if isinstance(plain[name], bool) or not isinstance(plain[name], int | float) or not math.isfinite(plain[name]):
            raise BadSettings(f"{place} has {name} {plain[name]}; give a number")
    for name in LENGTHS & plain.keys():
        if not isinstance(plain[name], int) or not 0 <= plain[name] <= MOST_ITEMS:
            raise BadSettings(f"{place} has {name} {plain[name]}; give a whole number up to {MOST_ITEMS}")


def _count(schema: Schema) -> int:
    inner = schema.get("items") or {}
    return sum(1 + _count(each) for each in (schema | inner).get(NAMED, {}).values())


def _resolved(node: object, definitions: Mapping[str, Any], around: tuple[str, ...], place: str) -> Schema:
    """Return a schema without references, titles and defaults.

    Raises BadSettings, naming the place, for what is not read.
    """
    if not isinstance(node, Mapping):
        raise BadSettings(f"got {node!r} as the schema of {place}; give an object with a type")
    if "$ref" in node:
        name = str(node["$ref"]).rpartition("/")[2]
        if name in around:
            raise BadSettings(f"{place} holds {name} within {name}, which no column can; give it an end")
        if name not in definitions:
            raise BadSettings(f"{place} refers to {node['$ref']}, which is not among $defs")
        said = {key: node[key] for key in ("description",) if key in node}
        return _resolved(definitions[name], definitions, (*around, name), place) | said
    if "anyOf" in node:
        return _nullable(node, definitions, around, place)
    kind = node.get("type")
    if isinstance(kind, list) and len(kind) == 2 and "null" in kind:
        kind = next(each for each in kind if each != "null")
        return {**_resolved({**node, "type": kind}, definitions, around, place), "nullable": True}
    if kind not in WORDS:
        got = f"type {kind!r}" if "type" in node else "no type"
        raise BadSettings(f"{place} has {got}; it is one of {', '.join(WORDS)}, or one of them and null")
    unknown = sorted(node.keys() - COMMON - WORDS[kind] - {"$defs", "definitions", "$schema", "nullable"})
    if unknown:
        raise BadSettings(
            f"{place} has {unknown[0]!r}, which not every server's decoder takes of type {kind}; what it means may be "
            f"said in the description. Read are {', '.join(sorted(COMMON | WORDS[kind]))}"
        )
    kept = ("type", "description", "nullable", *sorted(WORDS[kind] - {NAMED, "items"}))
    plain = {key: node[key] for key in kept if key in node}
    _check_limits(plain, place)
    if kind == "object":
        return _object(node, plain, definitions, around, place)
    if kind == "array":
        if "items" not in node:
            raise BadSettings(f"{place} is an array without items; say what it holds")
        return plain | {"items": _resolved(node["items"], definitions, _deeper(around, place), f"each of {place}")}
    if kind == "string" and not all(isinstance(each, str) for each in (*node.get("enum", ()), node.get("const", ""))):
        raise BadSettings(f"{place} is one of {node.get('enum', [node.get('const')])}; give only texts")
    return plain


def _object(
    node: Mapping[str, Any], plain: Schema, definitions: Mapping[str, Any], around: tuple[str, ...], place: str
) -> Schema:
    properties = node.get(NAMED) or {}
    if not properties or node.get("additionalProperties"):
        what = "has keys that are not known" if node.get("additionalProperties") else "has no properties"
        raise BadSettings(f"{place} {what}; name each as a property: they are columns")
    names = [str(name) for name in properties]
    for name in names:
        if not KEY.fullmatch(name) or sum(each.lower() == name.lower() for each in names) > 1:
            raise BadSettings(
                f"{place} has a property {name!r}; give each letters, digits and _, a letter first, and names that "
                "differ in more than capitals"
            )
    inner = _deeper(around, place)
    resolved = {name: _resolved(each, definitions, inner, f"the property {name}") for name, each in properties.items()}
    return {key: plain[key] for key in ("type", "description", "nullable") if key in plain} | {NAMED: resolved}


def _nullable(node: Mapping[str, Any], definitions: Mapping[str, Any], around: tuple[str, ...], place: str) -> Schema:
    choices = [each for each in node["anyOf"] if each != {"type": "null"}]
    if len(choices) != 1 or len(choices) == len(node["anyOf"]):
        raise BadSettings(f"{place} is of several types; a column has one, or one and null")
    said = {key: node[key] for key in ("description",) if key in node}
    return {**_resolved(choices[0], definitions, around, place), **said, "nullable": True}


def _deeper(around: tuple[str, ...], place: str) -> tuple[str, ...]:
    if sum(not each for each in around) >= DEEPEST:
        raise BadSettings(f"{place} lies deeper than {DEEPEST} objects and lists; servers refuse that: make it flatter")
    return (*around, "")
