"""Replies as no model should write them, drawn from a seed: valid ones that were spoilt, and nonsense."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from kinodex.agent.protocol import Request
from tests.support.every_request import example_text

WEIRD: tuple[Any, ...] = (
    *(float("nan"), float("inf"), float("-inf"), 1e308, -1, 0, 0.5, 7, 10**400, True, False, None),
    *("", " ", "85%", "4/5", "0/0", "10:00", "1:02:03", "99:99:99", "Segment 3", "three", "NaN", "-Infinity", "null"),
    *("A", "a3", "(B)", "Z", "C is cooking", "<answer>a3</answer>", "insufficient_evidence", "explore", "1, 2", "1-3"),
    *("\ud800", "\x00", "😀", "日本語", "‮", "x" * 5000, "9" * 5000, "{", "]", '{"a": 1}', "{{ request }}"),
    *([], {}, [[]], [None], [1, 2, 3], [float("nan")], ["1"], {"a": {"b": []}}, {"segment": 1, "score": 2}),
)
NOISE = (
    "",
    " ",
    "\n",
    "I cannot help with that.",
    "{",
    "[",
    "}{",
    "null",
    "NaN",
    "[NaN]",
    "{}",
    "[]",
    '"',
    "\x00",
    "<",
)
LETTERS = 'abcdefgXYZ 0123456789{}[]",:\\<>/_-.\n\té日😀\u2028\x00'
TAGS = ("answer", "visual_query", "request_grounding", "think", "tool_call", "watch", "search")


def fuzzed(request: Request[Any], random: Random) -> str:
    """One reply to a request, as text: now and then a valid one."""
    make = random.choices((_example, _spoilt, _cut, _scribbled, _wrapped, _anything, _tagged), (2, 8, 2, 3, 4, 3, 2))[0]
    return make(request, random)


def _example(request: Request[Any], random: Random) -> str:
    if request.form == "text":
        return random.choice(("<answer>A</answer>", "<request_grounding>x</request_grounding>", "It is late."))
    return example_text(request, random.random() < 0.8)


def _spoilt(request: Request[Any], random: Random) -> str:
    """A reply of which one to three values or keys are something else."""
    value = json.loads(_json_example(request))
    for _ in range(random.randint(1, 3)):
        value = _changed(value, random)
    return json.dumps(value, ensure_ascii=random.random() < 0.7, allow_nan=True)


def _json_example(request: Request[Any]) -> str:
    text = "{}" if request.form == "text" else example_text(request)
    return text if text != "{}" else json.dumps({"action": "answer", "answer": "A", "query": "x"})


def _changed(value: Any, random: Random) -> Any:
    if isinstance(value, dict) and value and random.random() < 0.85:
        name = random.choice(list(value))
        return random.choice(_KEY_CHANGES)(value, name, random)
    if isinstance(value, list) and value and random.random() < 0.7:
        at = random.randrange(len(value))
        changed = [*value[:at], _changed(value[at], random), *value[at + 1 :]]
        return random.choice((changed, changed, changed, value[:at], value * 2, [*value, value[at]]))
    return random.choice(WEIRD)


def _dropped(value: dict[str, Any], name: str, random: Random) -> dict[str, Any]:
    return {key: each for key, each in value.items() if key != name}


def _renamed(value: dict[str, Any], name: str, random: Random) -> dict[str, Any]:
    other = random.choice((name.upper(), name.title(), f" {name}", f"{name}s", "", "Segment 1", "query1", "tool", "0"))
    return {other if key == name else key: each for key, each in value.items()}


def _deeper(value: dict[str, Any], name: str, random: Random) -> dict[str, Any]:
    return {**value, name: _changed(value[name], random)}


_KEY_CHANGES: tuple[Callable[[dict[str, Any], str, Random], Any], ...] = (
    *(_deeper, _deeper, _deeper, _dropped, _renamed),
    lambda value, name, random: {**value, name: random.choice(WEIRD)},
    lambda value, name, random: dict(reversed(value.items())),
    lambda value, name, random: {**value, "extra": random.choice(WEIRD)},
    lambda value, name, random: value[name],
)


def _cut(request: Request[Any], random: Random) -> str:
    text = _spoilt(request, random)
    return text[: random.randrange(len(text) + 1)]


def _scribbled(request: Request[Any], random: Random) -> str:
    """A reply with some of its characters changed, left out or doubled."""
    text = list(random.choice((_json_example, lambda each: _example(each, random)))(request))
    for _ in range(random.randint(1, 8)):
        at = random.randrange(len(text) + 1)
        text[at : at + random.randint(0, 2)] = random.choice(([], [random.choice(LETTERS)], text[at : at + 5] * 2))
    return "".join(text)


def _wrapped(request: Request[Any], random: Random) -> str:
    """A reply, spoilt or not, in what models write around one."""
    text = random.choice((_spoilt, _example))(request, random)
    forms = (
        f"```json\n{text}\n```",
        f"<think>{text}</think>{text}",
        f"<think>{text}",
        f"Sure! {text} Anything else?",
        f"{text}\n{text}",
        f"{text} or {_spoilt(request, random)}",
        f"<tool_call>\n{text}\n</tool_call>",
        f'{{"name": "focus", "arguments": {text}}}',
        f'{{"function": {{"name": "answer", "arguments": {json.dumps(text)}}}}}',
        f'{{"tool_calls": [{{"function": {{"name": "skim", "arguments": {text}}}}}]}}',
        f"[{text}]",
        f'{{"Decision": {text}}}',
        "[" * random.randint(1, 3000) + text,
    )
    return random.choice(forms)


def _anything(request: Request[Any], random: Random) -> str:
    if random.random() < 0.4:
        return random.choice(NOISE)
    if random.random() < 0.5:
        return json.dumps(random.choice(WEIRD))
    return "".join(random.choices(LETTERS, k=random.randint(1, 200)))


def _tagged(request: Request[Any], random: Random) -> str:
    """Tags of a master's turn, in any order, closed or not."""
    parts = []
    for _ in range(random.randint(1, 3)):
        tag, inside = random.choice(TAGS), str(random.choice(WEIRD))[:50]
        parts.append(random.choice((f"<{tag}>{inside}</{tag}>", f"<{tag}>{inside}", f"{inside}</{tag}>", f"<{tag}/>")))
    return random.choice(("", " and then ")).join(parts)
