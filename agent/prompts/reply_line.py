"""The end of a prompt, which says in what form to reply: the keys in their order, each in a few words, and an example.

Both are taken from the request's own schema, so that what the prompt asks for, what a server enforces and what is read
cannot differ. The example is written as `json.dumps` writes it, and fits the schema byte for byte.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agent.core.protocol import Request
from agent.core.reply_schema import NAMED, Schema, in_order

BEGINNING = "Reply with JSON only, one object with exactly these keys in this order:"
EXAMPLE = "For example, with content that is made up:"


def reply_line(request: Request[Any], reasoning: bool = True) -> str:
    """Say in what form to reply; without `reasoning` the model is not asked to write down its thoughts."""
    lines = [BEGINNING, *_keys(request.schema(reasoning=reasoning), "- ")]
    return "\n".join([*lines, f"{EXAMPLE} {example_text(request, reasoning)}"])


def example_text(request: Request[Any], reasoning: bool = True) -> str:
    """An example of a reply as JSON; it fits `request.schema(reasoning=reasoning)`."""
    schema = request.schema(reasoning=reasoning)
    return json.dumps(in_order(request.example(), schema), ensure_ascii=False)


def _keys(schema: Schema, indent: str) -> Iterator[str]:
    """Lines of the keys of an object, and below them those of the objects within it."""
    for name, each in schema[NAMED].items():
        inner = each.get("items", each)
        said = [text for text in (each.get("description", ""), _values(each)) if text]
        line = f'{indent}"{name}": {"; ".join(said)}'.rstrip(": ")
        if NAMED in inner:
            yield f"{line}; {'each ' if inner is not each else ''}with these keys:"
            yield from _keys(inner, f"  {indent}")
        else:
            yield line


def _values(schema: Schema) -> str:
    """The values that a schema allows, as far as its type alone does not say them."""
    if "enum" in schema or "const" in schema:
        return " | ".join(json.dumps(each) for each in schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema:
        return next((values for each in schema["anyOf"] if (values := _values(each)) not in ("", "null")), "")
    if schema.get("type") == "array":
        return _count(schema.get("minItems"), schema.get("maxItems"))
    if "minimum" in schema and "maximum" in schema:
        return f"{schema['minimum']:g} to {schema['maximum']:g}"
    return {"null": "null", "boolean": "true | false"}.get(str(schema.get("type")), "")


def _count(least: int | None, most: int | None) -> str:
    if least is not None and least == most:
        return f"exactly {least}"
    if most is None:
        return "" if not least else f"at least {least}"
    return f"{least} to {most}" if least else f"at most {most}"
