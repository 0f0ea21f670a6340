"""Any text of a model is a reply or a fault in one line: no agent, request or trace breaks on it.

3,000 and more replies, drawn from a seed: valid ones that were spoilt, cut, scribbled on or wrapped, and nonsense.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from random import Random
from typing import Any

import pytest

from kinodex.agent.answer import Answer
from kinodex.agent.ask import VARIANTS, ask
from kinodex.agent.environment import Environment
from kinodex.agent.limits import Budget
from kinodex.agent.models.completion import parse_reply
from kinodex.agent.prompts import render
from kinodex.agent.protocol import AnswerRules, Exchange, Question, Request, Usage
from kinodex.agent.requests.answer import Conclusion, Guess
from kinodex.agent.trace import Event, record
from tests.support.every_request import kinds, of_full_size, variations
from tests.support.fuzz_replies import fuzzed
from tests.support.libraries.agent_library import add_film, environment_of, film, make_library
from tests.support.libraries.text_library import words_library

SEED = 13
REPLIES_A_KIND = 76
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
