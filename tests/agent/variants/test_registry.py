"""Agents by name: those that are found, and those that are refused."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from kinodex.agent.answer import Answer
from kinodex.agent.ask import VARIANTS, ask, find_variant
from kinodex.agent.environment import Environment
from kinodex.agent.errors import NeedsLanguage, NeedsPictures, UnknownAgent
from kinodex.agent.models.rules import RuleBasedModel
from kinodex.agent.protocol import Models, Question
from kinodex.agent.trace import Event
from kinodex.agent.variants.base import Variant
from kinodex.agent.variants.baselines import UNIFORM
from tests.support.libraries.agent_library import ScriptedModel, environment_of
from tests.support.runs.kite_runs import QUESTION, kite_environment


def test_a_variant_that_cannot_be_told_from_a_builtin_one_is_refused() -> None:
    with pytest.raises(UnknownAgent, match="give it another name"):
        find_variant(replace(UNIFORM, line="another"))


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    return kite_environment(tmp_path_factory.mktemp("run"))


@pytest.mark.parametrize("variant", [each for each in VARIANTS if each.needs_language], ids=lambda each: each.name)
def test_agents_that_reason_in_words_refuse_the_builtin_model_before_any_work(environment, variant):
    events: list[object] = []
    with pytest.raises(NeedsLanguage, match=f"the agent {variant.name} reasons in words"):
        asyncio.run(ask(QUESTION, environment, RuleBasedModel(environment), agent=variant.name, on_event=events.append))
    assert events == []


KITE = Question("What colour is the kite?", ("blue", "red"))
LOOKING = [each for each in VARIANTS if each.needs_pictures]
SAID = "mind the wind"


def every(variants: list[Variant]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("variant", variants, ids=lambda variant: variant.name)


def asked(
    environment: Environment, question: Question, model: Models, agent: str, parameters: Any = None
) -> tuple[Answer, list[Event]]:
    events: list[Event] = []
    answer = asyncio.run(ask(question, environment, model, agent=agent, parameters=parameters, on_event=events.append))
    return answer, events


@every(LOOKING)
def test_who_looks_refuses_at_once(words_library, variant):
    model = ScriptedModel(lambda request: pytest.fail("it was asked"))
    with pytest.raises(NeedsPictures, match=f"the agent {variant.name} looks at frames.*'told'.*videotree"):
        asked(environment_of(words_library, "told"), KITE, model, variant.name)
    assert {each.name for each in LOOKING} == {"eea", "vca", "videoseek"}
