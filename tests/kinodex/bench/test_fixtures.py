"""Films of all codecs are made once, a random space loads, and files out of the page cache are still there."""

from __future__ import annotations

import shutil

import pytest

from kinodex.bench.decoders import bench_decoders, make_films
from kinodex.bench.search import drop_page_cache
from kinodex.index.spaces.space import load_space
from tests.support.command import bad


@pytest.mark.slow
def test_films_of_all_codecs_are_made_once(film, tmp_path):
    if shutil.which("ffmpeg") is None:
        pytest.skip("no ffmpeg")
    made = make_films(film, tmp_path / "made", short_s=1)
    assert {"mpeg4-short.mp4", "mpeg4-long.mp4"} <= {path.name for path in made}
    times = [path.stat().st_mtime_ns for path in made]
    assert make_films(film, tmp_path / "made", short_s=1) == made
    assert [path.stat().st_mtime_ns for path in made] == times
    rows = bench_decoders([path for path in made if path.name.startswith("mpeg4")], [1.0], ["pyav"], 1, None)
    assert [row.frames for row in rows] == [10, 1]


@pytest.mark.slow
def test_a_space_of_random_weights_loads(tmp_path, kinodex):
    ran = kinodex("bench", "make-space", tmp_path / "model", "--model", "RN50-quickgelu")
    assert ran.out.strip() == f"local-dir:{tmp_path}/model"
    assert load_space(ran.out.strip(), towers="image").dim == 1024
    bad(kinodex, "bench", "make-space", tmp_path / "other", "--model", "RN49", code=2, says="RN49")


def test_forgotten_files_are_still_there(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "file").write_bytes(b"x" * 10_000)
    drop_page_cache(tmp_path)
    assert (tmp_path / "sub" / "file").read_bytes() == b"x" * 10_000
