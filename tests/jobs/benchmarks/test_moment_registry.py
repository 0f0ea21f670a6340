"""Benchmarks of moments by name: files found, and what is said where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.benchmarks.moment_registry import MOMENT_BENCHMARKS, find_moment_benchmark, read_moment_benchmark
from jobs.benchmarks.registry import UnknownBenchmark
from jobs.errors import UsageError
from tests.support.runs.moment_files import own_search, write_lines


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownBenchmark, match=r"did you mean own\?"):
        find_moment_benchmark("OWN")


def test_a_folder_stands_for_the_file_in_it(tmp_path: Path) -> None:
    write_lines(tmp_path / "searches.jsonl", own_search())
    benchmark = read_moment_benchmark("own", tmp_path)
    assert (benchmark.name, len(benchmark.samples), benchmark.problems) == ("own", 1, ())


@pytest.mark.parametrize("name", MOMENT_BENCHMARKS)
def test_a_missing_file_and_a_file_of_something_else_are_refused_with_the_source(name: str, tmp_path: Path) -> None:
    info = MOMENT_BENCHMARKS[name]
    with pytest.raises(UsageError, match="neither is nor holds") as missing:
        read_moment_benchmark(name, tmp_path)
    assert info.had_from in str(missing.value)
    file = tmp_path / info.files[0]
    file.write_text('{"unlike": "anything"}\n')
    with pytest.raises(UsageError, match="give the file") as other:
        read_moment_benchmark(name, file)
    assert str(file) in str(other.value)
