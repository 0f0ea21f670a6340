"""Films to measure with: of the length and size that were requested, and copies that are other videos."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from kinodex.bench.gpu import FPS, draw_film, number_copies
from kinodex.pipeline.decoding.open import open_video, probe
from kinodex.pipeline.fetch import content_id


def test_a_drawn_film_has_its_length_and_no_two_equal_frames(tmp_path: Path) -> None:
    draw_film(tmp_path / "film.mp4", seconds=1, repeats=2, size_px=(160, 96))
    metadata = probe(tmp_path / "film.mp4")
    assert (metadata.width_px, metadata.height_px, metadata.fps) == (160, 96, FPS)
    with open_video(tmp_path / "film.mp4") as video:
        pictures = [sample.frame.to_ndarray(format="gray") for sample in video.samples(1000.0)]
    assert len(pictures) == 2 * FPS
    assert all((one != other).any() for one, other in pairwise(pictures)), "there is no grain"
    assert [path.name for path in tmp_path.iterdir()] == ["film.mp4"]


def test_copies_are_other_videos_with_the_same_frames(film: Path, tmp_path: Path) -> None:
    copies = number_copies([film], tmp_path, 3)
    assert copies[0] == film
    assert len({content_id(copy) for copy in copies}) == 3
    assert probe(copies[2]) == probe(film)
    assert number_copies([film], tmp_path, 1) == [film]


def test_a_film_that_takes_no_box_is_used_once(tmp_path: Path) -> None:
    assert number_copies([tmp_path / "film.mkv"], tmp_path, 3) == [tmp_path / "film.mkv"]
