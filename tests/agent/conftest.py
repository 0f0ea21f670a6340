"""A library that tests of several modules read and never write."""

from __future__ import annotations

import pytest

from kinodex.index.library import Library
from tests.support.libraries import text_library


@pytest.fixture(scope="session")
def words_library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return text_library.words_library(tmp_path_factory.mktemp("words"))
