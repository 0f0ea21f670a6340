"""The published rules of OpenAI's strict mode for JSON schemas, as a check (platform.openai.com, structured outputs).

The limits are the older, tighter ones, which other servers that copy the mode still have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

KEYWORDS = {
    *("type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "description"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems"),
    *("pattern", "format"),
}
TYPES = {"string", "number", "boolean", "integer", "object", "array", "null"}
MOST_LEVELS, MOST_PROPERTIES, MOST_VALUES, MOST_CHARACTERS = 5, 100, 500, 15_000


def violations(schema: Mapping[str, Any]) -> list[str]:
    """Rules that a schema breaks, each in one line; none for one that strict mode takes."""
    found = list(_of_node(schema, "root", 0))
    if schema.get("type") != "object" or "anyOf" in schema:
        found.append("root: must be an object, and no choice between several")
    nodes = list(_nodes(schema))
    properties = [name for node in nodes for name in node.get("properties", {})]
    values = [value for node in nodes for value in node.get("enum", ())]
    if len(properties) > MOST_PROPERTIES:
        found.append(f"{len(properties)} properties")
    if len(values) > MOST_VALUES or sum(map(len, [*properties, *map(str, values)])) > MOST_CHARACTERS:
        found.append("too many or too long values and names")
    return found


def _of_node(node: Mapping[str, Any], path: str, level: int) -> Iterator[str]:
    if unknown := set(node) - KEYWORDS:
        yield f"{path}: {sorted(unknown)} are not supported"
    types = node.get("type", [])
    if wrong := set([types] if isinstance(types, str) else types) - TYPES:
        yield f"{path}: no type {sorted(wrong)}"
    if not {"type", "anyOf", "enum", "const"} & set(node):
        yield f"{path}: may be anything"
    if node.get("type") == "object":
        level += 1
        if level > MOST_LEVELS:
            yield f"{path}: nested {level} deep"
        if node.get("additionalProperties") is not False:
            yield f"{path}: additionalProperties is not false"
        if list(node.get("required", ())) != list(node["properties"]):
            yield f"{path}: not every property is required"
    for name, inner in _children(node):
        yield from _of_node(inner, f"{path}.{name}", level)


def _children(node: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield from node.get("properties", {}).items()
    yield from (("any", each) for each in node.get("anyOf", ()))
    if "items" in node:
        yield "items", node["items"]


def _nodes(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    for _, inner in _children(node):
        yield from _nodes(inner)
