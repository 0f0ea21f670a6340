"""`kinodex bench ingest` and its like, on a film of a few seconds: what is counted is right, times are not judged."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import time

import pytest

from index.embedding.space import load_space
from jobs.bench import ingest as bench_ingest
from jobs.bench.decoders import bench_decoders, table
from jobs.bench.fixtures import make_films
from jobs.bench.resource_usage import Lost, measure_usage, run_alone, run_alone_within
from jobs.synthetic.world.render import render_film
from jobs.synthetic.world.script import write_script
from pipeline.errors import SourceMissing
from tests.support.command import bad, runner

SPARE_BYTES = 60_000_000
FILM_S = 30


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    path = tmp_path_factory.mktemp("films") / "film.mp4"
    render_film(write_script("film", FILM_S, 5), path)
    return path


def hold_memory(seconds):
    with measure_usage() as load:
        held = bytearray(os.urandom(1) * SPARE_BYTES)
        time.sleep(seconds)
    return load, len(held)


def test_a_fresh_process_gives_what_it_made_what_it_raised_or_how_it_ended():
    assert run_alone(sum, [1, 2, 3]) == 6
    with pytest.raises(ZeroDivisionError):
        run_alone(divmod, 1, 0)
    with pytest.raises(Lost, match="status 7"):
        run_alone(os._exit, 7)
    with pytest.raises(Lost, match=r"more than 0\.3 s"):
        run_alone_within(0.3, time.sleep, 60)


def test_memory_of_a_process_and_of_its_largest_child_is_seen():
    with measure_usage() as load:
        inner, held = run_alone(hold_memory, 0.8)
    assert inner.parent_bytes > held
    assert inner.child_bytes == 0
    assert load.child_bytes > held


def test_an_ingest_is_measured_against_its_stages_and_the_script(film, monkeypatch, capsys):
    kinodex = runner(monkeypatch, capsys)
    ran = kinodex("bench", "ingest", film, "--rounds", 1, "--json")
    assert ran.code == 0, ran.err
    figures = json.loads(ran.out)
    rates, ratios = figures["rates"], figures["ratios"]
    assert figures["frames"] == FILM_S
    assert figures["video_s"] == pytest.approx(FILM_S, abs=0.1)
    assert min(rates.values()) > 0
    slower = min(rates["decode"], rates["embed"])
    assert ratios["one core each"] == pytest.approx(rates["end to end"] / slower)
    assert 0 < ratios["core use"] < 1.5
    assert figures["parent_mb"] > figures["child_mb"] > 20
    has_script = importlib.util.find_spec("decord") is not None
    assert ("script" in rates) == ("over batched script" in ratios) == has_script == (figures["no_script"] is None)
    said = bench_ingest.table(bench_ingest.IngestFigures(**figures))
    assert "the slower of decode and embed, each with one core to itself" in said


def test_what_cannot_be_measured_is_refused(tmp_path, monkeypatch, capsys):
    kinodex = runner(monkeypatch, capsys)
    text = tmp_path / "words.mp4"
    text.write_text("no film")
    bad(kinodex, "bench", "ingest", text, "--rounds", 1, code=3, says="words.mp4")
    bad(kinodex, "bench", "ingest", text, "--decoder", "vlc", code=2, says="decoder")


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


def test_a_space_of_random_weights_loads(tmp_path, monkeypatch, capsys):
    kinodex = runner(monkeypatch, capsys)
    ran = kinodex("bench", "make-space", tmp_path / "model", "--model", "RN50-quickgelu")
    assert ran.out.strip() == f"local-dir:{tmp_path}/model"
    assert load_space(ran.out.strip(), towers="image").dim == 1024
    bad(kinodex, "bench", "make-space", tmp_path / "other", "--model", "RN49", code=2, says="RN49")
