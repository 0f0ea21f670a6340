"""Tables of reports: on a terminal, as Markdown, and cut to a width."""

from __future__ import annotations

import json
from pathlib import Path

from kinodex.agent.answer_rules import AnswerRules
from kinodex.agent.limits.ledger import Ledger
from kinodex.cli.figure_tables import fitting
from kinodex.jobs.eval.folder import REPORT
from kinodex.jobs.eval.items import Problem
from kinodex.jobs.eval.report import report_run
from kinodex.jobs.eval.table_cells import Table
from kinodex.jobs.eval.video_names import MissingVideo
from tests.support.command import Kinodex
from tests.support.runs.small_runs import ITEMS, small_run
from tests.support.runs.solved_runs import answer, write_run


def test_the_report_is_printed_as_a_table_and_kept(kinodex: Kinodex, tmp_path: Path) -> None:
    missing = tuple(MissingVideo(f"v{number}", "no video of the library goes by it", 3) for number in range(12))
    problems = (Problem("row 17", "the answer is [E]"),)
    run = small_run(tmp_path / "run", questions=40, missing=missing, problems=problems)
    ran = kinodex("eval", "report", run, "--no-page")
    assert ran.code == 0
    assert "Made up: 4 of 40 questions about 3 videos; chance 0.250" in ran.out
    assert "only 3 videos: the errors themselves are rough" in ran.out
    assert "3 of 4 [0.01, 1.00]" in ran.out
    assert "missing: 12" in ran.out and "and 2 more" in ran.out
    assert "row 17: the answer is [E]" in ran.out
    assert "NOT COMPLETE" not in ran.out
    assert json.loads((run / REPORT).read_bytes())["standings"][0]["accuracy"]["mean"] == 0.75
    assert not (run / "report.html").exists()


WHEN = "accepted when nothing was left to look at or a budget ended the search"
RULES = (
    (AnswerRules(early_insufficient=True), "accepted at any time (--early-insufficient)"),
    (AnswerRules(), f"never accepted from agents of papers; from others {WHEN}"),
    (AnswerRules(force_choice=False), WHEN),
    (AnswerRules(force_choice=True), "never accepted: an answer had to be chosen (--force-choice)"),
)


def test_a_report_says_by_which_rules_answers_were_given(kinodex: Kinodex, tmp_path: Path) -> None:
    for number, (rules, says) in enumerate(RULES):
        run = small_run(tmp_path / str(number), rules=rules, at_once=7, prices={"default": "input 2.5, output 10"})
        assert report_run(run).facts["insufficient evidence"] == says
    out = kinodex("eval", "report", run).out
    assert f"insufficient evidence: {says}" in out
    assert "prices for a million tokens: default: input 2.5, output 10" in out
    assert "requests at once: 7" in out
    page = (run / "report.html").read_text()
    assert says in page and "input 2.5, output 10" in page


def test_what_may_not_be_overlooked_is_said_of_each_system(kinodex: Kinodex, tmp_path: Path) -> None:
    bills = [
        Ledger(calls=3, unknown_calls=2, estimated_tokens=1500, sheets=1, videos_without_chapters=1),
        Ledger(calls=1, unknown_calls=1, chapters=4),
    ]
    records = [
        answer(each.item_id, ledger=bill) for each, bill in zip(ITEMS, [*bills, Ledger(), Ledger()], strict=True)
    ]
    out = kinodex("eval", "report", write_run(tmp_path / "run", ITEMS, records)).out
    says = "eea: 3 calls without a count of tokens, 1,500 estimated tokens, among the tokens, 1 contact sheets in the"
    assert says in out
    assert "4 scenes and chapters listed" in out
    assert "1 videos without the scenes and chapters that a setting asks for" in out
    assert says in (tmp_path / "run" / "report.html").read_text()


def test_a_wide_table_is_cut_into_parts_that_fit_and_each_has_the_names() -> None:
    heads = ("a", "b", *(f"figure {number}" for number in range(9)))
    rows = tuple((name, "視頻代理", *(f"{number}.000" for number in range(9))) for name in ("eea", "vca " * 30))
    wide = Table("pairs", heads, rows, names=2)
    assert fitting(wide, 500) == [wide]
    parts = fitting(wide, 80)
    assert len(parts) > 1
    assert [head for part in parts for head in part.heads[2:]] == list(heads[2:])
    for part in parts:
        assert [row[:2] for row in part.rows] == [row[:2] for row in rows]
        assert 40 + 10 * (len(part.heads) - 2) <= 80, "the names take half of the line at most"
    assert [part.title for part in parts[:2]] == ["pairs", "pairs, continued"]
    narrow = fitting(wide, 20)
    assert len(narrow) == 9, "a column is shown whatever the width"
