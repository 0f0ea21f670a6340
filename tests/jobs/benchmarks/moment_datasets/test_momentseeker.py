"""MomentSeeker as published, in the form of both releases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kinodex.jobs.eval.benchmarks import read_moment_benchmark
from kinodex.jobs.eval.samples import MomentBenchmark
from tests.support.runs.moment_files import problems


def row(**changes: Any) -> dict[str, Any]:
    asked = {"qry_text": "A player scores a goal.", "qry_img_path": "", "qry_video_path": ""}
    film = {"src_video_path": "./videos/sport_12.mp4", "task": "Action Recognition"}
    return {**asked, **film, "answering_time_interval": [[10.0, 25.0], [80, 95]], **changes}


def piece_row(*answers: int) -> dict[str, Any]:
    pieces = [{"output_path": f"/share/clips/movie101_16/{10 * n}.00_{10 * n + 10}.00.mp4"} for n in range(3)]
    asked = {"qry_text": "A man waves.", "qry_img_path": "", "qry_video_path": ""}
    return {**asked, "candidate_video_list": pieces, "gt_indices": list(answers)}


def read(folder: Path, *rows: dict[str, Any]) -> MomentBenchmark:
    (folder / "t2v.json").write_text(json.dumps(rows))
    return read_moment_benchmark("momentseeker", folder)


def test_momentseeker(tmp_path: Path) -> None:
    (sample,) = read(tmp_path, row()).samples
    assert (sample.sample_id, sample.video, sample.category) == ("t2v-1", "sport_12.mp4", "Action Recognition")
    assert sample.relevant == (("sport_12.mp4", 10.0, 25.0), ("sport_12.mp4", 80.0, 95.0))


def test_the_first_release_names_pieces_of_the_film(tmp_path: Path) -> None:
    benchmark = read(tmp_path, piece_row(0, 2), piece_row(7), piece_row())
    (sample,) = benchmark.samples
    assert sample.relevant == (("movie101_16", 0.0, 10.0), ("movie101_16", 20.0, 30.0))
    assert [where for where, _ in problems(benchmark)] == ["row 2", "row 3"]
    assert "gt_indices" in problems(benchmark)[0][1]


def test_searches_by_a_picture_need_it_and_those_by_a_clip_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "goal.png").write_bytes(b"a picture")
    benchmark = read(
        tmp_path,
        row(qry_img_path="goal.png"),
        row(qry_img_path="gone.png"),
        row(qry_video_path="goal.mp4"),
        row(qry_text=" "),
        row(answering_time_interval=[[3, 3]]),
    )
    (sample,) = benchmark.samples
    assert sample.image == tmp_path / "goal.png"
    texts = [what for _, what in problems(benchmark)]
    assert "there is no file" in texts[0]
    assert "a search by a clip is left out" in texts[1]
    assert "neither words nor a picture" in texts[2]
    assert "got 3 to 3" in texts[3]


def test_pieces_are_not_counted_from_the_end_and_a_film_has_a_name(tmp_path: Path) -> None:
    benchmark = read(tmp_path, row(), piece_row(-1), row(src_video_path="/"))
    assert [sample.sample_id for sample in benchmark.samples] == ["t2v-1"]
    (where, what), (_, nameless) = problems(benchmark)
    assert (where, "gt_indices" in what) == ("row 2", True)
    assert nameless == "src_video_path: got '/', which names no file"
