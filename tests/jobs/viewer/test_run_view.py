"""A run as the page draws it: standings, answers, truth."""

from __future__ import annotations

import json

from kinodex.jobs.eval.folder import ImportRequest, import_predictions, read_run
from kinodex.jobs.eval.report import report_run
from kinodex.web.inputs import ViewerApi, classify_inputs, run_view
from tests.support.runs.solved_runs import answer, item, seen, write_run


def test_a_run_shows_every_answer_and_has_its_traces(run):
    api = ViewerApi(classify_inputs([str(run)]))
    report = api.run(0)
    assert [len(each["answers"]) for each in report["questions"]] == [len(report["contenders"])] * 4
    at = report["contenders"].index("uniform")
    assert all(each["answers"][at]["has_trace"] for each in report["questions"])
    trace = api.trace(f"r0-{at}-3")
    assert trace["trace"].question["text"] == report["questions"][3]["question"].text
    assert trace["truth"]["option"] == 0 and trace["truth"]["evidence"][0]["end_s"] == 2.0
    assert trace["library"] == 0


def test_a_run_shows_imported_answers_as_such_and_cited_evidence_apart_from_shown(tmp_path):
    items = [item(name, f"v{name}", evidence=((1.0, 2.0),)) for name in "ab"]
    records = [answer(name, evidence=(seen(0, 3, f"v{name}"),), evidence_cited=name == "a") for name in "ab"]
    run = write_run(tmp_path / "run", items, records)
    report_run(run)  # the page does not show its file, which is older than the import
    (tmp_path / "theirs.json").write_text(json.dumps({"a": "A", "b": "B"}))
    import_predictions(run, ImportRequest(tmp_path / "theirs.json"))
    shown = run_view(read_run(run))
    assert shown["contenders"] == ["eea", "theirs (imported)"]
    own, theirs = shown["standings"]
    assert (own["imported"], own["cited"].mean, own["shown"].mean) == (False, 0.5, 1.0)
    assert (theirs["imported"], theirs["cited"], theirs["costs"]) == (True, None, {})
    assert [[each["score"] for each in question["answers"]] for question in shown["questions"]] == [[1, 1], [1, 0]]
