"""The script that trains the built-in model: it saves, reloads and scores, and repeats by steps."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from jobs.synthetic import train_clip as train_builtin
from jobs.synthetic.score_clip import load_towers


@pytest.mark.slow
def test_the_script_trains_saves_reloads_and_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train_builtin.main(out=tmp_path, steps=3, pictures=120, batch=24, threads=1, scored=20, keep=tmp_path)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["steps"] == 3 and report["bytes"] < 12_000_000
    assert json.loads(capsys.readouterr().out.partition("{")[2].join(("{", ""))) == report
    towers = load_towers(tmp_path)
    assert np.allclose(np.linalg.norm(towers.embed_texts(["a boat"]), axis=1), 1, atol=1e-4)


@pytest.mark.slow
def test_the_same_steps_give_the_same_weights(tmp_path: Path) -> None:
    for name in ("first", "second"):
        train_builtin.main(out=tmp_path / name, steps=2, pictures=120, batch=24, threads=1, scored=10, keep=tmp_path)
    first, second = ((tmp_path / name / train_builtin.WEIGHTS_NAME).read_bytes() for name in ("first", "second"))
    assert first == second
