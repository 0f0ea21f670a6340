"""Lengths of replies: the most items of a list, the most characters of a text, and the tokens that both come to.

A reply without an end costs as many tokens as its limit allows, and holds nothing that can be read. So each list has
an end, in the schema; reasons have none there, for a model thinks as long as it needs, but a budget of tokens.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

from kinodex.agent.replies.schema import CHOICES, NAMED, REASONING_NAMES, Schema

MOST_ITEMS = 32
"""Of a list that says no number of its own."""
MOST_NUMBERS = 8
"""Of a list of numbers that a reply cites: a few frames show what they all show."""
MOST_CHARACTERS, LISTED_CHARACTERS = 2000, 600
"""Of a text that is no reason, by itself and in a list; llama.cpp takes no more than 2,000 repetitions."""
TEXT_TOKENS, LISTED_TEXT_TOKENS = 1024, 200
"""Of such a text."""
REASONING_TOKENS, LISTED_REASONING_TOKENS = 1536, 384
"""Of reasons, by themselves and in a list."""
CHARACTERS_A_TOKEN = 4
NUMBER_TOKENS = 8
BRACKET_TOKENS = 2


def numbers_of(shown: Sequence[int]) -> Schema:
    """Bind a list of numbers to those of what was shown: a few of them.

    >>> numbers_of([1, 2, 3])["items"]
    {'type': 'integer', 'minimum': 1, 'maximum': 3}
    """
    number: Schema = {"type": "integer"}
    if shown:
        number |= {"minimum": min(shown), "maximum": max(shown)}
    return {"type": "array", "items": number, "maxItems": min(len(shown), MOST_NUMBERS)}


def finite(schema: Schema) -> Schema:
    """Return a schema whose lists all have a greatest number of items."""
    bounded = copy.deepcopy(schema)
    for each in _nodes(bounded):
        if each.get("type") == "array" and "maxItems" not in each:
            most = MOST_NUMBERS if each["items"].get("type") == "integer" else MOST_ITEMS
            each["maxItems"] = max(most, each.get("minItems", 0))
    return bounded


def with_text_limits(schema: Schema) -> Schema:
    """Return a schema whose texts have a greatest length too, but for reasons; not every server takes that."""
    return _limited(schema, MOST_CHARACTERS)


def most_tokens(schema: Schema) -> int:
    """Return about how many tokens the longest reply has that fits a schema."""
    return math.ceil(_tokens(schema, "", is_listed=False))


def _limited(schema: Schema, characters: int) -> Schema:
    limited = dict(schema)
    if NAMED in schema:
        limited[NAMED] = {
            name: each if name in REASONING_NAMES else _limited(each, characters)
            for name, each in schema[NAMED].items()
        }
    if "items" in schema:
        limited["items"] = _limited(schema["items"], LISTED_CHARACTERS)
    if "anyOf" in schema:
        limited["anyOf"] = [_limited(each, characters) for each in schema["anyOf"]]
    if schema.get("type") == "string" and not CHOICES & schema.keys():
        limited.setdefault("maxLength", characters)
    return limited


def _tokens(schema: Schema, name: str, *, is_listed: bool) -> float:
    if "enum" in schema or "const" in schema:
        return max(_written(each) for each in schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema:
        return max(_tokens(each, name, is_listed=is_listed) for each in schema["anyOf"])
    if NAMED in schema:
        return BRACKET_TOKENS + sum(
            _written(key) + BRACKET_TOKENS + _tokens(each, key, is_listed=is_listed)
            for key, each in schema[NAMED].items()
        )
    kind = schema.get("type")
    if kind == "array":
        most: int = schema.get("maxItems", MOST_ITEMS)
        return BRACKET_TOKENS + most * _tokens(schema["items"], name, is_listed=True)
    if "string" in (kind if isinstance(kind, list) else [kind]):
        if name in REASONING_NAMES:
            return LISTED_REASONING_TOKENS if is_listed else REASONING_TOKENS
        return LISTED_TEXT_TOKENS if is_listed else TEXT_TOKENS
    return NUMBER_TOKENS


def _written(value: object) -> float:
    return 1 + len(json.dumps(value)) / CHARACTERS_A_TOKEN


def _nodes(schema: Schema) -> Iterator[dict[str, Any]]:
    yield schema
    inner = [*schema.get(NAMED, {}).values(), *schema.get("anyOf", ())]
    for each in [*inner, *([schema["items"]] if "items" in schema else [])]:
        yield from _nodes(each)
