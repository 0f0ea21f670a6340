"""A run keeps each result, and solves only what is not there yet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from index.library import Library
from jobs.benchmarks.moments import MomentQuery
from jobs.evaluation.moments.cases import Case, Cases
from jobs.evaluation.moments.results import ResultFile
from jobs.evaluation.moments.run import run_cases, run_settings
from jobs.evaluation.moments.systems import Bench
from jobs.model_choice import ModelChoice
from jobs.open_library import open_environment


def case(text: str) -> Case:
    return Case("1", MomentQuery(text, None, None), None, (("nowhere", 0.0, 1.0),), (1.0,), False, "", "nowhere")


def test_only_what_is_not_there_yet_is_solved(library: Path, tmp_path: Path) -> None:
    opened = Library.open(str(library))
    bench = Bench(opened, open_environment(opened), ModelChoice(cache=False), 5, 2.0)
    cases = Cases((case("a boat"), replace(case("a bird"), case_id="2")), (), {})
    settings = run_settings("own", tmp_path / "searches.jsonl", ["frames"], bench)
    assert (settings["most"], settings["videos"], "models" in settings) == (5, 3, False)
    assert "models" in run_settings("own", tmp_path, ["agent:eea"], bench)
    reports: list[tuple[int, int]] = []
    file = ResultFile(tmp_path / "results.jsonl", settings)
    first = run_cases(cases, ["frames"], bench, file, lambda done, todo: reports.append((done, todo)))
    assert [each.case_id for each in first] == ["1", "2"]
    assert reports == [(0, 2), (1, 2)]
    written = (tmp_path / "results.jsonl").read_text()
    again = ResultFile(tmp_path / "results.jsonl", settings)
    assert run_cases(cases, ["frames"], bench, again, lambda done, todo: None) == first
    assert (tmp_path / "results.jsonl").read_text() == written
