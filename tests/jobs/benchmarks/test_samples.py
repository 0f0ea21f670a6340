"""Samples from the rows of annotation files: defects are noted, not raised."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.benchmarks import read_benchmark
from kinodex.jobs.eval.samples import BadRow, Target, csv_rows, json_file, json_lines
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


@pytest.mark.parametrize(
    ("text", "items", "says"),
    [
        ('q,a\n1,"x\n2,y\n3,z\n', [], ["line 4: lines 2 to 4 cannot be read"]),
        ('q,a\n1,"x\n2,y\n3,"z"\n4,w\n', [{"q": "4", "a": "w"}], ["line 4: lines 2 to 4 cannot be read"]),
        ('q,a\n1,"x\n' + "y" * 140_000 + "\n2,z\n", [{"q": "2", "a": "z"}], ["line 3: lines 2 to 3 cannot be read"]),
        ('q,a\n1,"two\nlines"\n2,"z" so\n', [{"q": "1", "a": "two\nlines"}, {"q": "2", "a": "z so"}], []),
        ("q,a\n1,two\u2028lines\n", [{"q": "1", "a": "two\u2028lines"}], []),
    ],
)
def test_a_quotation_mark_that_is_not_closed_swallows_no_row_in_silence(
    tmp_path: Path, text: str, items: list[dict[str, str]], says: list[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    rows = list(csv_rows(path))
    assert [raw for _, raw in rows if not isinstance(raw, BadRow)] == items
    told = [f"{where}: {raw}" for where, raw in rows if isinstance(raw, BadRow)]
    assert [line.startswith(start) for line, start in zip(told, says, strict=True)] == [True] * len(says)


@pytest.mark.parametrize(("name", "text"), [("a.csv", "q,a,a\n1,2,3\n"), ("a.json", '{"q": "A", "q": "B"}')])
def test_two_values_of_one_name_are_refused(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(UsageError, match=r"two columns are called 'a'|'q' stands twice in an object"):
        list(csv_rows(path)) if name.endswith("csv") else json_file(path)
    path.write_text(text.replace("B", "A").replace("a,a", "a,b"))
    assert list(csv_rows(path)) if name.endswith("csv") else json_file(path)


def test_a_question_of_more_options_than_letters_loses_none_of_them_in_silence(tmp_path: Path) -> None:
    options = [f"number {at}" for at in range(29)] + ["number 0"]
    found = read(tmp_path, "own", kit.own_row("1"), kit.own_row("2", options=options, answer="number 28"))
    assert [item.item_id for item in found.samples] == ["1"]
    ((where, what),) = problems(found)
    assert where == "line 2" and "got 30 options" in what
