"""The public names of `agent` and of `kinodex.agent.models`: each is there, none costs anything before its use."""

from __future__ import annotations

import subprocess
import sys

import pytest

import agent
from kinodex.agent.ask import ask, ask_many
from kinodex.agent.environment import Environment

HEAVY = {"numpy", "pydantic", "lance", "openai", "jinja2"}


def test_every_name_has_one_home() -> None:
    assert sorted(name for names in agent._MODULES.values() for name in names) == agent.__all__ == sorted(agent.__all__)
    assert set(agent.__all__) <= set(dir(agent))


@pytest.mark.parametrize("name", agent.__all__)
def test_a_name_is_the_one_of_its_module_and_documented(name: str) -> None:
    found = getattr(agent, name)
    assert found.__module__ == agent._HOMES[name]
    assert found.__doc__


def test_names_are_those_that_are_imported_from_their_modules() -> None:
    assert (agent.ask, agent.ask_many, agent.Environment) == (ask, ask_many, Environment)


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'Enviroment'; its names are .*Environment"):
        misspelt = "Enviroment"
        getattr(agent, misspelt)


def test_importing_it_loads_nothing_heavy() -> None:
    script = "import agent, sys; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "agent" in loaded
    assert not HEAVY & set(loaded)


def test_a_name_of_the_models_is_there_once_and_comes_from_its_own_module() -> None:
    assert agent.models.__all__ == sorted(set(agent.models.__all__))
    for name in agent.models.__all__:
        value = getattr(agent.models, name)
        assert (value.__name__, value.__module__) == (name, agent.models._MODULES[name])
    assert dir(agent.models) == agent.models.__all__


def test_an_unknown_name_of_the_models_is_refused_too() -> None:
    unknown = "GPT"
    with pytest.raises(AttributeError, match=r"no attribute 'GPT'; its names are OpenAIModel, Price"):
        getattr(agent.models, unknown)


def test_importing_the_models_package_loads_no_model() -> None:
    code = "import sys, kinodex.agent.models; print([name for name in sys.modules if name.startswith('kinodex.agent.models.')])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
