"""The weights in the package reach their scores on combinations that were never trained on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kinodex.sketch.scenes import THING_NAMES
from tests.sketch.train import load_towers, score

TARGETS = {"thing_top1": 0.95, "colour_top1": 0.90, "place_top1": 0.95, "text_to_image_recall_at_10": 0.90}


SLACK = 0.03
"""A small sample's score scatters around the true one."""


@pytest.fixture(scope="module")
def builtin(root: Path) -> Path:
    """The folder with the weights of the package."""
    return root / "index" / "spaces" / "builtin"


def test_weights_are_small_and_their_report_meets_the_targets(builtin: Path) -> None:
    size = sum(path.stat().st_size for path in builtin.iterdir() if path.suffix == ".safetensors")
    assert 0 < size <= 12_000_000
    report = json.loads((builtin / "report.json").read_text())
    assert {name: report[name] for name in TARGETS if report[name] < TARGETS[name]} == {}
    assert report["pictures"] >= 1000 and report["paraphrase_precision_at_5"] >= 0.9


@pytest.mark.slow
def test_a_fresh_sample_of_unseen_combinations_agrees_with_the_report(builtin: Path) -> None:
    scores = score(builtin, pictures=250, seed=4321)
    assert {name: scores[name] for name, least in TARGETS.items() if scores[name] < least - SLACK} == {}
    assert scores["paraphrase_precision_at_5"] >= 0.85


def test_words_that_were_never_trained_are_neutral(builtin: Path) -> None:
    towers = load_towers(builtin)
    plain, wordy = towers.embed_texts(["a red boat at sea", "a xylograph red boat quokka at sea"])
    others = towers.embed_texts([f"a red {thing} at sea" for thing in THING_NAMES if thing != "boat"])
    assert wordy @ plain > (others @ wordy).max()
