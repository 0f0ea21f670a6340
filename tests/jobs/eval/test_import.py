"""Predictions made elsewhere: files in the forms in which they are handed out, beside the agents of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kinodex.agent.limits.ledger import Ledger
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.benchmarks import read_benchmark
from kinodex.jobs.eval.folder import read_run
from kinodex.jobs.eval.imported_predictions import ImportRequest, import_predictions, read_option
from kinodex.jobs.eval.prediction_files import read_predictions
from kinodex.jobs.eval.report import EvalReport, Standing, report_run
from tests.support.command import Kinodex, bad
from tests.support.runs.solved_runs import answer, item, spoken, write_run
from tests.support.servers.chat_server import ChatServer

# `kinodex eval import`: foreign predictions beside the agents of a run, on made-up and on real questions.


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


@pytest.mark.slow
def test_predictions_are_a_contender_of_every_table(run: Path, tmp_path: Path, kinodex: Kinodex) -> None:
    file = predictions(tmp_path, {"a": "A", "b": "red", "c": "(A) red", "d": "Answer: blue", "e": 0, "f": 1})
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


OPTIONS = {
    "words": ("None", "-1", "nan", "3"),
    "count": ("3", "4", "5", "2"),
    "no": ("red", "blue", "green", "yellow"),
    "said": (),
}


@pytest.mark.parametrize(
    ("question", "predicted", "option", "status", "text"),
    [
        ("words", "None", 0, "answered", "None"),
        ("words", "-1", 1, "answered", "-1"),
        ("words", "NaN", 2, "answered", "nan"),
        ("words", -1, None, "insufficient_evidence", None),
        ("words", None, None, "insufficient_evidence", None),
        ("no", "None", None, "insufficient_evidence", None),
        ("no", "-1", None, "insufficient_evidence", None),
        ("no", "nan", None, "insufficient_evidence", None),
        ("said", "None", None, "answered", "None"),
        ("said", "-1", None, "answered", "-1"),
        ("said", -1, None, "answered", "-1"),
        ("said", "nan", None, "answered", "nan"),
        ("said", " ", None, "insufficient_evidence", None),
        ("said", None, None, "insufficient_evidence", None),
    ],
)
def test_words_for_none_are_options_and_answers_where_they_can_be(
    tmp_path: Path, question: str, predicted: object, option: int | None, status: str, text: str | None
) -> None:
    asked = spoken("q") if question == "said" else item("q", options=OPTIONS[question])
    run = write_run(tmp_path / "run", [asked], [])
    found = import_predictions(run, ImportRequest(predictions(tmp_path, {"q": predicted}))).results[0]
    assert (found.option, found.status, found.text) == (option, status, text)


def test_corrected_predictions_are_judged_and_the_others_keep_their_scores(tmp_path: Path, kinodex: Kinodex) -> None:
    run = write_run(tmp_path / "run", [spoken(name) for name in "abc"], [], names=(), scoring="judge")

    def reply(body: dict) -> dict:
        return {"reason": "so", "score": 3 if "Answer to grade: a kite" in str(body) else 0}

    with ChatServer(reply) as server:
        judge = ("eval", "judge", run, "--model", "tester", "--base-url", server.base_url, "--no-page", "--no-cache")
        import_predictions(run, ImportRequest(predictions(tmp_path, {"a": "a kite", "b": "a dog", "c": "None"})))
        assert (kinodex(*judge).code, len(server.seen)) == (0, 3), "an answer that says None is judged"
        assert imported(report_run(run)).accuracy.mean == pytest.approx(1 / 3)
        file = predictions(tmp_path, {"a": "a kite", "b": "a kite", "c": "None"})
        import_predictions(run, ImportRequest(file, replaces=True))
        assert not report_run(run).complete
        assert (kinodex(*judge).code, len(server.seen)) == (0, 4)
    report = report_run(run)
    assert report.complete and imported(report).accuracy.mean == pytest.approx(2 / 3)


REAL = {
    "egoschema": "egoschema/subset_anno.json",
    "nextqa": "nextqa/val.csv",
    "longtvqa-plus": "longtvqa/LongTVQA_plus_val.first150.json",
}


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", REAL)
def test_the_truth_of_real_questions_is_read_as_right_in_every_form(
    tmp_path: Path, benchmarks: Path, benchmark: str
) -> None:
    samples = read_benchmark(benchmark, benchmarks / REAL[benchmark]).items[:150]
    run, forms = write_run(tmp_path / "run", samples, []), list[dict[str, object]]()
    for sample in samples:
        option = sample.truth.option or 0
        letter, words = sample.question.lettered[option]
        forms.append({"index": option, "letter": letter, "words": words, "all": f"Answer: {letter}. {words}"})
    for form in forms[0]:
        said = {sample.item_id: each[form] for sample, each in zip(samples, forms, strict=True)}
        found = import_predictions(run, ImportRequest(predictions(tmp_path, said), replaces=True))
        assert found.notes == (), form
        assert imported(report_run(run)).accuracy.mean == 1.0, form


# Files of predictions in the forms in which they are handed out.


def written(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.jsonl", '{"question_id": "q1"}\n', "no prediction in question_id; name its field by --prediction-field"),
        ("a.jsonl", '{"key": "q1", "prediction": "B"}\n', "no id of a question in key, prediction"),
        ("a.json", [{"question_id": "q1", "question": "What?", "answer": "C"}], "as annotation files have the truth"),
        ("a.json", [{"id": "q1", "resps": [["A", "C"]]}], "row 1: got 2 different responses as resps"),
        ("a.json", "[1]", "row 1: got '1', which is no object"),
        ("a.json", "{", "is not JSON"),
        ("a.json", "3", "is no object or list"),
        ("a.json", "[]", "holds no prediction"),
        ("a.jsonl", "{oops\n", "line 1: not JSON"),
        ("a.csv", "id,prediction\nq1,B,C\n", "line 2: got 3 fields; there are 2"),
        ("a.xlsx", "", "save the sheet as CSV"),
    ],
)
def test_what_is_no_file_of_predictions_is_refused_with_its_place(
    tmp_path: Path, name: str, content: object, says: str
) -> None:
    with pytest.raises(UsageError) as refused:
        read_predictions(written(tmp_path / name, content))
    assert says in str(refused.value)
