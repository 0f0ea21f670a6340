"""Small libraries for the built-in model, and notes."""

from __future__ import annotations

import pytest

from kinodex.agent.environment import Environment
from tests.support.libraries.agent_library import environment_of, film, make_library


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory) -> Environment:
    return environment_of(make_library(tmp_path_factory.mktemp("words"), {"film": film(1, 60)}))
