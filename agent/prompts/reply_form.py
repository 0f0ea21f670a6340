"""The end of a prompt, which says in what form to reply: the keys in their order, each in a few words, and the form.

Both are taken from the request's own schema, so that what the prompt asks for, what a server enforces and what is
read cannot differ. The form has dots in the place of all content: an example with some is repeated by weak models,
and a choice in it is recommended. Sent back, the form is no reply (`reply_parser.parse_json`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from kinodex.agent.protocol.request import Request
from kinodex.agent.replies.schema import DOTS, NAMED, Schema

BEGINNING = "Reply with JSON only, one object with exactly these keys in this order:"
FORM = "The form, with dots in the place of your own words and numbers:"


def reply_line(request: Request[Any], reasoning: bool = True) -> str:
    """Say in what form to reply; without `reasoning` the model is not asked to write down its thoughts."""
    schema = request.schema(reasoning=reasoning)
    return "\n".join([BEGINNING, *_keys(schema, "- "), f"{FORM} {reply_form(schema)}"])


def reply_form(schema: Schema) -> str:
    """Return the form of a reply as JSON would have it, with dots in the place of texts and numbers."""
    if NAMED in schema:
        return f"{{{', '.join(f'{json.dumps(name)}: {reply_form(each)}' for name, each in schema[NAMED].items())}}}"
    if "items" in schema:
        return f"[{reply_form(schema['items'])}, {DOTS}]"
    kinds = [schema.get("type")] if "type" in schema else [each.get("type") for each in schema["anyOf"]]
    return "null" if kinds == ["null"] else f'"{DOTS}"' if "string" in str(kinds[0]) else DOTS


def _keys(schema: Schema, indent: str) -> Iterator[str]:
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
    """Return the values that a schema allows, as far as its type alone does not say them."""
    if "enum" in schema or "const" in schema:
        return " | ".join(json.dumps(each) for each in schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema:
        return next((values for each in schema["anyOf"] if (values := _values(each)) not in ("", "null")), "")
    if schema.get("type") == "array":
        count = _count(schema.get("minItems"), schema.get("maxItems"))
        return "; ".join(each for each in (_values(schema["items"]), count) if each)
    if "minimum" in schema and "maximum" in schema:
        return f"{schema['minimum']:g} to {schema['maximum']:g}"
    return {"null": "null", "boolean": "true | false"}.get(str(schema.get("type")), "")


def _count(least: int | None, most: int | None) -> str:
    if least is not None and least == most:
        return f"exactly {least}"
    if most is None:
        return "" if not least else f"at least {least}"
    return f"{least} to {most}" if least else f"at most {most}"
