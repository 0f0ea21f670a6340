"""Answers scored against their targets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kinodex.agent.limits import Ledger
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.report import make_report
from kinodex.jobs.eval.systems import Judgement, Round
from tests.support.runs.solved_runs import LIBRARY, answer, item, plan_of, said, seen, spoken


def only(plan, items, records, judgements=()):
    """The one standing of a report."""
    (standing,) = make_report(plan, items, records, judgements).standings
    return standing


def test_a_question_whose_answer_nobody_tells_is_asked_and_not_scored() -> None:
    items = [item("a"), item("b", "v2", option=None)]
    standing = only(plan_of(items), items, [answer("a"), answer("b", 2, ledger=Ledger(frames=8))])
    assert (standing.accuracy.mean, standing.accuracy.questions) == (1.0, 1)
    assert standing.costs["frames"].mean == 4.0
    report = make_report(plan_of(items), items, [answer("a"), answer("b", 2)])
    assert report.complete
    assert (report.asked, report.videos) == (2, 2)


def test_evidence_and_distance_are_to_the_nearest_true_range_of_the_right_video() -> None:
    items = [
        item("a", evidence=((10.0, 20.0), (100.0, 110.0))),
        item("b", "v2", evidence=((10.0, 20.0),)),
        item("c", "v3"),
    ]
    searched = (
        Round(0.9, 0.2, seen(0, 5), seen(105, 130)),
        Round(0.4, None, seen(130, 150), seen(40, 90)),
        Round(0.1, 0.0, None, seen(0, 1)),
    )
    records = [
        answer("a", evidence=(seen(20, 30), seen(109, 140)), search=searched),
        answer("b", evidence=(seen(10, 20),), search=(Round(None, None, seen(0, 5), None),)),
        answer("c", evidence=(seen(10, 20, "v3"),)),
    ]
    standing = only(plan_of(items), items, records)
    assert standing.evidence is not None
    assert (standing.evidence.mean, standing.evidence.questions) == (0.5, 2), "b's evidence is of another video"
    assert standing.distance == {"chosen": (5.0, 20.0), "best": (0.0, 10.0)}, "the last round chose nothing"
    assert standing.entropy == {"intrinsic": (0.9, 0.4, 0.1), "fused": (0.2, 0.0)}
    assert standing.grounding is None


def test_grounding_is_whether_the_true_clip_was_visited() -> None:
    items = [item(name, "episode", clip=LIBRARY + "clip1", evidence=((0.0, 5.0),)) for name in "abc"]
    items[2] = replace(items[2], truth=replace(items[2].truth, clip=LIBRARY + "clip9"))
    clips = (LIBRARY + "clip1", LIBRARY + "clip2")
    records = [
        answer("a", visited=(seen(0, 9, "clip2"), seen(0, 9, "clip1")), evidence=(seen(0, 9, "clip2"),)),
        answer("b", visited=(seen(0, 9, "clip2"),), evidence=(seen(1, 2, "clip1"),)),
        answer("c", visited=(seen(0, 9, "clip2"),)),
    ]
    standing = only(plan_of(items, items=dict.fromkeys("abc", clips)), items, records)
    assert standing.grounding is not None and standing.evidence is not None
    assert (standing.grounding.mean, standing.grounding.questions) == (0.5, 2), "the library has no clip9"
    assert standing.evidence.mean == 0.5


def test_free_answers_are_not_scored_before_they_are_judged() -> None:
    items = [spoken("a"), spoken("b", "v2")]
    records = [said("a", "a kite"), said("b", "")]
    plan = plan_of(items, scoring="judge")
    unjudged = make_report(plan, items, records)
    assert (unjudged.standings[0].accuracy.questions, unjudged.judge, unjudged.complete) == (0, None, False)
    judged = make_report(plan, items, records, [Judgement("eea", "a", "one", 0), Judgement("eea", "a", "other", 3)])
    assert judged.judge == "other", "the last judge counts, and no other one beside it"
    assert judged.standings[0].accuracy.mean == 0.5
    assert judged.complete


def test_an_answer_of_another_run_is_refused() -> None:
    items = [item("a")]
    for strange in (answer("b"), answer("a", contender="vca")):
        with pytest.raises(UsageError, match="no such contender or question"):
            make_report(plan_of(items), items, [strange])
