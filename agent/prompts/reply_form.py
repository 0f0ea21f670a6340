"""The end of a prompt, which says in what form to reply: the keys in their order, each in a few words, and the form.

Both are taken from the request's own schema, so that what the prompt asks for, what a server enforces and what is
read cannot differ. The form is an example with words in it, about another film: a small model that is shown dots writes
dots. Its choice is another one from question to question, so that none is recommended; its words, sent back, are no
reply (`reply_parser.parse_json`). Of a reply without words no form is shown: whoever copied it would have chosen.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from kinodex.agent.protocol.request import Request
from kinodex.agent.replies.schema import FORM_WORDS, NAMED, WORDS, Schema

MOST_SHOWN = 2
"""Items of a list in the form."""
BEGINNING = "Reply with JSON only, one object with exactly these keys in this order:"
FORM = "The form, in an example about another film:"


def reply_line(request: Request[Any], reasoning: bool = True) -> str:
    """Say in what form to reply; without `reasoning` the model is not asked to write down its thoughts."""
    schema = request.schema(reasoning=reasoning)
    form = reply_form(schema, _turn(request))
    shown = [f"{FORM} {form}"] if WORDS in form else []
    return "\n".join([BEGINNING, *_keys(schema, "- "), *shown])


def reply_form(schema: Schema, turn: int = 0) -> str:
    """Return an example of a reply as JSON; `turn` decides which of several letters it has."""
    return json.dumps(_example(schema, "", turn), ensure_ascii=False)


def _turn(request: Request[Any]) -> int:
    return zlib.crc32(str(getattr(getattr(request, "question", None), "text", "")).encode(errors="replace"))


def _example(schema: Schema, name: str, turn: int) -> Any:
    if NAMED in schema:
        return _coherent({key: _example(each, key, turn) for key, each in schema[NAMED].items()}, schema[NAMED])
    if "items" in schema:
        least, most = schema.get("minItems", 1), schema.get("maxItems", 1)
        return [_example(schema["items"], name, turn)] * min(max(least, 1), most, MOST_SHOWN)
    if "anyOf" in schema:
        return _example(schema["anyOf"][0], name, turn)
    if "enum" in schema or "const" in schema:
        values = [each for each in schema.get("enum", [schema.get("const")]) if each is not None]
        return values[turn % len(values) if name == "option" else 0]
    kinds = schema.get("type")
    kind = kinds[0] if isinstance(kinds, list) else kinds
    if kind in ("integer", "number"):
        return _number(schema)
    return {"string": FORM_WORDS.get(name, WORDS), "boolean": True}.get(str(kind))


def _coherent(example: dict[str, Any], properties: Mapping[str, Schema]) -> dict[str, Any]:
    """Leave out what an example's action does not take: an answer beside a segment to explore, and the other way."""
    if "action" not in example:
        return example
    others = ("option", "answer") if example["action"] == "explore" else ("segment",)
    return {key: None if key in others and _may_be_null(properties[key]) else each for key, each in example.items()}


def _may_be_null(schema: Schema) -> bool:
    return any("null" in str(each.get("type")) for each in schema.get("anyOf", [schema]))


def _number(schema: Schema) -> float:
    """Return a number from the middle of those that there may be: the least or the most would be a judgement."""
    least, most = schema.get("minimum", 1), schema.get("maximum")
    middle = least + 1 if most is None else (least + most) / 2
    return int(middle) if schema["type"] == "integer" or middle == int(middle) else middle


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
    return f"{least} to {most}" if least else f"up to {most}"
