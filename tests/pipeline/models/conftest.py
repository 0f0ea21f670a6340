"""Fixtures of the tests of models."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.models.stage_models import beeps, tiny_film


@pytest.fixture(scope="session")
def long_film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A minute and ten seconds; the second half of the last pause may end a window too."""
    return tiny_film(tmp_path_factory.mktemp("films") / "long.mp4", 2, 1, beeps(70.0, (4.0, 24.0, 27.0, 49.0)))
