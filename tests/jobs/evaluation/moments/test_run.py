"""A run keeps each result, and solves only what is not there yet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agent.errors import AllRejected
from index.library import Library
from jobs.benchmarks.moments import MomentQuery
from jobs.errors import UsageError
from jobs.evaluation.moments.cases import Case, Cases
from jobs.evaluation.moments.results import Result, ResultFile
from jobs.evaluation.moments.run import run_cases, run_settings
from jobs.evaluation.moments.systems import Bench
from jobs.model_choice import ModelChoice
from jobs.open_library import open_environment
from tests.support.servers.chat_server import ChatServer, failing, in_turn


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


def test_an_edited_search_is_solved_again_and_a_library_that_grew_is_refused(library: Path, tmp_path: Path) -> None:
    opened = Library.open(str(library))
    bench = Bench(opened, open_environment(opened), ModelChoice(cache=False), 5, 2.0)
    settings = run_settings("own", tmp_path, ["frames"], bench)
    path = tmp_path / "results.jsonl"

    def run(*cases: Case) -> list[Result]:
        file = ResultFile(path, settings)
        return run_cases(Cases(cases, (), {}), ["frames"], bench, file, lambda done, todo: None)

    (boat,) = run(case("a boat"))
    bird, other = run(case("a bird"), replace(case("a boat"), case_id="2"))
    assert bird.found != boat.found == other.found
    assert run(case("a bird"))[0] == bird
    assert len(path.read_text().splitlines()) == 1 + 3
    grown = settings["contents"] + "; captions by x, 2 rows"
    with pytest.raises(UsageError, match=r"results with contents videos \w{12}, .*; captions by x, 2 rows; give a new"):
        ResultFile(path, settings | {"contents": grown})


def test_an_endpoint_that_is_down_ends_the_run_and_a_refused_search_does_not(library: Path, tmp_path: Path) -> None:
    opened = Library.open(str(library))
    replies = in_turn(failing(400, "The response was filtered", code="content_filter"), failing(401, "bad key"))
    with ChatServer(replies) as server:
        choice = ModelChoice("tester", server.base_url, cache=False)
        bench = Bench(opened, open_environment(opened), choice, 5, 2.0)
        cases = Cases((case("a boat"), replace(case("a bird"), case_id="2")), (), {})
        file = ResultFile(tmp_path / "results.jsonl", {})
        with pytest.raises(AllRejected):
            run_cases(cases, ["agent:uniform"], bench, file, lambda done, todo: None)
    (kept,) = file.results.values()
    assert kept.case_id == "1" and "filter" in kept.error
