"""Every test here gets its own copy of the small library."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kinodex.index.library import Library


@pytest.fixture
def library(small_library: Path, tmp_path: Path) -> Library:
    """The test's own copy of the library of `small_films`."""
    return Library.open(str(shutil.copytree(small_library, tmp_path / "library")))
