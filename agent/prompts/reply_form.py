"""The end of a prompt, which says in what form to reply: the keys in their order, each in a few words, and the form.

Both are taken from the request's own schema, so that what the prompt asks for, what a server enforces and what is
read cannot differ. The form has dots in the place of all content: an example with some is repeated by weak models,
and a choice in it is recommended. Sent back, the form is no reply (`reply_parser.parse_json`).

Where one schema serves all requests of a run (`kinodex.agent.replies.joint`), the server puts it before the messages
with the words about each key. The prompt then says only which reply is due, and what its keys may be this time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from kinodex.agent.protocol.request import Request
from kinodex.agent.replies.joint import Joint
from kinodex.agent.replies.schema import DOTS, NAMED, REASONING, Schema

BEGINNING = "Reply with JSON only, one object with exactly these keys in this order:"
JOINT_BEGINNING = "Reply with JSON only, as"
FORM = "The form, with dots in the place of your own words and numbers:"


def reply_line(request: Request[Any], reasoning: bool = True, joint: bool = False) -> str:
    """Say in what form to reply; without `reasoning` the model is not asked to write down its thoughts.

    `joint`: in the joint schema of the run, if the request has one.
    """
    if joint and (shared := request.joint()) is not None:
        return _joint_line(request, shared, reasoning)
    schema = request.schema(reasoning=reasoning)
    return "\n".join([BEGINNING, *_keys(schema, "- "), f"{FORM} {reply_form(schema)}"])


def _joint_line(request: Request[Any], shared: Joint, reasoning: bool) -> str:
    """Name the keys of a reply in the joint schema, with their values where this request binds them more closely."""
    own = request.schema(reasoning=reasoning)[NAMED]
    joint = shared.replies[shared.name][NAMED]
    keys = [f'"{name}"{_closer(own.get(name), each)}' for name, each in joint.items() if reasoning or name != REASONING]
    return f"{JOINT_BEGINNING} {shared.outline(reasoning=reasoning)}, with the keys {', '.join(keys)}."


def _closer(own: Schema | None, joint: Schema) -> str:
    """Return the values of a key in brackets if the joint schema allows others.

    A key of other requests is an empty list.
    """
    values = "[]" if own is None else _values(own)
    return f" ({values})" if values and values != _values(joint) else ""


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
