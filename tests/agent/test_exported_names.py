"""The public names of `agent`: each is there, none costs anything before its use."""

from __future__ import annotations

import subprocess
import sys

import pytest

import agent
from agent.ask_questions import ask, ask_many
from agent.environment import Environment

HEAVY = {"numpy", "pydantic", "lancedb", "openai", "jinja2"}


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
