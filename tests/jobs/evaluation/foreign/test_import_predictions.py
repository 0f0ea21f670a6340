"""`kinodex eval import`: foreign predictions beside the agents of a run, on made-up and on real questions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.core.budget import Ledger
from jobs.benchmarks.registry import read_benchmark
from jobs.benchmarks.samples import Sample
from jobs.evaluation.foreign.import_predictions import ImportRequest, import_predictions, read_option
from jobs.evaluation.run.run_folder import read_run
from jobs.evaluation.score.report import EvalReport, Standing, report_run
from tests.support.command import Kinodex, bad
from tests.support.runs.solved_runs import answer, item, write_run

FIVE = tuple(f"the person {what}" for what in ("cooks", "reads", "sleeps", "runs", "sings"))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of eea on six questions about three videos, five of which it answers rightly."""
    items = [item(name, f"v{number // 2}", evidence=((1.0, 2.0),)) for number, name in enumerate("abcdef")]
    bills = [Ledger(frames=8, input_tokens=1000, cost=0.5)] * 6
    records = [answer(each.item_id, each.item_id == "f", ledger=bill) for each, bill in zip(items, bills, strict=True)]
    return write_run(tmp_path / "run", items, records)


def imported(report: EvalReport) -> Standing:
    return next(each for each in report.standings if each.imported)


def predictions(tmp_path: Path, content: object) -> Path:
    path = tmp_path / "published.json"
    path.write_text(json.dumps(content))
    return path


def test_predictions_are_a_contender_of_every_table(run: Path, tmp_path: Path, kinodex: Kinodex) -> None:
    file = predictions(tmp_path, {"a": "A", "b": "red", "c": "(A) red", "d": "The answer is blue.", "e": 0, "f": 1})
    ran = kinodex("eval", "import", run, file, "--markdown")
    assert ran.code == 0, ran
    assert "| published (imported) | 0.667" in ran.out
    assert "not known" in ran.out
    assert "| eea | published (imported) | +0.167" in ran.out, "compared with each agent on the same questions"
    assert f"published (imported): imported from {file}, sha256 " in ran.out
    page = (run / "report.html").read_text()
    assert "published (imported)" in page and "not known" in page
    standing = imported(report_run(run))
    assert (standing.costs, standing.frames, standing.depths, standing.cited, standing.shown) == (
        {},
        (),
        (),
        None,
        None,
    )
    assert [each.option for each in read_run(run).records if each.imported] == [0, 0, 0, 1, 0, 1]


def test_what_does_not_fit_is_said_and_counts_as_wrong(run: Path, tmp_path: Path, kinodex: Kinodex) -> None:
    file = predictions(tmp_path, {"a": "A", "b": "either A or B", "c": None, "zz": "A", "yy": "B"})
    ran = kinodex("eval", "import", run, file, "--no-page")
    assert "predictions of no question of this run: 2, zz, yy" in ran.err
    assert "3 of 6 questions have no prediction and are counted as unanswered" in ran.err
    assert "predictions that name no option, counted as invalid: 1" in ran.err
    standing = imported(report_run(run))
    assert (standing.accuracy.questions, standing.unanswered, standing.invalid) == (6, 5, 1)
    assert standing.accuracy.mean == pytest.approx(1 / 6)
    assert report_run(run).complete


def test_questions_without_a_prediction_can_be_left_out(run: Path, tmp_path: Path, kinodex: Kinodex) -> None:
    file = predictions(tmp_path, {"a": "A", "b": "B"})
    assert (
        "4 of 6 questions have no prediction and are left out" in kinodex("eval", "import", run, file, "--partial").err
    )
    report = report_run(run)
    assert (imported(report).accuracy.questions, report.complete) == (2, False)


def test_an_import_does_not_stop_a_run_from_going_on_and_can_be_replaced(
    run: Path, tmp_path: Path, kinodex: Kinodex
) -> None:
    file = predictions(tmp_path, {"a": "A"})
    import_predictions(run, ImportRequest(file, "theirs"))
    bad(kinodex, "eval", "import", run, file, "--name", "theirs", code=2, says="give another --name, or --replace")
    import_predictions(run, ImportRequest(predictions(tmp_path, {"a": "B"}), "theirs", replaces=True))
    import_predictions(run, ImportRequest(file, "others"))
    read = read_run(run)
    assert [each.name for each in read.plan.contenders] == ["eea", "others (imported)", "theirs (imported)"]
    assert len(json.loads((run / "run.json").read_text())["contenders"]) == 1, "the run's own plan is as it was"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"x": "A"}, "predicts none of the run's 6 questions: it has x, and the run a, b, c, d, e and 1 more"),
        ([{"id": "a", "answer": "A"}, {"id": "a", "answer": "B"}], "predicts a twice: 'A' (row 1) and 'B' (row 2)"),
        ({"a": 1, "b": 4, "c": 2}, "counts options from 1 on, as it seems"),
    ],
)
def test_what_would_be_misread_is_refused(run: Path, tmp_path: Path, kinodex: Kinodex, content, says: str) -> None:
    bad(kinodex, "eval", "import", run, predictions(tmp_path, content), code=2, says=says)
    assert read_run(run).imported == ()


def test_options_counted_from_one(run: Path, tmp_path: Path) -> None:
    file = predictions(tmp_path, dict.fromkeys("abcdef", 1))
    import_predictions(run, ImportRequest(file, first=1))
    assert imported(report_run(run)).accuracy.mean == 1.0


@pytest.mark.parametrize(
    ("value", "option"),
    [
        (2, 2),
        ("2", 2),
        ("2.0", 2),
        ("a2", 2),
        ("C", 2),
        ("(C)", 2),
        ("<answer>C</answer>", 2),
        ("The person sleeps.", 2),
        (True, None),
        (5, None),
        ("a7", None),
        (-2, None),
        ("A or B", None),
        (1.5, None),
    ],
)
def test_a_prediction_is_read_as_an_answer_is_or_as_a_number(value: object, option: int | None) -> None:
    assert read_option(value, FIVE) == option


def test_words_that_are_numbers_are_words_first() -> None:
    assert read_option("3", ("3", "2", "1")) == 0
    assert read_option(2, ("3", "2", "1")) == 2


REAL = {
    "egoschema": "egoschema/subset_anno.json",
    "nextqa": "nextqa/val.csv",
    "longtvqa-plus": "longtvqa/LongTVQA_plus_val.first150.json",
}


@pytest.mark.parametrize("benchmark", REAL)
@pytest.mark.parametrize("form", ["index", "letter", "words", "sentence"])
def test_the_truth_of_real_questions_is_read_as_right_in_every_form(
    tmp_path: Path, benchmarks: Path, benchmark: str, form: str
) -> None:
    samples = read_benchmark(benchmark, benchmarks / REAL[benchmark]).samples[:500]

    def predicted(sample: Sample) -> object:
        option = sample.truth.option or 0
        letter, words = sample.question.lettered[option]
        return {"index": option, "letter": letter, "words": words, "sentence": f"The answer is {letter}. {words}"}[form]

    run = write_run(tmp_path / "run", samples, [])
    found = import_predictions(
        run, ImportRequest(predictions(tmp_path, {each.item_id: predicted(each) for each in samples}))
    )
    assert found.notes == ()
    assert imported(report_run(run)).accuracy.mean == 1.0
