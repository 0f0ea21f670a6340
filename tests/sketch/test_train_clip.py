"""The script that trains the built-in model: it saves, reloads and scores, and repeats by steps."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest

from tests.sketch import train as train_builtin
from tests.sketch.train import load_towers

pytestmark = pytest.mark.slow


def train(out: Path, scored: int, towers: bool) -> str:
    """Train a little on pictures that are drawn beside `out` once; returns what the script prints."""
    sizes = {"steps": 3, "pictures": 120, "batch": 24, "threads": 1}
    with redirect_stdout(io.StringIO()) as printed:
        train_builtin.main(out=out, **sizes, scored=scored, towers=towers, keep=out.parent)
    return printed.getvalue()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("trained")


@pytest.fixture(scope="module")
def printed(home: Path) -> str:
    """Text that a training prints, which leaves the folder `first`."""
    return train(home / "first", scored=20, towers=True)


def test_the_script_trains_saves_reloads_and_scores(home: Path, printed: str) -> None:
    report = json.loads((home / "first" / "report.json").read_text())
    assert report["steps"] == 3 and report["bytes"] < 12_000_000
    assert json.loads(printed.partition("{")[2].join(("{", ""))) == report
    towers = load_towers(home / "first")
    assert np.allclose(np.linalg.norm(towers.embed_texts(["a boat"]), axis=1), 1, atol=1e-4)


def test_the_same_steps_give_the_same_weights(home: Path, printed: str) -> None:
    train(home / "second", scored=10, towers=False)
    first, second = ((home / name / train_builtin.WEIGHTS_NAME).read_bytes() for name in ("first", "second"))
    assert first == second
