"""`kinodex bench decoders` on a film of a few seconds: samples and times are compared, speed is not judged."""

from __future__ import annotations

import importlib.util

import pytest

from kinodex.bench.decoders import bench_decoders, table
from kinodex.pipeline.errors import SourceMissing
from tests.kinodex.bench.conftest import FILM_S


@pytest.mark.slow
def test_decoders_are_held_to_pyav(film, tmp_path):
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(film.read_bytes()[:1000])
    rows = bench_decoders([film, broken], [2.0, 0.5], ["pyav", "decord"], rounds=1, make=None)
    assert [(row.decoder, row.fps) for row in rows] == [("pyav", 2.0), ("pyav", 0.5), ("decord", 2.0), ("decord", 0.5)]
    assert {row.file for row in rows} == {film.name}
    for row in rows:
        assert row.frames == FILM_S * row.fps
        assert row.same_times
        assert row.cpu_s > 0 < row.cpu_part
    if importlib.util.find_spec("decord") is None:
        assert all("decord" in row.remark for row in rows[2:])
    assert table(rows).count("| yes |") == 4
    with pytest.raises(SourceMissing):
        bench_decoders([tmp_path / "none.mp4"], [1.0], None, rounds=1, make=None)
