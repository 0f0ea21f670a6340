"""The public names of `agent.models`: all there, each from its module, and loaded only when used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import agent.models


def test_each_public_name_is_there_once_and_comes_from_its_own_module() -> None:
    assert agent.models.__all__ == sorted(set(agent.models.__all__))
    for name in agent.models.__all__:
        value = getattr(agent.models, name)
        assert (value.__name__, value.__module__) == (name, agent.models._MODULES[name])
    assert dir(agent.models) == agent.models.__all__


def test_an_unknown_name_is_an_error_with_the_known_ones() -> None:
    unknown = "GPT"
    with pytest.raises(AttributeError, match=r"no attribute 'GPT'; its names are OpenAIModel, Price"):
        getattr(agent.models, unknown)


def test_importing_the_package_loads_no_model() -> None:
    code = "import sys, agent.models; print([name for name in sys.modules if name.startswith('agent.models.')])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
