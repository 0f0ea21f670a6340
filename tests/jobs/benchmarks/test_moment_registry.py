"""Benchmarks of moments by name: files found, and what is said where there is none."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest

from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.benchmarks import (
    MOMENT_BENCHMARKS,
    UnknownBenchmark,
    find_moment_benchmark,
    read_moment_benchmark,
)
from tests.jobs.benchmarks.test_registry import HOSTILE
from tests.support.libraries.benchmark_files import cg_bench_row
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


ROWS: dict[str, dict[str, object]] = {
    "own": own_search(grades=[1], image="x.png", category="one"),
    "cg-bench": cg_bench_row(),
    "qvhighlights": {
        "qid": 1,
        "query": "a game",
        "vid": "v",
        "duration": 126,
        "relevant_windows": [[0, 4]],
        "relevant_clip_ids": [0, 1],
        "saliency_scores": [[4, 1, 1], [4, 3, 2]],
    },
    "momentseeker": {
        "qry_text": "a goal",
        "qry_img_path": "",
        "qry_video_path": "",
        "src_video_path": "v.mp4",
        "answering_time_interval": [[1, 2]],
    },
    "momentseeker, first release": {
        "qry_text": "a goal",
        "candidate_video_list": [{"output_path": "v/0.00_3.00.mp4"}],
        "gt_indices": [0],
    },
    "activitynet-captions": {"duration": 20, "timestamps": [[0, 5]], "sentences": ["a game"]},
}


@pytest.mark.parametrize("form", ROWS)
def test_whatever_stands_in_a_field_is_a_defect_of_its_row_and_no_traceback(form: str, tmp_path: Path) -> None:
    name, row = form.partition(",")[0], ROWS[form]
    file = tmp_path / MOMENT_BENCHMARKS[name].files[0]
    for field in row:
        for value in HOSTILE:
            changed = {**row, field: value}
            lines = "".join(json.dumps(each) + "\n" for each in (row, changed))
            whole = {"v": row, "w": changed} if name == "activitynet-captions" else [row, changed]
            file.write_text(lines if file.suffix == ".jsonl" else json.dumps(whole))
            with suppress(UsageError):
                read_moment_benchmark(name, file)


@pytest.mark.parametrize("line", ["v 0 9##", "v 0##x", "v a b##x", f"v 0 {'9' * 5000}##x", "v nan 3##x", "##", "x"])
def test_a_line_of_charades_that_is_none_is_a_defect(line: str, tmp_path: Path) -> None:
    file = tmp_path / "charades_sta_test.txt"
    file.write_text(f"v 0 9##a man\n{line}\n")
    read = read_moment_benchmark("charades-sta", file)
    assert [sample.text for sample in read.samples] == ["a man"]
    assert [each.where for each in read.problems] == ["file", "line 2"]
