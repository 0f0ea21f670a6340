"""Questions of one's own: what a line becomes, and what is said of lines that are wrong."""

from __future__ import annotations

import json
from pathlib import Path

from kinodex.jobs.eval.benchmarks import read_benchmark
from kinodex.jobs.eval.samples import Target
from tests.support.libraries import benchmark_files as kit
from tests.support.libraries.benchmark_files import problems, read


def test_own_questions(tmp_path: Path) -> None:
    rows = [
        kit.own_row("1", evidence=[[3.5, 8.0], [20, 21]], category="roofs"),
        kit.own_row("2", answer="c", category=["roofs", "hard"]),
        kit.own_row("3", answer=None),
        kit.own_row("4", options=["B", "A"], answer="A"),
    ]
    told, lettered, untold, itself = read(tmp_path, "own", *rows).samples
    assert (told.item_id, told.video, told.groups) == ("1", "film-01.mp4", {"category": ("roofs",)})
    assert told.truth == Target(1, evidence=((3.5, 8.0), (20.0, 21.0)))
    assert (lettered.truth, lettered.groups) == (Target(2), {"category": ("roofs", "hard")})
    assert not untold.truth.known
    assert itself.truth == Target(1), "an option's own words count before the letter of another"


def test_what_is_wrong_with_own_questions_is_said(tmp_path: Path) -> None:
    wrong = [
        kit.own_row("2", answer="a boat"),
        kit.own_row("3", answer="D"),
        kit.own_row("4", evidence=[[8.0, 8.0]]),
        kit.own_row("5", options=[]),
        kit.own_row("6", awnser="a drum"),
        kit.own_row("1"),
        kit.own_row(" "),
        kit.own_row("8", question="Which \ud83d roof?"),
    ]
    found = problems(read(tmp_path, "own", kit.own_row("1"), *wrong))
    assert [where for where, _ in found] == [f"line {number}" for number in range(2, 10)]
    texts = [what for _, what in found]
    assert texts[0] == "answer: got 'a boat'; it is one of the options, or a letter up to C"
    assert texts[2] == "evidence: got 8.0 to 8.0; it is a start from 0 on and a later end in seconds"
    assert "options: " in texts[3]
    assert "awnser: " in texts[4]
    assert "is there already" in texts[5]
    assert "id: " in texts[6]
    assert "half a character" in texts[7]


def test_a_line_ends_where_a_file_ends_it_and_not_at_marks_in_its_text(tmp_path: Path) -> None:
    text = "Which\u2028roof\u0085is\u2029red?"
    file = tmp_path / "questions.jsonl"
    rows = [kit.own_row("1", question=text), kit.own_row("2")]
    file.write_bytes("\r\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode())
    benchmark = read_benchmark("own", file)
    assert [item.item_id for item in benchmark.samples] == ["1", "2"]
    assert (benchmark.samples[0].question.text, benchmark.problems) == (text, ())


def test_own_open_questions_are_judged(tmp_path: Path) -> None:
    benchmark = read(
        tmp_path, "own-open", kit.own_open_row("1"), kit.own_row("2"), kit.own_open_row("3") | {"answer": "\udcff"}
    )
    (item,) = benchmark.samples
    assert (item.question.options, item.truth, benchmark.scoring) == ((), Target(text="A drum."), "judge")
    assert [where for where, _ in problems(benchmark)] == ["line 2", "line 3"]


def test_an_answer_is_the_option_of_its_own_case_and_never_one_of_two(tmp_path: Path) -> None:
    options = ["US", "us", "a drum", "a drum"]
    rows = [kit.own_row(answer, options=options, answer=answer) for answer in ("us", "US", "Us", "a drum", "C")]
    found = read(tmp_path, "own", *rows)
    assert {item.item_id: item.truth.option for item in found.samples} == {"us": 1, "US": 0, "C": 2}
    refused = [what for _, what in problems(found) if what.startswith("answer: ")]
    assert [what.rpartition(", ")[2] for what in refused] == [
        "which are the words of 2 options; give a letter",
        "which are the words of 2 options; give a letter",
    ]
