"""Fixtures of the benchmarks' tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from tests.support.command import Ran
from tests.support.libraries.corpus import draw_film

FILM_S = 10


@pytest.fixture(scope="package")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A drawn film of ten seconds."""
    path = tmp_path_factory.mktemp("films") / "film.mp4"
    draw_film(path, FILM_S, 5)
    return path


Bench = Callable[..., Ran]


@pytest.fixture
def bench() -> Bench:
    """A function that runs the `main` of a bench with some arguments, as `python -m` does, in this process."""

    def run(main: Callable[..., None], *arguments: object) -> Ran:
        app = typer.Typer()
        app.command()(main)
        ran = CliRunner().invoke(app, list(map(str, arguments)))
        return Ran(ran.exit_code, ran.stdout, ran.stderr)

    return run
