"""`kinodex bench search` on a tiny library: what it makes is what it says, and it finds what is there."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kinodex.bench.search import Size, bench_search, frame_vectors, make_library, queries, table, video_id
from kinodex.index.errors import SettingsMismatch
from kinodex.index.library import Library
from kinodex.index.sweep import audit
from tests.support.command import Kinodex

SIZE = Size(videos=12, frames=30, lines=5, dim=16, jpeg_bytes=50)


@pytest.mark.slow
@pytest.mark.parametrize("is_cone", [False, True])
def test_figures(tmp_path, is_cone):
    figures = bench_search(tmp_path / "library", SIZE._replace(is_cone=is_cone), 3, lambda done: None)
    assert figures.recall == pytest.approx(1.0)
    assert figures.index_recall == pytest.approx(1.0)  # so few are scanned
    assert (figures.parts, figures.best_cosine > 0.4) == (0, not is_cone)
    assert all(t.warm_ms > 0 and t.fresh_ms > 0 and t.cold_ms > 0 and t.warm_ms <= t.p95_ms for t in figures.times)
    assert [(each.videos, each.recall) for each in figures.conditions] == [(6, 1.0), (1, 1.0), (1, 1.0), (1, 1.0)]
    lines = table(figures).splitlines()
    assert "two words in all lines" in {t.question for t in figures.times}
    assert lines[0].startswith("12 videos of 30 frames, 16 dimensions, 5 transcript lines")
    assert ("narrow cone" in lines[1]) == is_cone
    assert "recall@10 over all frames: 1.000 (goal 0.95: met)" in lines[-1]


@pytest.mark.slow
def test_the_command_prints_figures_and_progress(kinodex: Kinodex, tmp_path: Path) -> None:
    size = ("--videos", "3", "--frames", "20", "--lines", "2", "--dim", "8", "--queries", "2")
    ran = kinodex("bench", "search", tmp_path / "library", *size, "--json")
    assert json.loads(ran.out)["size"] == [3, 20, 2, 8, 1000, False]
    assert "3 of 3 videos written" in ran.err
    ran = kinodex("bench", "search", tmp_path / "library", *size, "--conditions")
    assert [line.split(" | ")[0] for line in ran.out.splitlines()[4:8]] == [
        "| 50.00%: 2",
        *(f"| {share}: 1" for share in ("5.00%", "0.50%", "0.05%")),
    ]


def test_a_made_library_is_whole_and_made_once(tmp_path):
    told: list[int] = []
    library, _ = make_library(str(tmp_path / "library"), SIZE, told.append)
    assert told == [10, 12]
    assert not audit(library).problems
    assert (library.info().videos, library.info().frames) == (12, 360)
    np.testing.assert_array_equal(library.vectors(video_id(11)).vectors, frame_vectors(11, SIZE))
    pictures = {frame.jpeg for frame in library.frames(video_id(3), range(30))}
    assert {len(jpeg) for jpeg in pictures} == {50}
    assert len(pictures) == 30
    assert len(library.captions(video_id(3))) == len(library.transcript(video_id(3))) == 5
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


def test_a_library_keeps_of_its_size_what_it_always_kept():
    assert SIZE.settings == {"videos": 12, "frames": 30, "lines": 5, "dim": 16, "jpeg_bytes": 50}
    assert SIZE._replace(is_cone=True).settings == SIZE.settings | {"is_cone": True}
