"""Fixtures of the tests of `index`: an empty library with random vectors, and its tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinodex.index.library import Library
from kinodex.index.store.database import Tables
from tests.support.libraries.random_library import SETTINGS, empty_library, fingerprint


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return empty_library(tmp_path / "library", SETTINGS, fingerprint())


@pytest.fixture
def tables(library: Library) -> Tables:
    return library.tables
