"""Benchmarks of questions: made-up files of every published form, what is read of them and what is noted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.benchmarks import (
    BENCHMARKS,
    UnknownBenchmark,
    annotation_files,
    read_benchmark,
    read_moment_benchmark,
)
from kinodex.jobs.eval.items import Benchmark, Item, Target
from tests.support.command import Kinodex
from tests.support.libraries import benchmark_files as kit
from tests.support.libraries.benchmark_files import problems, read

Row = Mapping[str, object]
FOUR = kit.CHOICES[:4]

WHOLE = """
egoschema | uid-1 of uid-1, 180 s: What is C's aim? [C mends a kite. / C mends a drum. / C mends a ladder. /
  C mends a lamp. / C mends a boat.] -> 3
egoschema-full | uid-1 of uid-1, 180 s: What is C's aim? [C mends a kite. / C mends a drum. / C mends a ladder. /
  C mends a lamp. / C mends a boat.] -> 3
nextqa | 111_0 of 111: what does the girl hold [a kite / a drum / a ladder / a lamp / a boat] -> 2; type: CW;
  official_type: CW; C/T/D: C
intentqa | 111_0 of 111: what does the girl hold [a kite / a drum / a ladder / a lamp / a boat] -> 2; type: CW;
  official_type: CW
lvbench | 55 of aBc-1_x, 3690 s: What is on the roof? [a kite / a drum / a ladder / a lamp] -> 2 at 75-79;
  question_type: key information retrieval, reasoning; video_type: sport
video-mme | 001-1 of fFj-1_x: What is held? [a kite. / a drum. / a ladder. / a lamp.] -> 3; duration: long;
  domain: Knowledge; sub_category: Law; task_type: Counting Problem
video-mme-v2 | 001-1 of 001: What is held? [a kite. / a drum. / a ladder. / a lamp. / a boat.] -> 3; level: 2;
  group_type: logic; group_structure: [1, [2, 3], 4]; second_head: Order; third_head: Order of events
mlvu | 1_plotQA-1 of movie101_66.mp4, 246 s: What is held? [a kite / a drum / a ladder / a lamp] -> 3; task: plotQA;
  kind: single detail
mlvu-open | 8_sub_scene-1 of subPlot_new_all_69.mp4, 541.5 s: What does the man do at the door? [] ->
  He knocks and leaves.; task: subPlot; kind: single detail
minerva | a:1 of fFj-1_x: What is held after the second goal? [a kite / a drum / a ladder / a lamp / a boat] -> 3;
  skill: Temporal Reasoning, Counting; split: Sports; category: Football
cg-bench | 1 of 9kGB4ITqFjI, 1853 s: What is held? [a kite / a drum / a ladder / a lamp / a boat] -> 2
  at 8-18, 120.5-131; domain: Life Record; sub_category: Object Perception
mmbench-video | 0 of v1_processed: What is on the roof? [] -> A ladder.; dimension: OCR, Counting, Natural Relation;
  ability: FP-S, RR; perception/reasoning: perception, reasoning
longvideobench | xyz_0 of xyz, 321.5 s: After the man waves, what does he hold? [a kite / a drum / a ladder / a lamp]
  -> 1; duration_group: 600; question_category: T2E; level: L1; topic: KA
longtvqa | 7 of s05e06: What does Amy hold ? [a kite / a drum / a ladder / a lamp / a boat] -> 4 at 12.3-20.11
  in s05e06_seg02_clip_15; season: s05
longtvqa-plus | 7 of s05e06: What does Amy hold ? [a kite / a drum / a ladder / a lamp / a boat] -> 4 at 12.3-20.11
  in s05e06_seg02_clip_15; season: s05
own | 1 of film-01.mp4: What is on the roof? [a kite / a drum / a ladder] -> 1
own-open | 1 of film-01.mp4: What is on the roof? [] -> A drum.
"""
"""The made-up row of every benchmark as it is read; see `shown`."""


def shown(item: Item) -> str:
    """All of an item in one line: id, video, length, question, options, what is true and when, and its groups."""
    truth = item.truth
    parts = [f"{item.item_id} of {item.video}" + (f", {item.duration_s:g} s" if item.duration_s else "")]
    parts[0] += f": {item.question.text} [{' / '.join(item.question.options)}]"
    parts[0] += f" -> {truth.text if truth.option is None else truth.option}"
    parts[0] += " at " + ", ".join(f"{start:g}-{end:g}" for start, end in truth.evidence) if truth.evidence else ""
    parts[0] += f" in {truth.clip}" if truth.clip else ""
    return "; ".join([*parts, *(f"{name}: {', '.join(values)}" for name, values in item.groups.items())])


GONE = object()
"""The value of a field that a row lacks."""
IDS = {
    **dict.fromkeys(("nextqa", "cg-bench", "longtvqa"), "qid"),
    **dict.fromkeys(("longvideobench", "own", "own-open"), "id"),
    **dict.fromkeys(("video-mme", "video-mme-v2"), "question_id"),
    "minerva": "key",
    "mmbench-video": "index",
}
"""The field of a row that is the id of its question."""
RANGES = [[3.5, 8.0], [20.0, 22.0]]
SAME = "options A and B and C and D have the same text"
TWICE = {"options": ["US", "us", "a drum", "a drum"]}

# A benchmark, the changes of its made-up row, a part of the item that is read (None: none), and of what is noted.
CASES: tuple[tuple[str, Row, str | None, str], ...] = (
    *(
        ("nextqa", {"type": kind}, f"type: {kind}; official_type: {official}; C/T/D: {kind[0]}", "")
        for kind, official in (("CW", "CW"), ("CH", "CH"), ("TP", "TN"), ("TN", "TN"), ("TC", "TC"), ("DO", "DO"))
    ),
    ("nextqa", {"answer": 5}, None, "answer: Input should be less than or equal to 4, got '5'"),
    ("nextqa", {"type": "XX"}, None, "line 3: type: Input should be 'CW', "),
    ("nextqa", {"a1": "Scarf", "a4": "scarf "}, "Scarf (option B) / a ladder / a lamp / scarf (option E)", "B and E"),
    ("intentqa", {"type": "TP"}, "-> 2; type: TP; official_type: TP&TN", ""),
    ("video-mme", {"answer": "E"}, None, "row 2: answer: got E; there are 4 options"),
    (
        "video-mme",
        {"duration": "endless"},
        None,
        "Input should be 'short', 'medium' or 'long', got 'endless'",
    ),
    ("video-mme", {"options": ["A. x", "C. y"], "answer": "A"}, None, "options: got 'A. x | C. y'; each begins with"),
    ("video-mme", {"question": None}, None, "question: Input should be a valid string, got 'None'"),
    ("video-mme-v2", {"options": "A. a\nwith b\nB) c", "answer": "B"}, "[a\nwith b / c]", ""),
    ("video-mme-v2", {"options": ["A. a kite", "B. a drum"], "answer": "B"}, "[a kite / a drum]", ""),
    ("video-mme-v2", {"options": ["a kite", "a drum"], "answer": "B"}, "[a kite / a drum]", ""),
    ("video-mme-v2", {"answer": "G"}, None, "answer: got G; there are 5 options"),
    ("video-mme-v2", {"group_type": "fun"}, None, "group_type"),
    ("video-mme-v2", {"options": "a kite\nB. a drum"}, None, "begins with its letter, from A. on"),
    ("video-mme-v2", {"options": "A. x\nC. y", "answer": "A"}, None, "begins with its letter, from A. on"),
    ("video-mme-v2", {"level": None}, "-> 3; group_type: logic; ", ""),
    ("video-mme-v2", {"group_structure": "[4,1]"}, "group_structure: [4,1]", "its group is scored as [1,2,3,4]"),
    ("mlvu", {"video": "1_plotQA/movie101_66.mp4"}, "1_plotQA-1 of movie101_66.mp4, 246 s", ""),
    ("mlvu", {"answer": "a moon"}, None, "answer: got 'a moon', which is none of the 4 candidates"),
    ("mlvu", {"answer": " a drum "}, "-> 1", ""),
    ("mlvu", {"candidates": ["a lamp", "a drum", "a lamp"]}, "-> 0", "several candidates; the first of them counts"),
    ("minerva", {"question_type": GONE, "question type": "Counting"}, "skill: Counting", ""),
    ("minerva", {"video_id": "https://www.youtube.com/watch?v=fFj-1_x&t=3"}, "x of fFj-1_x: ", ""),
    ("minerva", {"video_id": "https://youtu.be/fFj-1_x"}, "x of fFj-1_x: ", ""),
    ("minerva", {"answer_id": 5}, None, "answer_id: "),
    ("minerva", {"answer_choice_4": " "}, None, "without words"),
    ("minerva", {"answer": "another lamp"}, "x of", "not the text of choice 3"),
    ("cg-bench", {"right_answer": "F"}, None, "right_answer: got F; there are 5 choices"),
    ("cg-bench", {"clue_intervals": [[8, 8], [9, 11]]}, "-> 2 at 9-11;", "kept without it"),
    ("cg-bench", {"clue_intervals": [["x", 8]]}, None, "clue_intervals"),
    *(
        ("mmbench-video", {"dimensions": no}, None, "line 3: dimensions: got ")
        for no in ("OCR", "['Juggling']", "[]", "__import__('os')")
    ),
    ("longvideobench", {"video_path": "@sally_xx.mp4", "correct_choice": GONE}, "x of @sally_xx, 321.5 s", ""),
    ("longvideobench", {"correct_choice": -1}, "-> None", ""),
    ("longvideobench", {"correct_choice": 4}, None, "correct_choice: got 4; there are 4 candidates, counted from 0"),
    ("longtvqa", {"ts": "12.3-20.11"}, "at 12.3-20.11 in", ""),
    ("longtvqa", {"ts": [0, 5.4]}, "at 0-5.4 in", ""),
    *(
        ("longtvqa", {"ts": ts}, "-> 4 in ", "row 1: ts: got")
        for ts in ("nan-nan", [5.0, 5.0], [1], None, [float("nan"), 3.0])
    ),
    ("longtvqa", {"episode_name": "s09e01"}, "99 of s09e01", "not of episode s09e01; the question is kept"),
    ("longtvqa", {"answer": "a5"}, None, "answer: "),
    ("own", {"evidence": RANGES, "category": "roofs"}, "-> 1 at 3.5-8, 20-22; category: roofs", ""),
    ("own", {"answer": "c", "category": ["roofs", "hard"]}, "-> 2; category: roofs, hard", ""),
    ("own", {"answer": None}, "-> None", ""),
    ("own", {"options": ["B", "A"], "answer": "A"}, "-> 1", ""),
    ("own", {**TWICE, "answer": "us"}, "-> 1", SAME),
    ("own", {**TWICE, "answer": "US"}, "-> 0", SAME),
    ("own", {**TWICE, "answer": "C"}, "-> 2", SAME),
    ("own", {**TWICE, "answer": "Us"}, None, "answer: got 'Us', which are the words of 2 options; give a letter"),
    ("own", {**TWICE, "answer": "a drum"}, None, "got 'a drum', which are the words of 2 options; give a letter"),
    ("own", {"answer": "a boat"}, None, "answer: got 'a boat'; it is one of the options, or a letter up to C"),
    ("own", {"answer": "D"}, None, "answer: got 'D'; "),
    ("own", {"evidence": [[8.0, 8.0]]}, None, "evidence: got 8.0 to 8.0; it is a start from 0 on and a later end"),
    ("own", {"options": []}, None, "options: "),
    ("own", {"awnser": "a drum"}, None, "line 2: awnser: "),
    ("own", {"id": "1"}, None, "is there already"),
    ("own", {"id": " "}, None, "id: "),
    ("own", {"question": "Which \ud83d roof?"}, None, "half a character"),
    ("own", {"options": list(map(str, [*range(29), 0])), "answer": "28"}, None, "got 30 options"),
    ("own-open", {"options": ["a"]}, None, "options: "),
    ("own-open", {"answer": "\udcff"}, None, "answer: "),
    ("own", {"options": ["a cat", " "], "answer": "a cat"}, None, "an option is empty; every option needs some text"),
)

# A question in a row of LVBench, and the same of it.
LVBENCH: tuple[tuple[Row, str | None, str], ...] = (
    ({"time_reference": "01:02:03-01:02:10"}, "at 3723-3730", ""),
    ({"time_reference": "75:10 - 76:00"}, "at 4510-4560", ""),
    ({"time_reference": "00:15-00:15"}, "at 15-16", ""),
    *(
        ({"time_reference": at}, "-> 2; ", "line 1, question 1: time_reference: ")
        for at in ("", "00:20-00:15", "after 12", f"00:15-{'9' * 5000}:00")
    ),
    ({"question": "What?\n(A) a kite\n(C) a drum"}, None, "question 2: question: got options AC in its text"),
    ({"answer": "E"}, None, "answer: got E; there are 4 options"),
    ({"uid": "55"}, None, "the id 55 is there already; the first row of it counts"),
    ({"question_type": []}, None, "qa.question_type: "),
)


def without(row: Row, *names: str) -> dict[str, object]:
    return {name: value for name, value in row.items() if name not in names}


def test_the_row_of_every_benchmark_is_read_from_its_file_and_from_the_folder(tmp_path: Path) -> None:
    expected = dict(line.split(" | ", 1) for line in WHOLE.strip().replace("\n  ", " ").splitlines())
    assert set(expected) == set(kit.PUBLISHED) == set(BENCHMARKS)
    judged, episodes = set(), set()
    for name, info in BENCHMARKS.items():
        (tmp_path / name).mkdir()
        benchmark = read(tmp_path / name, name)
        assert benchmark == read_benchmark(name, tmp_path / name)
        assert (benchmark.name, [shown(each) for each in benchmark.items]) == (name, [expected[name]])
        assert all("got 1 questions about 1 videos; published: " in each.what for each in benchmark.problems), name
        assert len(benchmark.problems) == bool(info.sizes), name
        judged |= {name} if benchmark.scoring == "judge" else set()
        episodes |= {name} if benchmark.episodes else set()
    assert judged == {"mmbench-video", "mlvu-open", "own-open"}
    assert episodes == {"longtvqa", "longtvqa-plus"}


def test_a_row_becomes_an_item_or_what_is_wrong_with_it_is_noted(tmp_path: Path) -> None:
    def check(case: object, benchmark: Benchmark[Item], item: str | None, noted: str) -> None:
        found = [f"{where}: {what}" for where, what in problems(benchmark)]
        read_as = shown(benchmark.items[-1])
        assert len(benchmark.items) == 1 and (item is None or item in read_as), f"{case}: {read_as} {found}"
        assert len(found) == bool(noted) or SAME in noted or "several" in noted, f"{case}: {found}"
        assert any(noted in each for each in found or [""]), f"{case}: {found}"

    for name, changes, item, noted in CASES:
        row = kit.PUBLISHED[name][2]
        of_its_own = (
            {IDS[name]: 99 if name in ("longtvqa", "cg-bench", "mmbench-video") else "x"} if name in IDS else {}
        )
        changed = {field: value for field, value in {**row(), **of_its_own, **changes}.items() if value is not GONE}
        rows = [changed] if item else [row(), changed]  # a file in which nothing can be read is refused
        check((name, changes), read(tmp_path, name, *rows), item, noted)
    for changes, item, noted in LVBENCH:
        question: Row = {**kit.lvbench_question("56"), **changes}
        asked = [question] if item else [kit.lvbench_question(), question]
        check(changes, read(tmp_path, "lvbench", kit.lvbench_row(questions=asked)), item, noted)
    torn = read(tmp_path, "lvbench", kit.lvbench_row(), {"key": "empty"}, kit.lvbench_row(qa=[7]))
    assert [(where, what[:26]) for where, what in problems(torn)] == [
        ("line 2", "type: Field required; vide"),
        ("line 3, question 1", "qa: Input should be an obj"),
    ]


# Forms that are several files, or another kind of file.


def test_egoschema_as_its_makers_publish_it(tmp_path: Path) -> None:
    kit.write_json(tmp_path / "questions.json", [without(kit.ego_row(uid), "truth") for uid in ("one", "two", "three")])
    kit.write_json(tmp_path / "subset_answers.json", {"two": 4, "three": 5})
    full = read_benchmark("egoschema-full", tmp_path)
    assert {item.item_id: item.truth.option for item in full.items} == {"one": None, "two": 4}
    assert not full.items[0].truth.known
    assert problems(full) == [("row 3", "truth: Input should be less than or equal to 4, got '5'")]
    assert [item.item_id for item in read_benchmark("egoschema", tmp_path).items] == ["two"]
    assert [path.name for path in annotation_files("egoschema", tmp_path)] == ["questions.json", "subset_answers.json"]

    rows = [kit.ego_row("a", truth=None), kit.ego_row("b", truth=None), kit.ego_row() | {"q_uid": ["c"]}]
    kit.write_json(tmp_path / "questions.json", rows)
    kit.write_json(tmp_path / "subset_answers.json", {"a": 2})
    filled = read_benchmark("egoschema", tmp_path / "questions.json")
    assert [(item.item_id, item.truth) for item in filled.items] == [("a", Target(2))]
    assert [where for where, _ in problems(filled)] == ["row 3"]

    (tmp_path / "subset_answers.json").unlink()
    kit.write_json(tmp_path / "questions.json", [kit.ego_row(truth=None)])
    with pytest.raises(UsageError, match=r"row 1: no truth; give subset_answers.json beside questions.json, or ask"):
        read_benchmark("egoschema", tmp_path)


def test_longvideobench_in_parquet_has_its_options_in_columns(tmp_path: Path) -> None:
    """There "N/A" before an option is an option, for the answer counts it."""
    for columns, answer, options in (
        ([*FOUR, "N/A"], 1, FOUR),
        (["a kite", "N/A", "a drum", "N/A", None], 2, ("a kite", "N/A", "a drum")),
    ):
        row = without(kit.longvideobench_row(correct_choice=answer), "candidates", "level", "position")
        options_by_name = {f"option{at}": option for at, option in enumerate(columns)}
        kit.write_parquet(tmp_path / "validation-00000-of-00001.parquet", [{**row, **options_by_name}])
        (item,) = read_benchmark("longvideobench", tmp_path).items
        assert (item.question.options, item.truth, "level" in item.groups) == (options, Target(answer), False)


def test_a_folder_of_mlvu_has_all_tasks_and_a_file_of_one_task_has_that(tmp_path: Path) -> None:
    kit.write_json(tmp_path / "1_plotQA.json", [kit.mlvu_row(), kit.mlvu_row("b.mp4")])
    counted = kit.mlvu_row("count_1.mp4", question_type="count", candidates=["1", "2"], answer="2")
    kit.write_json(tmp_path / "4_count.json", [counted, {"video": "no question"}])
    benchmark = read_benchmark("mlvu", tmp_path)
    assert [item.item_id for item in benchmark.items] == ["1_plotQA-1", "1_plotQA-2", "4_count-1"]
    assert benchmark.items[2].groups == {"task": ("count",), "kind": ("multi-detail",)}
    assert [where for where, _ in problems(benchmark)] == ["4_count.json, row 2"]
    assert [item.item_id for item in read_benchmark("mlvu", tmp_path / "4_count.json").items] == ["4_count-1"]

    kit.write_json(tmp_path / "9_summary.json", [kit.mlvu_open_row("s.mp4", question_type="summary")])
    free = read(tmp_path, "mlvu-open")
    assert [item.item_id for item in free.items] == ["8_sub_scene-1", "9_summary-1"]
    assert (free.items[0].truth, free.items[1].groups["kind"]) == (
        Target(text="He knocks and leaves."),
        ("holistic",),
    )

    for task in tmp_path.glob("*.json"):
        task.unlink()
    kit.write_json(tmp_path / "test_question.json", [without(kit.mlvu_row(question_id="TM_7"), "answer")])
    (item,) = read_benchmark("mlvu", tmp_path).items
    assert (item.item_id, item.truth.known) == ("TM_7", False)


# The real files that lie on this machine.


def test_the_real_egoschema_subset(benchmarks: Path) -> None:
    found = read_benchmark("egoschema", benchmarks / "egoschema")
    assert len(found.items) == 500
    assert Counter(item.truth.option for item in found.items) == {0: 101, 1: 108, 2: 91, 3: 83, 4: 117}
    assert [each.what[:34] for each in found.problems] == ["options C and E have the same text"]


def test_the_real_nextqa_validation_set(benchmarks: Path) -> None:
    found = read_benchmark("nextqa", benchmarks / "nextqa")
    types = Counter(item.groups["type"][0] for item in found.items)
    assert types == {"CW": 1924, "CH": 683, "TN": 895, "TC": 663, "TP": 54, "DL": 295, "DC": 177, "DO": 305}
    assert len({item.video for item in found.items}) == 570
    assert [each.where for each in found.problems] == ["line 626", "line 3572", "line 3846"]


def test_real_rows_of_longtvqa_plus(benchmarks: Path) -> None:
    (path,) = (benchmarks / "longtvqa").glob("*.json")
    found = read_benchmark("longtvqa-plus", path)
    assert len(found.items) == 150
    assert all(len(item.truth.evidence) == 1 and item.truth.clip for item in found.items)
    assert [each.where for each in found.problems] == ["file", "row 47"]


# Any benchmark by name, and files that are not its own.


def test_a_benchmark_or_file_that_is_not_there_is_refused_with_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(UnknownBenchmark, match="got benchmark NextQA-val; did you mean nextqa"):
        read_benchmark("NextQA-val", tmp_path)
    for name, info in BENCHMARKS.items():
        with pytest.raises(UsageError, match="neither is nor holds an annotation file") as refused:
            read_benchmark(name, tmp_path)
        assert info.had_from in str(refused.value), name


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "some.file"
    for name in BENCHMARKS:
        for content in (b"", b"[]", b"[1]", b"{}", b'{"a": 1}', b"a,b\n1,2\n", b"\xff\xfe\x00", b"3"):
            path.write_bytes(content)
            with pytest.raises(UsageError, match=r"some\.file"):
                read_benchmark(name, path)
    for name, other in (
        ("nextqa", "intentqa"),
        ("lvbench", "own"),
        ("video-mme", "egoschema"),
        ("longtvqa-plus", "longvideobench"),
        ("own", "lvbench"),
    ):
        with pytest.raises(UsageError):
            read_benchmark(name, kit.published(tmp_path, other))


HOSTILE: tuple[object, ...] = (
    *(None, True, -1, 10**4000, 1e308, float("nan"), "", "None", "N/A", "9" * 5000, f"{'9' * 5000}:00-01:00"),
    *("[['OCR']]", "{[]: 1}", "(" * 5000, "\ud800", [], ["x"], [["x"]], [None] * 30, {"a": 1}),
)
"""Values that a field of a row may have by somebody's mistake."""


@pytest.mark.slow
@pytest.mark.parametrize("name", kit.PUBLISHED)
def test_whatever_stands_in_a_field_is_a_defect_of_its_row_and_no_traceback(name: str, tmp_path: Path) -> None:
    file, write, row = kit.PUBLISHED[name]
    for field in row():
        for value in HOSTILE:
            try:
                write(tmp_path / file, [row(), {**row(), field: value}])
            except (ValueError, TypeError, OverflowError):  # the form itself cannot hold it
                continue
            with suppress(UsageError):
                read_benchmark(name, tmp_path)


OWN = """
from kinodex.agent.protocol.question import Question
from kinodex.jobs.eval.benchmarks import BenchmarkInfo
from kinodex.jobs.eval.items import BadRow, Item, Target
from kinodex.jobs.eval.row_files import csv_rows
from kinodex.jobs.eval.rows import Row

class Line(Row):
    id: str
    film: str
    asked: str
    is_true: str

    def item(self, note):
        if self.is_true not in ("yes", "no"):
            raise BadRow(f"is_true: got {self.is_true}; it is yes or no")
        return Item(self.id, self.film, Question(self.asked, ("yes", "no")), Target(int(self.is_true == "no")))

MINE = BenchmarkInfo("Mine", csv_rows, Line, ("mine.csv",))
OTHER = BenchmarkInfo("Other", csv_rows, Line, ("mine.csv",), scoring="judge")
"""


def test_a_benchmark_of_ones_own_is_a_file_as_an_agent_is(tmp_path: Path, kinodex: Kinodex) -> None:
    own, table = tmp_path / "mine.py", tmp_path / "mine.csv"
    own.write_text(OWN)
    table.write_text("id,film,asked,is_true\n1,harbour,Is it red?,yes\n2,harbour,Is it blue?,perhaps\n")
    found = read_benchmark(f"{own}:MINE", tmp_path)
    assert [shown(each) for each in found.items] == ["1 of harbour: Is it red? [yes / no] -> 0"]
    assert problems(found) == [("line 3", "is_true: got perhaps; it is yes or no")]
    assert annotation_files(f"{own}:MINE", tmp_path) == (table, own), "the plan of a run keeps a digest of both"
    checked = json.loads(kinodex("eval", "check", f"{own}:MINE", table, "--json").out)
    assert (checked["title"], checked["questions"], checked["videos"]) == ("Mine", 1, 1)
    for spec, says in (
        (str(own), "name one as"),
        (f"{own}:YOURS", "has MINE, OTHER"),
        (f"{tmp_path}/no.py", "there is no file"),
    ):
        with pytest.raises(UnknownBenchmark, match=says):
            read_benchmark(spec, tmp_path)
    with pytest.raises(UsageError, match="Mine is of another kind: a row of it is no search but a Item"):
        read_moment_benchmark(f"{own}:MINE", table)


def test_what_only_a_judge_may_see_is_no_part_of_a_question(tmp_path: Path) -> None:
    (item,) = read(tmp_path, "longtvqa").items
    asked = repr((item.item_id, item.video, item.question, item.groups))
    assert not any(secret in asked for secret in ("clip_15", "12.3", "label", "img_id"))
    assert "PLANTED" not in repr(read(tmp_path, "minerva", kit.minerva_row(reasoning="At 01:05 the PLANTED lamp.")))
