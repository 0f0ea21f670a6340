"""`kinodex rollouts`: traces of runs as lines to train on."""

from __future__ import annotations

from pathlib import Path

from tests.support.command import Kinodex, bad


def test_a_file_that_is_no_trace_is_refused(kinodex: Kinodex, films: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_text("{}\n")
    bad(kinodex, "rollouts", trace, "--questions", films / "questions.jsonl", code=2, says="trace.jsonl")
