"""A run as the page draws it: standings, answers, truth."""

from __future__ import annotations

from jobs.viewer.api import ViewerApi
from jobs.viewer.inputs import classify_inputs


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
