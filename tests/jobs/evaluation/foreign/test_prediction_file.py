"""Files of predictions in the forms in which they are handed out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.folder import read_predictions

LMMS_EVAL = {
    "doc_id": 0,
    "doc": {"video_id": "001", "question_id": "001-1", "question": "What?", "answer": "C"},
    "target": "C",
    "resps": [["B. A cat"]],
    "filtered_resps": ["B"],
    "videomme_perception_score": {"question_id": "001-1", "pred_answer": "B", "answer": "C"},
}
"""A line of what lmms-eval logs of Video-MME with --log_samples."""


def written(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def pairs(path: Path, **fields: str) -> list[tuple[str, object]]:
    return [(each.ids[0], each.value) for each in read_predictions(path, **fields)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", {"q1": "B", "q2": 3}),
        ("a.json", {"q1": {"prediction": "B"}, "q2": {"pred": 3}}),
        ("a.json", [{"question_id": "q1", "answer": "B"}, {"q_uid": "q2", "option": 3}]),
        ("a.json", {"predictions": [{"id": "q1", "prediction": "B"}, {"uid": "q2", "response": 3}]}),
        ("a.jsonl", '{"question_id": "q1", "prediction": "B"}\n{"item_id": "q2", "pred_answer": 3}\n'),
    ],
)
def test_json_in_its_forms(tmp_path: Path, name: str, content: object) -> None:
    assert pairs(written(tmp_path / name, content)) == [("q1", "B"), ("q2", 3)]


@pytest.mark.parametrize(("name", "mark"), [("a.csv", ","), ("a.tsv", "\t")])
def test_tables_have_the_truth_in_answer_beside_the_prediction(tmp_path: Path, name: str, mark: str) -> None:
    """VLMEvalKit's results have both."""
    rows = [("index", "question", "prediction", "answer"), ("17", "What?", "B", "C")]
    assert pairs(written(tmp_path / name, "".join(mark.join(row) + "\n" for row in rows))) == [("17", "B")]


def test_samples_that_lmms_eval_logs(tmp_path: Path) -> None:
    assert pairs(written(tmp_path / "samples.jsonl", LMMS_EVAL)) == [("001-1", "B")]


def test_nextqa_numbers_its_questions_by_video(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "video,qid,prediction\n4010069381,6,2\n")
    (found,) = read_predictions(path)
    assert found.ids == ("4010069381_6", "6")


def test_fields_of_other_names_are_named(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", '{"key": "q1", "choice": "B", "question": "What?", "answer": "C"}\n')
    assert pairs(path, id_field="key", prediction_field="choice") == [("q1", "B")]
    assert pairs(path, id_field="key", prediction_field="answer") == [("q1", "C")]


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
