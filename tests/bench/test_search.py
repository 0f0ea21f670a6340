"""The bench of searches on a tiny library: what it makes is what it says, and it finds what is there."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kinodex.index.errors import SettingsMismatch
from kinodex.index.library import Library
from kinodex.index.sweep import audit
from tests.bench import search
from tests.bench.conftest import Bench
from tests.bench.search import SearchFigures, Size, Times, frame_vectors, make_library, queries, table, video_id

SIZE = Size(videos=12, frames=30, lines=5, dim=16, jpeg_bytes=50)


@pytest.mark.slow
def test_figures_as_json_and_as_tables_with_progress(bench: Bench, tmp_path: Path) -> None:
    size = ("--videos", 12, "--frames", 30, "--lines", 5, "--dim", 16, "--jpeg-bytes", 50, "--queries", 3)
    ran = bench(search.main, tmp_path / "library", *size, "--json")
    figures = json.loads(ran.out)
    assert (figures["size"], "12 of 12 videos written" in ran.err) == ([12, 30, 5, 16, 50, False], True)
    assert [figures[name] for name in ("recall", "index_recall")] == pytest.approx([1.0, 1.0])  # so few are scanned
    assert (figures["parts"], figures["best_cosine"] > 0.4) == (0, True)
    assert all(
        0 < each["warm_ms"] <= each["p95_ms"] and each["fresh_ms"] > 0 < each["cold_ms"] for each in figures["times"]
    )
    assert "two words in all lines" in {each["question"] for each in figures["times"]}
    assert [(each["videos"], each["recall"]) for each in figures["conditions"]] == [(6, 1.0), *[(1, 1.0)] * 3]
    ran = bench(search.main, tmp_path / "cone", *size, "--conditions", "--cone")
    shares = ("50.00%: 6", "5.00%: 1", "0.50%: 1", "0.05%: 1")
    assert [line.split(" | ")[0] for line in ran.out.splitlines()[4:8]] == [f"| {share}" for share in shares]


@pytest.mark.parametrize("is_cone", [False, True])
def test_a_table_says_what_was_measured_and_if_goals_are_met(is_cone: bool) -> None:
    times, size = Times("two words in all lines", 1.0, 2.0, 3.0, 4.0), SIZE._replace(is_cone=is_cone)
    figures = SearchFigures(size, 1.0, 1.0, 10**9, (times,), 1.0, 1.0, 1.0, 1.0, "a machine")
    lines = table(figures).splitlines()
    assert lines[0].startswith("12 videos of 30 frames, 16 dimensions, 5 transcript lines")
    assert ("narrow cone" in lines[1]) == is_cone
    assert "recall@10 over all frames: 1.000 (goal 0.95: met)" in lines[-1]


def test_a_made_library_is_whole_and_made_once(tmp_path):
    assert SIZE.settings == {"videos": 12, "frames": 30, "lines": 5, "dim": 16, "jpeg_bytes": 50}, "as always"
    assert SIZE._replace(is_cone=True).settings == SIZE.settings | {"is_cone": True}
    told: list[int] = []
    library, _ = make_library(str(tmp_path / "library"), SIZE, told.append)
    assert told == [10, 12]
    assert not audit(library).problems
    assert (library.info().videos, library.info().frames) == (12, 360)
    np.testing.assert_array_equal(library.vectors(video_id(11)).vectors, frame_vectors(11, SIZE))
    pictures = {frame.jpeg for frame in library.frames(video_id(3), range(30))}
    assert {len(jpeg) for jpeg in pictures} == {50}
    assert len(pictures) == 30
    assert len(library.captions(video_id(3))) == len(library.speech(video_id(3))) == 5
    library.writer.discard(video_id(4))
    make_library(str(tmp_path / "library"), SIZE, told.append)
    assert told[2:] == [12]
    assert Library.open(library.uri).has_video(video_id(4))
    with pytest.raises(SettingsMismatch, match="dim=8"):
        make_library(str(tmp_path / "library"), SIZE._replace(dim=8), told.append)


def test_in_a_narrow_cone_all_frames_are_near_each_other_and_no_query_is_near_a_frame():
    size = Size(videos=200, frames=20, lines=1, dim=64, jpeg_bytes=1, is_cone=True)
    frames = np.concatenate([frame_vectors(number, size) for number in range(size.videos)]).astype(np.float32)
    asked = queries(30, size)
    for each in (frames, asked):
        np.testing.assert_allclose(np.linalg.norm(each, axis=1), 1, atol=2e-3)
    best = (asked @ frames.T).max(axis=1)
    assert best.min() > 0.05 and best.max() < 0.32 and best.max() / best.min() > 2
    assert np.median(frames @ frames[0]) > 0.4
    assert abs(np.median(frame_vectors(0, SIZE) @ frame_vectors(5, SIZE).T)) < 0.4
