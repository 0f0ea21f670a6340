"""One evaluation from Python, with few arguments, as the command makes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.folder import read_run
from kinodex.jobs.eval.report import read_report
from kinodex.jobs.eval.run import evaluate
from tests.support.runs.eval_runs import caption_library, write_questions

FILM = ("harbour",)


def test_a_run_from_python_is_the_run_of_the_command(tmp_path: Path) -> None:
    caption_library(tmp_path / "library", FILM)
    questions, out = write_questions(tmp_path, FILM), tmp_path / "run"
    report = evaluate(tmp_path / "library", "sketch", questions, out, agents=["random"], controls=False, limit=3)
    assert [(each.name, each.accuracy.questions) for each in report.standings] == [("random", 3)]
    assert report.complete
    assert read_report(out / "report.json") == report
    assert len(read_run(out).records) == 3
    again = evaluate(tmp_path / "library", "sketch", questions, out, agents=["random"], controls=False, limit=3)
    assert again == report
    with pytest.raises(UsageError, match="holds another run"):
        evaluate(tmp_path / "library", "sketch", questions, out, agents=["random"], controls=False)
