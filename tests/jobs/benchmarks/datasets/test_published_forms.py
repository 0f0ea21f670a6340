"""Every benchmark as it is published: what a row becomes, and what is said of rows and files that are wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from jobs.benchmarks.registry import BENCHMARKS, UnknownBenchmark, annotation_files, read_benchmark
from jobs.benchmarks.sample import Benchmark, Sample, Target
from jobs.errors import UsageError
from tests.support import benchmark_files as kit


def read(folder: Path, name: str, *rows: dict[str, Any]) -> Benchmark:
    return read_benchmark(name, kit.published(folder, name, *rows))


def only(folder: Path, name: str, **changes: Any) -> Sample:
    (item,) = read(folder, name, kit.PUBLISHED[name][2](**changes)).samples
    return item


def problems(benchmark: Benchmark) -> list[tuple[str, str]]:
    """Without that of the whole file, which made-up files always have: they are short."""
    return [(each.where, each.what) for each in benchmark.problems if each.where != "file"]


def test_every_benchmark_has_a_made_up_file() -> None:
    assert set(kit.PUBLISHED) == set(BENCHMARKS)


@pytest.mark.parametrize("name", kit.PUBLISHED)
def test_a_file_and_the_folder_that_holds_it_are_read_alike(name: str, tmp_path: Path) -> None:
    by_file = read(tmp_path, name)
    assert by_file == read_benchmark(name, tmp_path)
    assert len(by_file.samples) == 1
    assert by_file.name == name
    assert problems(by_file) == []


@pytest.mark.parametrize("name", [name for name, entry in BENCHMARKS.items() if entry.sizes])
def test_a_file_of_another_size_than_published_is_noted(name: str, tmp_path: Path) -> None:
    (problem,) = read(tmp_path, name).problems
    assert problem.where == "file"
    assert "got 1 questions about 1 videos; published: " in problem.what


def test_egoschema(tmp_path: Path) -> None:
    item = only(tmp_path, "egoschema")
    assert (item.item_id, item.video, item.duration_s, item.truth) == ("uid-1", "uid-1", 180.0, Target(3))
    assert item.question.options == tuple(f"C mends {choice}." for choice in kit.CHOICES)


def test_egoschema_as_its_makers_publish_it(tmp_path: Path) -> None:
    rows = [{k: v for k, v in kit.ego_row(uid).items() if k != "truth"} for uid in ("one", "two", "three")]
    kit.write_json(tmp_path / "questions.json", rows)
    kit.write_json(tmp_path / "subset_answers.json", {"two": 4, "three": 5})
    full = read_benchmark("egoschema-full", tmp_path)
    assert {item.item_id: item.truth.option for item in full.samples} == {"one": None, "two": 4}
    assert not full.samples[0].truth.known
    assert problems(full) == [("row 3", "truth: Input should be less than or equal to 4, got '5'")]
    subset = read_benchmark("egoschema", tmp_path)
    assert [item.item_id for item in subset.samples] == ["two"]
    assert [path.name for path in annotation_files("egoschema", tmp_path)] == ["questions.json", "subset_answers.json"]


def test_egoschema_questions_without_their_answers_are_not_the_scored_subset(tmp_path: Path) -> None:
    kit.write_json(tmp_path / "questions.json", [kit.ego_row(truth=None)])
    with pytest.raises(UsageError, match=r"row 1: no truth; give subset_answers.json beside questions.json, or ask"):
        read_benchmark("egoschema", tmp_path)


@pytest.mark.parametrize(
    ("kind", "official", "group"),
    [("CW", "CW", "C"), ("CH", "CH", "C"), ("TP", "TN", "T"), ("TN", "TN", "T"), ("TC", "TC", "T"), ("DO", "DO", "D")],
)
def test_nextqa_counts_previous_with_next(kind: str, official: str, group: str, tmp_path: Path) -> None:
    item = only(tmp_path, "nextqa", type=kind)
    assert item.groups == {"type": (kind,), "official_type": (official,), "C/T/D": (group,)}
    assert (item.item_id, item.video, item.truth) == ("111_0", "111", Target(2))
    assert item.question.options == kit.CHOICES


def test_intentqa(tmp_path: Path) -> None:
    item = only(tmp_path, "intentqa", type="TP")
    assert item.groups == {"type": ("TP",), "official_type": ("TP&TN",)}
    assert (item.item_id, item.video, item.truth) == ("111_0", "111", Target(2))


def test_lvbench(tmp_path: Path) -> None:
    item = only(tmp_path, "lvbench")
    assert item.question.text == "What is on the roof?"
    assert item.question.options == kit.CHOICES[:4]
    assert item.truth == Target(2, evidence=((75.0, 79.0),))
    assert item.groups == {"question_type": ("key information retrieval", "reasoning"), "video_type": ("sport",)}
    assert (item.item_id, item.video, item.duration_s) == ("55", "aBc-1_x", 3690.0)


@pytest.mark.parametrize(
    ("reference", "evidence"),
    [("01:02:03-01:02:10", (3723.0, 3730.0)), ("75:10 - 76:00", (4510.0, 4560.0)), ("00:15-00:15", (15.0, 16.0))],
)
def test_lvbench_times(reference: str, evidence: tuple[float, float], tmp_path: Path) -> None:
    item = only(tmp_path, "lvbench", questions=[kit.lvbench_question(time_reference=reference)])
    assert item.truth.evidence == (evidence,)


@pytest.mark.parametrize("reference", ["", "00:20-00:15", "after 12"])
def test_lvbench_questions_of_no_time_are_kept_without_evidence(reference: str, tmp_path: Path) -> None:
    benchmark = read(tmp_path, "lvbench", kit.lvbench_row(questions=[kit.lvbench_question(time_reference=reference)]))
    assert benchmark.samples[0].truth == Target(2)
    ((where, what),) = problems(benchmark)
    assert where == "line 1, question 1"
    assert "kept without evidence" in what


def test_a_wrong_question_of_lvbench_leaves_the_others_of_its_video(tmp_path: Path) -> None:
    questions = [
        kit.lvbench_question("1", question="What?\n(A) a kite\n(C) a drum"),
        kit.lvbench_question("2", answer="E"),
        kit.lvbench_question("3"),
        kit.lvbench_question("3"),
        kit.lvbench_question("4", question_type=[]),
    ]
    path = kit.published(tmp_path, "lvbench", kit.lvbench_row(questions=questions), {"key": "empty"})
    path.write_text(path.read_text() + "{torn\n")
    benchmark = read_benchmark("lvbench", path)
    assert [item.item_id for item in benchmark.samples] == ["3"]
    found = dict(problems(benchmark))
    assert found.keys() == {*(f"line 1, question {number}" for number in (1, 2, 4, 5)), "line 2", "line 3"}
    assert found["line 1, question 1"].startswith("question: got options AC in its text")
    assert found["line 1, question 2"] == "answer: got E; there are 4 options"
    assert found["line 1, question 4"] == "the id 3 is there already; the first row of it counts"
    assert found["line 1, question 5"].startswith("qa.question_type: ")
    assert found["line 2"].startswith("type: Field required; ")
    assert found["line 3"].startswith("not JSON: ")


def test_video_mme(tmp_path: Path) -> None:
    item = only(tmp_path, "video-mme")
    assert item.question.options == tuple(f"{choice}." for choice in kit.CHOICES[:4])
    assert (item.item_id, item.video, item.truth) == ("001-1", "fFj-1_x", Target(3))
    assert item.groups == {
        "duration": ("long",),
        "domain": ("Knowledge",),
        "sub_category": ("Law",),
        "task_type": ("Counting Problem",),
    }


def test_wrong_rows_of_video_mme(tmp_path: Path) -> None:
    wrong = [
        kit.video_mme_row("1", answer="E"),
        kit.video_mme_row("2", duration="endless"),
        kit.video_mme_row("3", options=["A. x", "C. y"], answer="A"),
        kit.video_mme_row("4", question=None),
    ]
    benchmark = read(tmp_path, "video-mme", *wrong, kit.video_mme_row("5"))
    assert [item.item_id for item in benchmark.samples] == ["5"]
    assert problems(benchmark) == [
        ("row 1", "answer: got E; there are 4 options"),
        ("row 2", "duration: Input should be 'short', 'medium' or 'long', got 'endless'"),
        ("row 3", "options: got 'A. x | C. y'; each begins with its letter, from A. on"),
        ("row 4", "question: Input should be a valid string, got 'None'"),
    ]


def test_mmbench_video(tmp_path: Path) -> None:
    benchmark = read(tmp_path, "mmbench-video")
    (item,) = benchmark.samples
    assert benchmark.scoring == "judge"
    assert (item.item_id, item.video, item.truth) == ("0", "v1_processed", Target(text="A ladder."))
    assert item.question.options == ()
    assert item.groups == {
        "dimension": ("OCR", "Counting", "Natural Relation"),
        "ability": ("FP-S", "RR"),
        "perception/reasoning": ("perception", "reasoning"),
    }


@pytest.mark.parametrize("dimensions", ["OCR", "['Juggling']", "[]", "__import__('os')"])
def test_mmbench_video_rows_of_no_known_ability(dimensions: str, tmp_path: Path) -> None:
    wrong = kit.mmbench_row(1, dimensions=dimensions)
    benchmark = read(tmp_path, "mmbench-video", kit.mmbench_row(0), wrong)
    assert len(benchmark.samples) == 1
    ((where, what),) = problems(benchmark)
    assert where == "line 3"
    assert what.startswith("dimensions: got ")


def test_longvideobench(tmp_path: Path) -> None:
    item = only(tmp_path, "longvideobench", video_path="@sally_xx.mp4")
    assert item.question.text == "After the man waves, what does he hold?"
    assert item.truth == Target(1)
    assert (item.item_id, item.video, item.duration_s) == ("xyz_0", "@sally_xx", 321.5)
    assert item.groups == {
        "duration_group": ("600",),
        "question_category": ("T2E",),
        "level": ("L1",),
        "topic": ("KA",),
    }


def test_longvideobench_in_parquet_has_its_options_in_columns(tmp_path: Path) -> None:
    row = kit.longvideobench_row()
    columns = {f"option{number}": option for number, option in enumerate([*row.pop("candidates"), "N/A"])}
    del row["level"], row["position"]
    path = tmp_path / "validation-00000-of-00001.parquet"
    kit.write_parquet(path, [{**row, **columns}])
    (item,) = read_benchmark("longvideobench", tmp_path).samples
    assert item.question.options == kit.CHOICES[:4]
    assert "level" not in item.groups


def test_longvideobench_test_rows_are_not_scored_here(tmp_path: Path) -> None:
    untold = kit.longvideobench_row("a")
    del untold["correct_choice"]
    rows = [untold, kit.longvideobench_row("b", correct_choice=-1), kit.longvideobench_row("c", correct_choice=4)]
    benchmark = read(tmp_path, "longvideobench", *rows)
    assert [item.truth for item in benchmark.samples] == [Target(), Target()]
    assert problems(benchmark) == [
        ("row 3", "correct_choice: got 4; there are 4 candidates, counted from 0"),
    ]


@pytest.mark.parametrize("name", ["longtvqa", "longtvqa-plus"])
def test_longtvqa_asks_about_the_episode_and_hides_the_clip(name: str, tmp_path: Path) -> None:
    benchmark = read(tmp_path, name)
    (item,) = benchmark.samples
    assert benchmark.episodes
    assert (item.item_id, item.video, item.groups) == ("7", "s05e06", {"season": ("s05",)})
    assert item.truth == Target(4, evidence=((12.3, 20.11),), clip="s05e06_seg02_clip_15")
    shown = repr((item.item_id, item.video, item.question, item.groups))
    assert not any(secret in shown for secret in ("clip_15", "12.3", "label", "img_id"))


@pytest.mark.parametrize(("ts", "evidence"), [("12.3-20.11", ((12.3, 20.11),)), ([0, 5.4], ((0.0, 5.4),))])
def test_longtvqa_times(ts: object, evidence: object, tmp_path: Path) -> None:
    assert only(tmp_path, "longtvqa", ts=ts).truth.evidence == evidence


@pytest.mark.parametrize("ts", ["nan-nan", [5.0, 5.0], [1], None, [float("nan"), 3.0]])
def test_longtvqa_questions_of_no_time_are_kept_without_evidence(ts: object, tmp_path: Path) -> None:
    benchmark = read(tmp_path, "longtvqa", kit.longtvqa_row(ts=ts))
    assert benchmark.samples[0].truth.evidence == ()
    assert "kept without evidence" in problems(benchmark)[0][1]


def test_longtvqa_one_object_a_line_and_a_clip_of_another_episode(tmp_path: Path) -> None:
    path = tmp_path / "LongTVQA_val.jsonl"
    other = kit.longtvqa_row(8, episode_name="friends_s01e02", answer="a5")
    kit.write_lines(path, [kit.longtvqa_row(7, episode_name="s09e01"), other])
    benchmark = read_benchmark("longtvqa", path)
    assert [(item.item_id, item.video) for item in benchmark.samples] == [("7", "s09e01")]
    assert [where for where, _ in problems(benchmark)] == ["line 1", "line 2"]
    assert "not of episode s09e01; the question is kept" in problems(benchmark)[0][1]


def test_sketch(tmp_path: Path) -> None:
    rows = [
        kit.sketch_row("1"),
        kit.sketch_row("2", answer=3),
        kit.sketch_row("3", evidence=[8.0, 3.5]),
        kit.sketch_row("4", options=["a cat", " "]),
    ]
    benchmark = read(tmp_path, "sketch", *rows)
    (item,) = benchmark.samples
    assert (item.item_id, item.video, item.groups) == ("1", "film-01.mp4", {"kind": ("first",)})
    assert item.truth == Target(1, evidence=((3.5, 8.0),))
    assert problems(benchmark) == [
        ("line 2", "answer: got 3; there are 3 options, counted from 0"),
        ("line 3", "evidence: got 8.0 to 3.5; it is a start and a later end in seconds"),
        ("line 4", "an option is empty; every option needs some text"),
    ]


def test_rows_of_csv_with_fields_too_many_or_too_few_are_left_out(tmp_path: Path) -> None:
    path = kit.published(tmp_path, "nextqa", kit.nextqa_row(qid="0"), kit.nextqa_row(qid="1"), kit.nextqa_row(qid="2"))
    lines = path.read_text().splitlines()
    lines[2], lines[3] = lines[2] + ",more", lines[3].rsplit(",", 1)[0]
    path.write_text("\ufeff" + "\n".join(lines), encoding="utf-8")
    benchmark = read_benchmark("nextqa", path)
    assert [item.item_id for item in benchmark.samples] == ["111_0"]
    assert problems(benchmark) == [("line 3", "got 14 fields; there are 13"), ("line 4", "got 12 fields; there are 13")]


def test_wrong_fields_are_named_with_what_was_there(tmp_path: Path) -> None:
    wrong = kit.nextqa_row(qid="1", answer=5, type="XX")
    ((where, what),) = problems(read(tmp_path, "nextqa", kit.nextqa_row(), wrong))
    assert where == "line 3"
    assert "answer: Input should be less than or equal to 4, got '5'" in what
    assert "type: Input should be 'CW', " in what


def test_what_is_no_object_is_said_to_be_none(tmp_path: Path) -> None:
    path = tmp_path / "video_info.meta.jsonl"
    kit.write_lines(path, [kit.lvbench_row(), kit.lvbench_row(qa=[7])])
    path.write_text(path.read_text() + "7\n")
    assert problems(read_benchmark("lvbench", path)) == [
        ("line 2, question 1", "qa: Input should be an object with fields, got '7'"),
        ("line 3", "row: Input should be an object with fields, got '7'"),
    ]


def test_options_of_one_text_are_told_apart_and_the_question_stays(tmp_path: Path) -> None:
    benchmark = read(tmp_path, "nextqa", kit.nextqa_row(a1="Scarf", a4="scarf "))
    (item,) = benchmark.samples
    assert item.question.options == ("a kite", "Scarf (option B)", "a ladder", "a lamp", "scarf (option E)")
    assert problems(benchmark)[0][1].startswith("options B and E are of one text; the question is kept")


def test_an_unknown_benchmark_is_answered_by_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(UnknownBenchmark, match="got benchmark NextQA-val; did you mean nextqa"):
        read_benchmark("NextQA-val", tmp_path)


@pytest.mark.parametrize("name", kit.PUBLISHED)
def test_a_folder_without_the_file_says_where_it_is_had(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="neither is nor holds an annotation file") as refused:
        read_benchmark(name, tmp_path)
    assert BENCHMARKS[name].had_from in str(refused.value)


@pytest.mark.parametrize("name", kit.PUBLISHED)
@pytest.mark.parametrize("content", [b"", b"[]", b"[1]", b"{}", b'{"a": 1}', b"a,b\n1,2\n", b"\xff\xfe\x00", b"3"])
def test_a_file_of_something_else_is_refused(name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "some.file"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"some\.file"):
        read_benchmark(name, path)


@pytest.mark.parametrize("name", ["nextqa", "lvbench", "video-mme", "longtvqa-plus", "sketch"])
def test_a_file_of_another_benchmark_is_refused(name: str, tmp_path: Path) -> None:
    others = {"nextqa": "intentqa", "lvbench": "sketch", "video-mme": "egoschema", "longtvqa-plus": "longvideobench"}
    path = kit.published(tmp_path, others.get(name, "lvbench"))
    with pytest.raises(UsageError):
        read_benchmark(name, path)


def test_the_real_egoschema_subset(benchmarks: Path) -> None:
    read = read_benchmark("egoschema", benchmarks / "egoschema")
    assert len(read.samples) == 500
    assert Counter(item.truth.option for item in read.samples) == {0: 101, 1: 108, 2: 91, 3: 83, 4: 117}
    assert [each.what[:31] for each in read.problems] == ["options C and E are of one text"]


def test_the_real_nextqa_validation_set(benchmarks: Path) -> None:
    read = read_benchmark("nextqa", benchmarks / "nextqa")
    types = Counter(item.groups["type"][0] for item in read.samples)
    assert types == {"CW": 1924, "CH": 683, "TN": 895, "TC": 663, "TP": 54, "DL": 295, "DC": 177, "DO": 305}
    assert len({item.video for item in read.samples}) == 570
    assert [each.where for each in read.problems] == ["line 626", "line 3572", "line 3846"]


def test_real_rows_of_longtvqa_plus(benchmarks: Path) -> None:
    (path,) = (benchmarks / "longtvqa").glob("*.json")
    read = read_benchmark("longtvqa-plus", path)
    assert len(read.samples) == 150
    assert all(len(item.truth.evidence) == 1 and item.truth.clip for item in read.samples)
    assert [each.where for each in read.problems] == ["file", "row 47"]
