"""Films in clips: with a transcript, without words, and several of them."""

from __future__ import annotations

import pytest

from tests.support.libraries.agent_library import environment_of
from tests.support.runs.longvideoagent_runs import library_of


@pytest.fixture(scope="session")
def spoken(tmp_path_factory):
    return environment_of(library_of(tmp_path_factory.mktemp("spoken"), spoken=("film",)))


@pytest.fixture(scope="session")
def silent(tmp_path_factory):
    return environment_of(library_of(tmp_path_factory.mktemp("silent")))


@pytest.fixture(scope="session")
def several(tmp_path_factory):
    return environment_of(library_of(tmp_path_factory.mktemp("several"), spoken=("other",), captioned=("third",)))
