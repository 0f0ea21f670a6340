"""QVHighlights as published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.runs.moment_files import problems, read_lines


def row(qid: int = 1, **changes: Any) -> dict[str, Any]:
    film = {"qid": qid, "query": "A family plays basketball.", "duration": 126, "vid": "bP5K_660.0_810.0"}
    moments = {"relevant_windows": [[0, 4], [10, 12]], "relevant_clip_ids": [0, 1, 5]}
    return {**film, **moments, "saliency_scores": [[4, 1, 1], [4, 3, 2], [0, 0, 0]], **changes}


def test_qvhighlights(tmp_path: Path) -> None:
    (sample,) = read_lines(tmp_path, "qvhighlights", row()).samples
    assert (sample.sample_id, sample.benchmark, sample.video) == ("1", "qvhighlights", "bP5K_660.0_810.0")
    assert sample.relevant == (("bP5K_660.0_810.0", 0.0, 4.0), ("bP5K_660.0_810.0", 10.0, 12.0))
    assert sample.grades == pytest.approx((1 + 15 / 6, 1.0))
    assert (sample.duration_s, sample.absent) == (126.0, False)


def test_rows_of_the_test_set_have_no_moments(tmp_path: Path) -> None:
    bare = {name: value for name, value in row().items() if name in ("qid", "query", "duration", "vid")}
    (sample,) = read_lines(tmp_path, "qvhighlights", bare).samples
    assert (sample.known, sample.relevant, sample.grades) == (False, (), None)


def test_a_moment_without_scores_has_no_grades(tmp_path: Path) -> None:
    (sample,) = read_lines(tmp_path, "qvhighlights", row(relevant_windows=[[0, 4], [30, 40]])).samples
    assert sample.grades is None


def test_wrong_rows_of_qvhighlights(tmp_path: Path) -> None:
    wrong = [
        row(2, relevant_clip_ids=[0]),
        row(3, relevant_windows=[[4, 4]]),
        row(4, saliency_scores=[[5], [1], [1]]),
        row(5, relevant_windows=[[100, 150]]),
    ]
    benchmark = read_lines(tmp_path, "qvhighlights", *wrong)
    assert [sample.sample_id for sample in benchmark.samples] == ["5"]
    size, *rows = problems(benchmark)
    assert size == ("file", "got 1 searches; published: val 1,550, test 1,542, train 7,218")
    assert [where for where, _ in rows] == ["line 1", "line 2", "line 3", "line 4"]
    assert rows[3][1] == "relevant_windows: got an end at 150 s of 126; the search is kept"


def test_a_search_without_words_is_left_out(tmp_path: Path) -> None:
    benchmark = read_lines(tmp_path, "qvhighlights", row(query="  "), row(2))
    assert [sample.sample_id for sample in benchmark.samples] == ["2"]
    assert problems(benchmark)[1:] == [("line 1", "got neither words nor a picture to search for")]
