"""Libraries that tests of several modules read and never write."""

from __future__ import annotations

import pytest

from kinodex.agent.videos.environment import Environment
from kinodex.index.library import Library
from tests.support.libraries import text_library
from tests.support.runs.kite_runs import kite_environment


@pytest.fixture(scope="session")
def words_library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return text_library.words_library(tmp_path_factory.mktemp("words"))


@pytest.fixture(scope="session")
def kites(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    environment: Environment = kite_environment(tmp_path_factory.mktemp("kites"))
    return environment
