"""JSON schemas of replies in strict mode: each key required, no others, no defaults; and values that fit them.

Servers that enforce a schema write its keys in its order, so the order of a reply's fields is the order of thinking:
`reasoning`, the action, what the action needs, evidence. The same schema is sent to servers, described in words at the
end of a prompt (`agent.prompts.reply_line`), and its class reads the reply.
"""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from kinodex.agent.errors import InvalidReply
from kinodex.index.nesting import parse_json

REASONING = "reasoning"
"""The name of the field in which a model thinks before it commits itself."""
NAMED = "properties"
UNSUPPORTED = {"default", "title", "discriminator", "$defs"}
NULL: Mapping[str, object] = {"type": "null"}
DOTS = "..."
"""The place of a text or a number in the form of a reply that a prompt shows."""
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


@cache
def words_of_form(reply: type[BaseModel]) -> frozenset[str]:
    """Texts that a prompt has in the place of a reply's content: dots, and the descriptions of keys."""
    said = re.findall(r'"description": "([^"]* [^"]*)"', json.dumps(strict_schema(reply)))
    return frozenset({DOTS, "…", *map(str.casefold, said)})


def filled_in(value: object, blank: frozenset[str]) -> object:
    """A reply's JSON values with null for texts that say nothing but what the form of the reply says."""
    if isinstance(value, str):
        return None if value.strip().strip("<>[]").casefold() in blank else value
    if isinstance(value, list):
        return [filled_in(each, blank) for each in value]
    return {key: filled_in(each, blank) for key, each in value.items()} if isinstance(value, dict) else value


SAMPLE = "A boy kicks a ball on a meadow, and it is not seen where it comes to lie."
NO_NUMBERS: Mapping[str, Sequence[Any]] = {}


def plainest(schema: Schema, known: Mapping[str, Sequence[Any]] = NO_NUMBERS, name: str = "", at: int = 0) -> Any:
    """The plainest value that fits a strict schema: the first of several values, lists as short as may be.

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
        return [plainest(schema["items"], known, name, place) for place in range(schema.get("minItems", 1))]
    if kind != "null" and (values := known.get(name)):
        return values[min(at, len(values) - 1)]
    number = schema.get("minimum", 1)
    return {"string": SAMPLE, "integer": number, "number": number, "boolean": True}.get(str(kind))


# One schema for the replies to all steps of a run: `{"step": REPLY}`, or `{"step": {NAME: REPLY}}`.
#
# OpenAI puts the schema of a structured output before the messages, so that requests with different schemas share no
# prefix, however alike their prompts are (OpenAI, "Prompt caching"). A joint schema is byte for byte the same for all
# requests of a run. It is one of several objects, which must not begin with the same key there: where replies do, since
# many begin with their reasons, each stands under the name of its kind.

STEP = "step"
TITLE = "Step"
"""The name of the schema on the wire."""


@dataclass(frozen=True, slots=True)
class Joint:
    """The kind of a request among those of its run, and the strict schemas of the replies to all kinds, by name."""

    name: str
    replies: Mapping[str, Schema]

    def schema(self, *, reasoning: bool = True) -> Schema:
        """The joint schema in strict mode; without `reasoning` no reply begins with its reasons."""
        replies = {
            name: _compact(each if reasoning else without_reasoning(each)) for name, each in self.replies.items()
        }
        if self._named(reasoning):
            replies = {name: _object({name: each}) for name, each in replies.items()}
        return _object({STEP: {"anyOf": list(replies.values())}})

    def outline(self, *, reasoning: bool = True) -> str:
        """The form of a reply of this kind, with dots in the place of its keys."""
        inner = f'{{"{self.name}": {{...}}}}' if self._named(reasoning) else "{...}"
        return f'{{"{STEP}": {inner}}}'

    def reply(self, value: object) -> object:
        """Take the reply out of what a model wrote; a value in no such form comes back as it is.

        Raises `InvalidReply` for the reply to another kind of request, which the schema allows too.
        """
        step = _only(value, STEP)
        if not isinstance(step, Mapping):
            return value
        for name, schema in self.replies.items():
            if name != self.name and step.keys() in ({name}, schema[NAMED].keys()):
                keys = ", ".join(f'"{key}"' for key in self.replies[self.name][NAMED])
                raise InvalidReply(f"it is the reply to another step; this one asks for {keys}")
        reply = _only(step, self.name)
        return step if reply is None else reply

    def _named(self, reasoning: bool) -> bool:
        replies = self.replies.values() if reasoning else map(without_reasoning, self.replies.values())
        first = [next(iter(each[NAMED])) for each in replies]
        return len({*first}) < len(first)


def _only(value: object, key: str) -> object:
    """The value under a key that is the only one; else None."""
    if not isinstance(value, Mapping):
        return None
    inner: Mapping[str, object] = value
    return inner[key] if inner.keys() == {key} else None


def _object(properties: Mapping[str, object]) -> Schema:
    return {"additionalProperties": False, NAMED: dict(properties), "required": list(properties), "type": "object"}


def _compact(schema: Schema) -> Schema:
    """The same schema in fewer words: objects without a description, and a list of types for a plain value or null."""
    inner: Schema = {
        key: {name: _compact(each) for name, each in value.items()}
        if key == NAMED
        else _compact(value)
        if isinstance(value, dict)
        else value
        for key, value in schema.items()
        if not (key == "description" and NAMED in schema)
    }
    choices = inner.get("anyOf")
    if choices and all(each.keys() == {"type"} for each in choices):
        del inner["anyOf"]
        inner["type"] = [each["type"] for each in choices]
    return inner


# Numbers, times and lists of numbers as models write them: read where there is no doubt what is meant, else invalid.
#
# JSON numbers stay as they are. Of texts are read: one number with words around it ("Segment 3", "about 40"), a number
# word ("three"), a share of a scale ("4/5", "85%", "8 out of 10"), and a time as a clock shows it ("10:00", "1:02:03").
# `NaN`, infinities, truth values, texts with several numbers and those that deny one ("not segment 3") are refused:
# which one is meant would be a guess.

NUMBER_WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
BLANK = ("", "null", "n/a")
"""Texts that stand for a text that is missing. "None" and "unknown" do not: how many boats there are, who wrote it."""
NOTHING = (*BLANK, "none")
"""Texts that stand for a number, a name or a list that is missing."""
MOST_CHARACTERS = 200
"""Of a text that may say a number."""
UNIT_S = {"h": 3600, "m": 60, "s": 1}
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:e[-+]?\d+)?(?![\d])", re.IGNORECASE)
_SHARE = re.compile(r"([-+]?\d+(?:\.\d+)?)\s*(?:/|out\s+of|of)\s*(\d+(?:\.\d+)?)", re.IGNORECASE)
_PERCENT = re.compile(r"([-+]?\d+(?:\.\d+)?)\s*(?:%|per\s?cent\b)", re.IGNORECASE)
_NAMED = re.compile(r"\b(?:segment|cluster|frame|note|clip|option|number|no\.|#)[\s_:#]*(\d+)\b", re.IGNORECASE)
_CLOCK = re.compile(r"(?:(\d{1,3}):)?(\d{1,3}):([0-5]?\d(?:\.\d+)?)")
_UNITS = re.compile(
    r"(?:(\d+(?:\.\d+)?)\s*(?:h|hours?|hrs?))?\s*(?:(\d+(?:\.\d+)?)\s*(?:m|min|minutes?|mins?))?\s*"
    r"(?:(-?\d+(?:\.\d+)?)\s*(?:s|sec|secs|seconds?)?)?",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\b(?:not|never|neither|nor|except|without|rather than|instead of)\b|n't\b", re.IGNORECASE)
_LISTED = re.compile(r"(?:[\[\(<]|\b(?:segments?|frames?|notes?|clips?|clip_|lines?|numbers?|and)|[\s,;#_>\)\]]|\d)*")


def whole_number(value: object) -> object:
    """The whole number that a value says, as of a segment or a level: 3 for "Segment 3", "three" or 3.0."""
    text = _text_of(value)
    if text is None:
        return value
    if named := set(_NAMED.findall(text)):
        return _only_value(text, named)
    share = _SHARE.search(text)
    return _only_value(text, {share[1]}) if share and len(_NUMBER.findall(text)) == 2 else _only_number(text)


def score(value: object) -> object:
    """A score on a scale from 0 to 100: 85 for "85%", "85/100" or "8.5 out of 10"."""
    return on_scale(value, 100.0)


def confidence(value: object) -> object:
    """A confidence from 0 to 1: 0.85 for "85%" or "8.5/10"."""
    return on_scale(value, 1.0)


def on_scale(value: object, most: float) -> object:
    """A number on a scale from 0 to `most`; only a number that is marked as a share or percentage is converted."""
    text = _text_of(value)
    if text is None:
        return value
    if percent := _PERCENT.findall(text):
        return most * float(_only_value(text, set(percent))) / 100
    share = _SHARE.search(text)
    if share and float(share[2]) > 0 and len(_NUMBER.findall(text)) == 2:
        return most * float(share[1]) / float(share[2])
    return _only_number(text)


def seconds(value: object) -> object:
    """A time in seconds: 600 for "10:00", 3723 for "1:02:03", 90 for "1m30s" or "90 s"; numbers stay as they are."""
    text = _text_of(value)
    if text is None:
        return value
    text = text.strip("\"'<>[]()~ ")
    if clock := _CLOCK.fullmatch(text):
        hours, minutes, left_s = clock.groups()
        return 3600 * int(hours or 0) + 60 * int(minutes) + float(left_s)
    units = _UNITS.fullmatch(text)
    if units and any(units.groups()):
        return sum(float(each) * UNIT_S[unit] for each, unit in zip(units.groups(), "hms", strict=True) if each)
    return _only_number(text)


def whole_numbers(value: object) -> object:
    """A list of whole numbers from one number, or a text such as "1, 2 and 4" or "<clip_3>, <clip_4>"."""
    if says_nothing(value):
        return []
    text = _text_of(value)
    if text is not None:
        if not _LISTED.fullmatch(text.casefold()):
            raise ValueError(f"{text[:60]!r} is no list of numbers; write it as [1, 2]")
        return [int(each) for each in re.findall(r"\d+", text)]
    return [whole_number(each) for each in value] if isinstance(value, list | tuple) else [whole_number(value)]


def says_nothing(value: object) -> bool:
    """True for null, also where it is written as a text: "", "null", "none"."""
    return value is None or (isinstance(value, str) and value.strip().casefold() in NOTHING)


def is_blank(text: str | None) -> bool:
    """True for a text in which nothing is said: null, also where it is written as a text, in quotes or with a stop."""
    return text is None or text.strip(" \t\r\n.\"'`<>[]()").casefold() in BLANK


def _text_of(value: object) -> str | None:
    """A text that may say a number, without spaces around it; None for what is no text."""
    if isinstance(value, bool):
        raise ValueError("give a number, not true or false")
    if not isinstance(value, str):
        return None
    if len(value) > MOST_CHARACTERS:
        raise ValueError(f"{len(value)} characters are no number; give the number alone")
    if _DENIED.search(value):
        raise ValueError(f"{value[:60]!r} denies something; give the number that is meant")
    return value.strip()


def _only_number(text: str) -> str:
    found = set(_NUMBER.findall(text))
    words = {str(NUMBER_WORDS.index(word)) for word in re.findall(r"[a-z]+", text.casefold()) if word in NUMBER_WORDS}
    return _only_value(text, found or words)


def _only_value(text: str, found: set[str]) -> str:
    if len(found) != 1:
        raise ValueError(f"{text[:60]!r} holds {'several numbers' if found else 'no number'}; give one")
    [number] = found
    if not math.isfinite(float(number)):
        raise ValueError(f"{text[:60]!r} is too large")
    return number


WholeNumber = Annotated[int, BeforeValidator(whole_number)]
"""A whole number, as of a segment or a frame."""
Score = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False), BeforeValidator(score)]
"""A score from 0 to 100."""
Confidence = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), BeforeValidator(confidence)]
"""A confidence from 0 to 1."""
Seconds = Annotated[float, Field(allow_inf_nan=False), BeforeValidator(seconds)]
"""A time in seconds; a clock time counts from 0."""
Numbers = Annotated[list[int], BeforeValidator(whole_numbers)]
"""Numbers of frames, notes or clips."""


# Calls of tools as models write them in text, in the forms of several chat templates, made into one flat object.
#
# Read are `{"name": NAME, "arguments": {...}}` (Qwen, Hermes, Mistral; in `<tool_call>` tags or a list of one),
# `{"function": {...}}` around it, `{"tool_calls": [...]}` with one call, and "parameters" (Llama) or "args" for
# "arguments", which may be a text with JSON in it.

NAMES = ("name", "tool", "tool_name", "function")
ARGUMENTS = ("arguments", "parameters", "args", "input")


def flat_call(value: object) -> object:
    """`{"tool": NAME, ARGUMENT: VALUE, ...}` of a call in another form; anything else as it is."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], Mapping):
        inner = flat_call(value[0])
        return value if inner is value[0] else inner
    if not isinstance(value, Mapping):
        return value
    for wrapper in ("tool_calls", "function_call", "function", "tool_call"):
        inner = value.get(wrapper)
        if isinstance(inner, Mapping | list) and (call := flat_call(inner)) is not inner:
            return call
    name = next((value[each] for each in NAMES if isinstance(value.get(each), str)), None)
    arguments = next((_as_object(value[each]) for each in ARGUMENTS if each in value), None)
    return value if name is None or arguments is None else {**arguments, "tool": name}


def _as_object(arguments: object) -> Mapping[str, object] | None:
    if isinstance(arguments, str):
        try:
            arguments = parse_json(arguments or "{}")
        except ValueError:
            return None
    return arguments if isinstance(arguments, Mapping) else None
