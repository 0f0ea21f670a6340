"""Fixtures of the benchmarks' tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.libraries.corpus import draw_film

FILM_S = 10


@pytest.fixture(scope="package")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A drawn film of ten seconds."""
    path = tmp_path_factory.mktemp("films") / "film.mp4"
    draw_film(path, FILM_S, 5)
    return path
