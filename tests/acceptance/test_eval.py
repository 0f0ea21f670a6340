"""Eval: agents on questions with known answers, their report, searches scored, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import kinodex as package
from tests.acceptance import FACTS
from tests.support.command import Kinodex, bad, json_of
from tests.world.benchmark import SKETCHES


def questions(folder: Path) -> Path:
    """Questions of one's own about the films, with the answers that they have."""
    file = folder / "own.jsonl"
    rows = [
        {
            "id": str(number),
            "video": fact.film,
            "question": fact.question,
            "options": fact.options,
            "answer": fact.letter,
            "evidence": [[fact.start_s, fact.end_s]],
        }
        for number, fact in enumerate(FACTS)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_an_agent_that_sees_is_right_and_a_run_goes_on(kinodex: Kinodex, shown: Path, tmp_path: Path) -> None:
    run = ("eval", "run", "own", shown, "--annotations", questions(tmp_path), "--out", tmp_path / "run", "--no-page")
    assert kinodex(*run, "--agent", "uniform", "--no-controls", "--limit", 3).code == 0
    report = json_of(kinodex, "eval", "report", tmp_path / "run")
    (standing,) = report["standings"]
    assert (standing["name"], report["questions"], report["complete"]) == ("uniform", 3, True)
    assert standing["accuracy"]["mean"] == 1.0
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*.jsonl")}
    assert before and kinodex(*run, "--agent", "uniform", "--no-controls", "--limit", 3).code == 0
    assert {path: path.read_bytes() for path in before} == before, "nothing is asked again"
    bad(kinodex, *run, "--agent", "kino", "--no-controls", code=2, says="run")


def test_python_compares_agents(shown: Path, tmp_path: Path) -> None:
    report = package.eval(shown, "own", questions(tmp_path), tmp_path / "run", agents=("uniform", "kino"))
    assert {standing.name for standing in report.standings} >= {"uniform", "kino", "random"}
    right = {standing.name: standing.accuracy.mean for standing in report.standings}
    assert right["uniform"] == 1.0 and (tmp_path / "run" / "report.json").is_file()


def test_a_benchmark_is_checked_before(kinodex: Kinodex, shown: Path, films: Path, tmp_path: Path) -> None:
    told = json_of(kinodex, "eval", "check", SKETCHES, films / "questions.jsonl", shown)
    assert (told["library"]["found"], told["library"]["missing"]) == (3, [])
    assert json_of(kinodex, "eval", "check", "own", questions(tmp_path), shown)["library"]["found"] == 3


def test_searches_are_scored(kinodex: Kinodex, shown: Path, tmp_path: Path) -> None:
    file = tmp_path / "searches.jsonl"
    rows = [
        {"id": fact.film, "text": fact.words, "video": fact.film, "relevant": [[fact.start_s, fact.end_s]]}
        for fact in FACTS
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    ran = kinodex("eval", "search", "own", file, "--library", shown, "--no-cache")
    assert ran.code == 0 and "R@1" in ran.out


def test_what_eval_refuses(kinodex: Kinodex, shown: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text("{")
    for arguments, says in (
        (("check", "egosschema", tmp_path), "did you mean egoschema"),
        (("check", "own", tmp_path / "none.jsonl"), "none.jsonl"),
        (("run", "own", shown, "--annotations", wrong, "--out", tmp_path / "run"), "wrong.jsonl"),
        (("run", "own", shown, "--annotations", questions(tmp_path), "--out", tmp_path, "--agent", "kinoo"), "kinoo"),
        (("report", tmp_path / "none"), "none"),
    ):
        bad(kinodex, "eval", *arguments, code=2, says=says)
