"""Agents by name, their settings, and the meanings of these."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass, make_dataclass, replace
from typing import Any, Literal

import pytest

from kinodex.agent.answer import Answer
from kinodex.agent.ask import VARIANTS, ask, find_variant
from kinodex.agent.environment import Environment
from kinodex.agent.errors import BadSettings, NeedsLanguage, NeedsPictures, UnknownAgent
from kinodex.agent.models.rules import RuleBasedModel
from kinodex.agent.protocol import Models, Question
from kinodex.agent.trace import Event
from kinodex.agent.variants.base import Variant, describe_parameters, list_choices, with_settings
from kinodex.agent.variants.baselines import UNIFORM
from kinodex.agent.variants.eea import EEAParameters
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


def test_parameters_are_set_by_name_and_checked():
    defaults = EEAParameters()
    assert with_settings(defaults, {"frames": "4", "query_update": "false", "clip_s": "2.5"}) == EEAParameters(
        frames=4, query_update=False, clip_s=2.5
    )
    with pytest.raises(BadSettings, match="no parameter 'frame'; did you mean 'frames'"):
        with_settings(defaults, {"frame": "4"})
    with pytest.raises(BadSettings, match="no parameter 'foo'; the parameters are "):
        with_settings(defaults, {"foo": "3"})
    with pytest.raises(BadSettings, match="got frames='many'; Input should be a valid integer"):
        with_settings(defaults, {"frames": "many"})
    with pytest.raises(BadSettings, match="got anchor_frames=9 of frames=6"):
        with_settings(defaults, {"anchor_frames": "9"})
    with pytest.raises(BadSettings, match="got memory=0; it is at least 1"):
        with_settings(defaults, {"memory": "0"})


WRONG: dict[str, list[dict[str, Any]]] = {
    "eea": [{"frames": 0}, {"anchor_frames": 7}, {"memory": 0}, {"query_temperature": 0.0}],
    "vca": [{"frames": 0}, {"memory": 0}, {"rounds": 0}],
    "longvideoagent": [{"window": 4}, {"window": 0}, {"rounds": 0}, {"frames": 0}, {"clips": 0}, {"clip_s": -1.0}],
    "videoseek": [{"alpha": 0}, {"videos": 0}, {"rounds": 0}],
    "videoagent2": [{"enough": 6}, {"segment_s": 0}, {"frames": 0}, {"rounds": 0}],
    "videoagent": [{"first_frames": 0}, {"retrieved": 0}, {"rounds": 0}, {"videos": 0}],
    "videotree": [{"breadth": 0}, {"branches": 1}, {"depth": 0}, {"highly_relevant": 0}, {"max_breadth": 4}],
    "uniform": [{"frames": 0}],
}


def test_parameters_that_make_no_sense_are_refused() -> None:
    for name, settings in WRONG.items():
        for wrong in settings:
            [(field, value)] = wrong.items()
            with pytest.raises(BadSettings, match=f"{field}={value}"):
                with_settings(find_variant(name).parameters(3600.0), wrong)


def test_defaults_are_those_of_the_papers() -> None:
    long = {"eea": {"frames": 6, "anchor_frames": 3, "memory": 16, "slack": 20, "pooling": "mean"}}
    long |= {"vca": {"frames": 6, "memory": 16, "slack": 14}, "videoagent": {"first_frames": 15}}
    short = {"eea": {"frames": 4, "anchor_frames": 3, "memory": 8, "slack": 6}}
    short |= {"vca": {"frames": 4, "memory": 8, "slack": 6}, "videoagent": {"first_frames": 5}}
    for duration_s, expected in ((3600.0, long), (300.0, long), (299.0, short)):
        for name, values in expected.items():
            parameters = asdict(find_variant(name).parameters(duration_s))
            assert parameters == parameters | values, (name, duration_s)


@dataclass(frozen=True)
class Common:
    """Parameters of two agents."""

    frames: int = 4
    """Frames of a round,
    over two lines."""
    rounds: int = 1


@dataclass(frozen=True)
class Own(Common):
    reward: Literal["model", "none"] = "model"
    """Who scores."""
    rounds: int = 2
    """Rounds at most."""


def test_docstrings_stand_under_fields_and_are_inherited():
    assert describe_parameters(Own) == {
        "frames": "Frames of a round, over two lines.",
        "reward": "Who scores.",
        "rounds": "Rounds at most.",
    }
    assert describe_parameters(Common) == {"frames": "Frames of a round, over two lines."}


def test_a_class_without_source_has_no_descriptions():
    assert describe_parameters(make_dataclass("Made", [("frames", int, 3)])) == {}


def test_choices_are_those_of_literals():
    assert list_choices(Own) == {"reward": ("model", "none")}
