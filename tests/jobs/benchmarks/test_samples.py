"""Samples from the rows of annotation files: defects are noted, not raised."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from jobs.benchmarks.registry import read_benchmark
from jobs.benchmarks.samples import BadRow, Target, json_file, json_lines
from jobs.errors import UsageError
from tests.support.libraries import benchmark_files as kit
from tests.support.libraries.benchmark_files import problems, read


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


def test_options_of_the_same_text_get_their_letters_and_the_question_stays(tmp_path: Path) -> None:
    benchmark = read(tmp_path, "nextqa", kit.nextqa_row(a1="Scarf", a4="scarf "))
    (item,) = benchmark.samples
    assert item.question.options == ("a kite", "Scarf (option B)", "a ladder", "a lamp", "scarf (option E)")
    assert problems(benchmark)[0][1].startswith("options B and E have the same text; the question is kept")


def test_a_target_is_known_by_its_option_or_its_text() -> None:
    assert Target(option=0).known
    assert Target(text="").known
    assert not Target(evidence=((1.0, 2.0),), clip="a").known


def test_compressed_files_and_endless_brackets_are_refused_in_words(tmp_path: Path) -> None:
    packed = tmp_path / "questions.json.gz"
    packed.write_bytes(gzip.compress(b"[]"))
    with pytest.raises(UsageError, match="is compressed; unpack it first"):
        json_file(packed)
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 100_000)
    with pytest.raises(UsageError, match="is not JSON"):
        json_file(deep)
    ((where, bad),) = json_lines(deep)
    assert (where, type(bad)) == ("line 1", BadRow)
