"""Fixtures of the benchmarks' tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinodex.sketch.script import render_film, write_script

FILM_S = 30


@pytest.fixture(scope="package")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A drawn film of 30 s, the shortest that there is."""
    path = tmp_path_factory.mktemp("films") / "film.mp4"
    render_film(write_script("film", FILM_S, 5), path)
    return path
