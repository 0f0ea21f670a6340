"""Ranges from files: CSV and JSON lines, times as seconds and clocks, and every mistake with its line."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from kinodex.index.library import Library
from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.moments import ROWS, Moment, read_ranges
from kinodex.jobs.export.texts import csv_text, jsonl_text


@pytest.fixture(scope="module")
def opened(library: Path) -> Library:
    return Library.open(str(library))


def test_columns_have_several_names(opened: Library, tmp_path: Path) -> None:
    path = tmp_path / "ranges.csv"
    path.write_text('\ufeffTitle,From,To,Text\nfilm-01,1.5,0:03.25,"a, b"\nfilm-02.mp4,0:00:04,5,\n', encoding="utf-8")
    first, second = read_ranges(path, opened)
    assert (first.video.title, first.start_s, first.end_s, first.label) == ("film-01", 1.5, 3.25, "a, b")
    assert (second.video.title, second.start_s, second.end_s, second.label) == ("film-02", 4.0, 5.0, "")


def test_our_own_tables_are_read_again(opened: Library, tmp_path: Path) -> None:
    moments = list(ROWS["shots"](opened, opened.video("film-02")))
    for suffix, text in ((".csv", csv_text(moments)), (".jsonl", jsonl_text(moments))):
        path = tmp_path / f"ranges{suffix}"
        path.write_text(text, encoding="utf-8", newline="")
        again = read_ranges(path, opened)
        assert [(it.video, it.start_s, it.end_s, it.label) for it in again] == [
            (it.video, it.start_s, it.end_s, it.label) for it in moments
        ]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.csv", "video,start_s,end_s\nfilm-01,1,2\nfilm-01,5,4\n", r"a\.csv, line 3: it ends at 4 s, before"),
        ("a.csv", "video,start_s,end_s\nfilm-99,1,2\n", r"line 2: got video 'film-99'"),
        ("a.csv", "video,start_s,end_s\nfilm,1,2\n", r"line 2: got video 'film'"),
        ("a.csv", "video,start_s\nfilm-01,1\n", "it has no end_s"),
        ("a.csv", "video,start_s,end_s\nfilm-01,soon,2\n", "got start_s 'soon'"),
        ("a.csv", "video,start_s,end_s\nfilm-01,nan,2\n", "got start_s 'nan'"),
        ("a.csv", "start_s,end_s\n1,2\n", "it names no video"),
        ("a.csv", "video,start_s,end_s\n", "which holds no range"),
        ("a.jsonl", '{"video": "film-01"\n', r"a\.jsonl, line 1: is no JSON"),
        ("a.jsonl", "[1, 2]\n", "is no object"),
        ("a.jsonl", '{"video": "film-01", "start_s": 1, "end_s": 2, "label": "\\ud800"}', "line 1: .*surrogates"),
        ("missing.csv", None, "cannot read the ranges"),
    ],
)
def test_a_mistake_is_named_with_its_line(
    opened: Library, tmp_path: Path, name: str, text: str | None, says: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=says):
        read_ranges(tmp_path / name, opened)


def test_no_label_is_a_formula_of_a_spreadsheet_and_each_is_read_again(opened: Library, tmp_path: Path) -> None:
    labels = ("=1+1", "+49", "-5", "@sum", "'=a", "''+b", "'quoted'", "plain", "a = b", "\ttab")
    moments = [Moment(opened.video("film-02"), 0.0, 1.0, label) for label in labels]
    path, text = tmp_path / "ranges.csv", csv_text(moments)
    path.write_text(text, encoding="utf-8", newline="")
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    assert not [cell for cell in cells if cell[:1] in ("=", "+", "-", "@", "\t")]
    assert [each.label for each in read_ranges(path, opened)] == list(labels)
