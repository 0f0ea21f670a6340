"""Any text of a model is a reply or a fault in one line: no agent, request or trace breaks on it.

3,000 and more replies, drawn from a seed: valid ones that were spoilt, cut, scribbled on or wrapped, and nonsense.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from kinodex.agent.answer import Answer
from kinodex.agent.answer_rules import AnswerRules
from kinodex.agent.ask import ask
from kinodex.agent.catalogue import VARIANTS
from kinodex.agent.limits.budget import Budget
from kinodex.agent.models.reply_parser import parse_reply
from kinodex.agent.prompts.rendering import render
from kinodex.agent.protocol.exchange import Exchange, Usage
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.request import Request
from kinodex.agent.requests.answer import Conclusion, Guess
from kinodex.agent.traces.events import Event
from kinodex.agent.traces.trace import record
from kinodex.agent.videos.environment import Environment
from tests.support.every_request import example_text, kinds, of_full_size, variations
from tests.support.libraries.agent_library import add_film, environment_of, film, make_library
from tests.support.libraries.text_library import words_library

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


SEED = 13
REPLIES_A_KIND = 80
RUNS_AN_AGENT = 5
BUDGET = Budget(rounds=5, tokens=60_000)
KINDS = kinds()


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> list[Environment]:
    library = make_library(tmp_path_factory.mktemp("films"), {"kites": film(1, 90, {40: ("red kite desert", 5)})})
    add_film(library, "boats", film(2, 40))
    words = words_library(tmp_path_factory.mktemp("words"))
    return [environment_of(library, "kites"), environment_of(library, "kites", "boats"), environment_of(words)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.__name__}-{kind.template}")
def test_a_reply_is_read_or_its_fault_is_said_in_one_line(kind: type[Request[Any]]) -> None:
    random = Random(f"{SEED} {kind.__name__} {kind.template}")
    requests = list(variations(kind))
    read = 0
    for number in range(REPLIES_A_KIND):
        request = requests[number % len(requests)]
        text = fuzzed(request, random)
        reply, invalid = parse_reply(text, request)
        assert (reply is None) != (invalid is None), text
        if reply is None:
            assert invalid and "\n" not in invalid and len(invalid) < 1000, text
            continue
        read += 1
        request.check(reply)
        stored = json.dumps(reply.model_dump(mode="json"), allow_nan=False)
        assert request.Reply.model_validate(json.loads(stored)) == reply, "a trace says the same"
        rest = request.missing(reply)
        assert rest is None or render(rest)
    assert read, "some of them are valid"


class Fuzzing:
    """A model that writes replies from the pool, and remembers how many were usable."""

    name, has_language = "fuzzing", True

    def __init__(self, seed: int, sense: float) -> None:
        self.random, self.sense = Random(seed), sense
        self.replies: Counter[bool] = Counter()

    async def ask(self, request: Request[Any]) -> Exchange[Any]:
        text = self._sensible(request) if self.random.random() < self.sense else fuzzed(request, self.random)
        reply, invalid = parse_reply(text, request)
        self.replies[reply is not None] += 1
        return Exchange(reply, invalid, Usage(1000, 50), raw=text)

    def _sensible(self, request: Request[Any]) -> str:
        if request.form == "text":
            return self.random.choice(
                ("<request_grounding>a kite</request_grounding>", "<visual_query>a kite</visual_query>")
            )
        return json.dumps({**request.example()})


@pytest.mark.slow
@pytest.mark.parametrize("agent", VARIANTS, ids=lambda agent: agent.name)
def test_every_agent_comes_to_an_end(agent: Any, environments: list[Environment]) -> None:
    questions = [Question("What is red?", ("the kite", "the boat", "a dog")), Question("What happens to the kite?")]
    for run in range(RUNS_AN_AGENT):
        environment = environments[run % (2 if agent.needs_pictures else 3)]
        model = Fuzzing(SEED + run, sense=(0.0, 0.5, 0.8)[run % 3])
        written: list[str] = []

        def write(event: Event, written: list[str] = written) -> None:
            written.append(json.dumps(record(event), allow_nan=False))

        rules = AnswerRules(force_choice=run == 4, early_insufficient=run == 3)
        asked = ask(questions[run % 2], environment, model, agent=agent, budget=BUDGET, rules=rules, on_event=write)
        answer = asyncio.run(asked)
        assert isinstance(answer, Answer)
        assert written


def test_there_are_enough_of_them() -> None:
    assert len(KINDS) * REPLIES_A_KIND >= 3000


class Broken(Guess):
    """A request with a slip in its own code."""

    def check(self, reply: Conclusion) -> None:
        raise KeyError("a slip")


def test_a_programming_error_is_no_bad_reply() -> None:
    request = of_full_size(Broken)
    with pytest.raises(KeyError, match="a slip"):
        parse_reply(json.dumps(request.example()), request)
