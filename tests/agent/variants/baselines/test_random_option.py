"""The random control: an option without a model, the same for the same seed and videos."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from kinodex.agent.answer import Answer
from kinodex.agent.ask import ask
from kinodex.agent.environment import Environment
from kinodex.agent.protocol import Question
from kinodex.index.library import Library
from tests.support.libraries.agent_library import ScriptedModel, environment_of


def choose(environment: Environment, question: Question, seed: int = 0) -> Answer:
    def unasked(request: Any) -> Any:
        pytest.fail("a model was asked")

    return asyncio.run(ask(question, environment, ScriptedModel(unasked), agent="random", parameters={"seed": seed}))


def test_all_options_are_as_likely(words_library: Library) -> None:
    environment = environment_of(words_library, "film")
    questions = [Question(f"Which, in number {number}?", ("a", "b", "c", "d")) for number in range(200)]
    answers = [choose(environment, question) for question in questions]
    counts = Counter(answer.letter for answer in answers)
    assert set(counts) == set("ABCD")
    assert min(counts.values()) > 30
    assert {(answer.status, answer.ledger.calls, answer.evidence) for answer in answers} == {("answered", 0, ())}


def test_seed_videos_and_question_make_the_choice(words_library: Library) -> None:
    environment, other = environment_of(words_library, "film"), environment_of(words_library, "told")
    question = Question("Which?", tuple("abcdefghijklmnopqrstuvwxyz"))
    first = choose(environment, question)
    assert choose(environment, question).option == first.option
    different = {choose(environment, question, seed).option for seed in range(1, 5)} | {choose(other, question).option}
    assert len(different | {first.option}) > 2


def test_an_open_question_has_no_option_to_choose(words_library: Library) -> None:
    answer = choose(environment_of(words_library, "film"), Question("What happens?"))
    assert (answer.status, answer.text, answer.reason) == ("insufficient_evidence", None, "no options to choose from")
