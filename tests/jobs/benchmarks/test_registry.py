"""Benchmarks by name: files, sizes, and files of something else."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.benchmarks import BENCHMARKS, UnknownBenchmark, read_benchmark
from tests.support.libraries import benchmark_files as kit
from tests.support.libraries.benchmark_files import problems, read


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


def test_an_unknown_benchmark_is_answered_by_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(UnknownBenchmark, match="got benchmark NextQA-val; did you mean nextqa"):
        read_benchmark("NextQA-val", tmp_path)


@pytest.mark.parametrize("name", kit.PUBLISHED)
def test_a_folder_without_the_file_is_refused_with_the_source_of_the_file(name: str, tmp_path: Path) -> None:
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


HOSTILE: tuple[object, ...] = (
    None,
    True,
    -1,
    10**4000,
    1e308,
    float("nan"),
    "",
    "None",
    "N/A",
    "9" * 5000,
    f"{'9' * 5000}:00-01:00",
    "[['OCR']]",
    "{[]: 1}",
    "(" * 5000,
    "\ud800",
    [],
    ["x"],
    [["x"]],
    [None] * 30,
    {"a": 1},
)
"""Values that a field of a row may have by somebody's mistake."""


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
