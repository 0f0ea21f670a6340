"""Figures of runs whose answers are known, worked out by hand; official rules on rows in the published forms."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kinodex.agent.limits import Ledger
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.benchmarks import read_benchmark
from kinodex.jobs.eval.report import COSTS, Depth, as_json, make_report, read_report
from kinodex.jobs.eval.systems import Judgement, Round
from tests.support.runs.solved_runs import answer, item, means, plan_of, said, seen, spoken


def only(plan, items, records, judgements=()):
    """The one standing of a report."""
    (standing,) = make_report(plan, items, records, judgements).standings
    return standing


def test_who_is_right_and_why_not() -> None:
    items = [item(name, video) for name, video in (("a", "v1"), ("b", "v1"), ("c", "v2"), ("d", "v2"), ("e", "v3"))]
    records = [
        answer("a"),
        answer("b", 3),
        answer("c", None),
        answer("d", None, status="invalid"),
        answer("e", None, status=None, error="ModelRejected: the server says 400"),
    ]
    standing = only(plan_of(items), items, records)
    assert (standing.accuracy.mean, standing.accuracy.questions, standing.accuracy.clusters) == (0.2, 5, 3)
    assert (standing.unanswered, standing.invalid, standing.errors) == (3, 1, 1)
    assert standing.valid is None


def test_costs_are_those_of_the_ledgers() -> None:
    items = [item("a"), item("b", "v2")]
    bills = [
        Ledger(frames=4, frame_shows=9, frames_with_kept=6, calls=3, input_tokens=100, output_tokens=20, cost=0.5),
        Ledger(frames=8, frame_shows=8, frames_with_kept=8, calls=1, input_tokens=50, output_tokens=10, seconds=2.0),
    ]
    standing = only(
        plan_of(items), items, [answer("b", ledger=bills[1], rounds=5), answer("a", ledger=bills[0], rounds=2)]
    )
    assert set(standing.costs) == set(COSTS)
    spent = {name: (each.mean, each.total) for name, each in standing.costs.items()}
    assert spent["frames"] == (6.0, 12.0)
    assert spent["frames_with_kept"] == (7.0, 14.0)
    assert spent["frame_shows"] == (8.5, 17.0)
    assert spent["rounds"] == (3.5, 7.0)
    assert spent["tokens"] == (90.0, 180.0)
    assert spent["cost"] == (0.25, 0.5)
    assert spent["seconds"] == (1.0, 2.0)
    assert standing.frames == (4, 8), "in the order of the questions, not of the answers"


def test_chance_is_that_of_the_options() -> None:
    items = [item("a"), item("b", options=("yes", "no"))]
    assert make_report(plan_of(items), items, []).chance == pytest.approx((0.25 + 0.5) / 2)
    free = [spoken("a")]
    assert make_report(plan_of(free, scoring="judge"), free, []).chance is None


def test_depths_say_at_which_round_questions_end() -> None:
    items = [item(name, name) for name in "abcd"]
    records = [answer("a", rounds=1), answer("b", 1, rounds=3), answer("c", rounds=3), answer("d", rounds=2)]
    standing = only(plan_of(items), items, records)
    assert standing.depths == (Depth(1, 1, 0.25, 1.0), Depth(2, 1, 0.25, 1.0), Depth(3, 2, 0.5, 0.5))


def test_lengths_are_grouped_as_in_figure_8() -> None:
    minutes = {"a": 1, "b": 5, "c": 29.9, "d": 30, "e": 60, "f": 99, "g": 100, "h": 400}
    items = [item(name, name, duration_s=60.0 * length) for name, length in minutes.items()] + [item("z", "z")]
    groups = only(plan_of(items), items, [answer(each.item_id) for each in items]).groups["duration"]
    counts = {name: each.questions for name, each in groups.items()}
    assert counts == {"< 5 min": 1, "5 to 30 min": 2, "30 to 60 min": 1, "60 to 100 min": 2, "> 100 min": 2}
    assert list(groups) == ["< 5 min", "5 to 30 min", "30 to 60 min", "60 to 100 min", "> 100 min"]


def test_categories_come_by_number_or_name() -> None:
    lengths = [item(name, groups={"duration_group": (name,), "kind": (f"k{name}",)}) for name in ("600", "15", "3600")]
    groups = only(plan_of(lengths), lengths, [answer(each.item_id) for each in lengths]).groups
    assert list(groups["duration_group"]) == ["15", "600", "3600"]
    assert list(groups["kind"]) == ["k15", "k3600", "k600"]


def test_lvbench_counts_a_question_in_each_of_its_categories(tmp_path: Path) -> None:
    rows = [
        ("1", "B", ["key information retrieval", "reasoning"]),
        ("2", "A", ["reasoning"]),
        ("3", "C", ["summarization"]),
        ("4", "C", ["summarization", "reasoning"]),
    ]
    asked = [
        {
            "uid": uid,
            "question": f"Which of {uid}?\n(A) a\n(B) b\n(C) c\n(D) d",
            "answer": letter,
            "question_type": kinds,
            "time_reference": "00:10-00:19",
        }
        for uid, letter, kinds in rows
    ]
    video = {"key": "v1", "type": "tv", "video_info": {"duration_minutes": 70}, "qa": asked}
    path = tmp_path / "video_info.meta.jsonl"
    path.write_text(json.dumps(video) + "\n")
    items = read_benchmark("lvbench", path).samples
    standing = only(plan_of(items), items, [answer(each.item_id, 2) for each in items])
    assert means(standing.groups["question_type"]) == {
        "key information retrieval": 0.0,
        "reasoning": round(1 / 3, 4),
        "summarization": 1.0,
    }
    assert standing.accuracy.mean == 0.5, "overall each question counts once"
    assert list(standing.groups["duration"]) == ["60 to 100 min"]


def test_nextqa_has_tp_among_tn_and_c_t_d(tmp_path: Path) -> None:
    right = {"CW": 1, "CH": 0, "TP": 0, "TN": 1, "TC": 1, "DL": 1, "DC": 0, "DO": 0}
    head = "video,frame_count,width,height,question,answer,qid,type,a0,a1,a2,a3,a4\n"
    lines = [f"4010069381,369,640,480,what is {kind},1,{n},{kind},v,w,x,y,z\n" for n, kind in enumerate(right)]
    path = tmp_path / "val.csv"
    path.write_text(head + "".join(lines))
    items = read_benchmark("nextqa", path).samples
    standing = only(plan_of(items), items, [answer(each.item_id, right[each.groups["type"][0]]) for each in items])
    assert means(standing.groups["C/T/D"]) == {"C": 0.5, "T": round(2 / 3, 4), "D": round(1 / 3, 4)}
    official = {"CH": 0.0, "CW": 1.0, "DC": 0.0, "DL": 1.0, "DO": 0.0, "TC": 1.0, "TN": 0.5}
    assert means(standing.groups["official_type"]) == official


def test_mmbench_video_is_scored_over_all_and_over_the_valid(tmp_path: Path) -> None:
    """A question counts in each leaf and once in each branch; without a valid score it is a 0, or left out."""
    rows = {"1": ["OCR", "Counting"], "2": ["OCR", "Causal Reasoning"], "3": ["Hallucination"], "4": ["Video Topic"]}
    lines = [f'{index}\tv{index}\tx\tWhat?\tA kite\t"{leaves}"\n' for index, leaves in rows.items()]
    path = tmp_path / "MMBench-Video.tsv"
    path.write_text("index\tvideo\tvideo_path\tquestion\tanswer\tdimensions\n" + "".join(lines))
    items = read_benchmark("mmbench-video", path).samples
    records = [said("1", "a kite"), said("2", "a bird"), said("3", "who knows"), said("4", None, status="invalid")]
    verdicts = [Judgement("eea", "1", "gpt", 3), Judgement("eea", "2", "gpt", 1), Judgement("eea", "3", "gpt", None)]
    plan = plan_of(items, scoring="judge")
    standing = only(plan, items, records, verdicts)
    assert standing.accuracy.mean * 3 == pytest.approx((3 + 1 + 0 + 0) / 4)
    assert standing.valid is not None
    assert standing.valid.mean * 3 == pytest.approx((3 + 1) / 2)
    assert (standing.valid.questions, standing.unanswered, standing.invalid) == (2, 1, 1)
    assert {name: 3 * mean for name, mean in means(standing.groups["ability"]).items()} == pytest.approx(
        {"FP-S": 2.0, "TR": 1.0, "HL": 0.0, "CP": 0.0}, abs=1e-3
    )
    assert set(standing.valid_groups["ability"]) == {"FP-S", "TR"}
    sides = standing.groups["perception/reasoning"]
    assert {name: 3 * each.mean for name, each in sides.items()} == pytest.approx({"perception": 1.0, "reasoning": 1.0})
    assert make_report(plan, items, records, verdicts).complete


def test_video_mme_keeps_its_own_durations() -> None:
    items = [item(name, name, duration_s=9.0, groups={"duration": (name,)}) for name in ("long", "medium", "short")]
    groups = only(plan_of(items), items, [answer(each.item_id) for each in items]).groups
    assert list(groups["duration"]) == ["short", "medium", "long"]


def test_pairs_are_on_the_questions_that_both_answered() -> None:
    items = [item(name, video) for name, video in (("a", "v1"), ("b", "v1"), ("c", "v2"), ("d", "v3"), ("e", "v4"))]
    records = [
        *(answer(name, option) for name, option in (("a", 0), ("b", 0), ("c", 0), ("d", 1), ("e", 0))),
        *(answer(name, option, "vca") for name, option in (("a", 0), ("b", 1), ("c", 1), ("d", 1))),
    ]
    report = make_report(plan_of(items, ("eea", "vca", "videotree")), items, records)
    (pair,) = report.pairs
    assert (pair.a, pair.b) == ("eea", "vca")
    assert (pair.both, pair.only_a, pair.only_b, pair.neither) == (1, 2, 0, 1)
    assert (pair.difference.mean, pair.difference.questions, pair.difference.clusters) == (0.5, 4, 3)
    assert (pair.p_value, pair.exact_p_value) == (None, 0.5), "of three videos there is no clustered p"
    assert (pair.difference.low, pair.difference.high, pair.difference.error) == (None, None, None), "nor an interval"
    assert [each.name for each in report.standings] == ["eea", "vca"]
    assert not report.complete


def test_the_order_of_the_records_does_not_matter() -> None:
    items = [item(str(number), f"v{number % 3}", duration_s=60.0 * number) for number in range(12)]
    records = [
        answer(each.item_id, number % 3, name, rounds=number % 4, ledger=Ledger(frames=number, seconds=number / 7))
        for name in ("eea", "vca")
        for number, each in enumerate(items)
    ]
    plan = plan_of(items, ("eea", "vca"))
    assert make_report(plan, items, records) == make_report(plan, items, records[::-1])


def test_a_report_is_the_same_when_read_again(tmp_path: Path) -> None:
    items = [item("a", evidence=((0.0, 5.0),), groups={"kind": ("x", "y")}), item("b", "v2", duration_s=20.0)]
    records = [answer("a", evidence=(seen(0, 9),), search=(Round(0.3, 0.4, seen(9, 12), seen(0, 3)),)), answer("b", 1)]
    report = make_report(
        plan_of(items, ("eea:rounds=4",)), items, [replace(r, contender="eea:rounds=4") for r in records]
    )
    path = tmp_path / "report.json"
    path.write_bytes(as_json(report))
    assert read_report(path) == report


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{}", "benchmark: Field required"),
        ("{", "Invalid JSON: EOF while parsing an object at line 1 column 1"),
        (None, "No such file or directory"),
    ],
)
def test_an_unreadable_report_is_refused_in_one_line(tmp_path: Path, content: str | None, says: str) -> None:
    path = tmp_path / "report.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UsageError) as refused:
        read_report(path)
    assert str(refused.value) == f"cannot read {path}: {says}; `kinodex eval report {tmp_path}` makes it again"


def test_a_simulated_report_says_so() -> None:
    items = [item("a")]
    assert make_report(plan_of(items), items, [answer("a")], simulated=True).simulated
