"""Settings of training: the paper's, those of a file over them, and clear errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinodex.agent.variants.longvideoagent_training import ALPHA
from kinodex.jobs.errors import UsageError
from kinodex.jobs.train.rollouts import MasterSettings


def test_the_papers_settings_are_the_default():
    settings = MasterSettings.read()
    assert (settings.learning_rate, settings.steps, settings.kl) == (5e-6, 2000, 1e-3)
    assert (settings.questions, settings.rollouts, settings.temperature) == (4, 4, 1.0)
    assert settings.alpha == ALPHA


def test_a_file_goes_over_the_paper_and_an_option_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "changes.toml"
    file.write_text("steps = 7\nrollouts = 2\n")
    settings = MasterSettings.read(file, steps=3, seed=None)
    assert (settings.steps, settings.rollouts, settings.questions) == (3, 2, 4)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("learning_rat = 1.0", "there is no setting learning_rat; did you mean learning_rate?"),
        ("xyz = 1", "there is no setting xyz; the settings are learning_rate, steps"),
        ("rollouts = 1", "got rollouts = 1; Input should be greater than or equal to 2"),
        ("steps =", "give a TOML file like grpo.toml"),
    ],
)
def test_a_bad_file_is_one_clear_error(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "changes.toml"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        MasterSettings.read(file)
    assert problem in str(caught.value) and str(file) in str(caught.value)


def test_a_file_that_is_missing_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*none\.toml"):
        MasterSettings.read(tmp_path / "none.toml")
