"""`kinodex bench ingest` on a film of half a minute: what is counted is right, times are not judged."""

from __future__ import annotations

import importlib.util
import json
import os
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from kinodex.bench import ingest
from kinodex.bench import ingest as bench_ingest
from kinodex.bench.ingest import Lost, measure_usage, reason_missing, run_alone, run_alone_within
from kinodex.pipeline.images import ModelInput
from kinodex.pipeline.sample import SamplingSettings
from tests.kinodex.bench.conftest import FILM_S
from tests.support.command import bad


@pytest.mark.slow
def test_an_ingest_is_measured_against_its_stages_and_the_script(film, kinodex):
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


def test_what_cannot_be_measured_is_refused(tmp_path, kinodex):
    text = tmp_path / "words.mp4"
    text.write_text("no film")
    bad(kinodex, "bench", "ingest", text, "--rounds", 1, code=3, says="words.mp4")
    bad(kinodex, "bench", "ingest", text, "--decoder", "vlc", code=2, says="decoder")


SETTINGS = SamplingSettings(1.0, 512, 85, "auto", ModelInput(96, 96, "squash"), cut_s=12.0, batch=8)


def test_videos_are_whole_and_split_as_an_ingest_splits_them(film: Path) -> None:
    whole, parts = ingest.make_chunks([film], SETTINGS)
    assert [chunk.span for chunk in whole] == [None]
    assert len(parts) > 1
    assert [(chunk.index, chunk.of) for chunk in parts] == [(index, len(parts)) for index in range(len(parts))]
    assert ingest.make_chunks([film], replace(SETTINGS, cut_s=0.0))[1] == whole


def test_material_is_the_first_frames_in_batches_of_one_size(film: Path) -> None:
    frames, batches = ingest.load_material(ingest.make_chunks([film], SETTINGS)[0], SETTINGS)
    assert len(frames) == FILM_S
    assert [batch.shape for batch in batches] == [(8, 3, 96, 96)] * (FILM_S // 8)


SPARE_BYTES = 60_000_000


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


@pytest.mark.slow
def test_memory_of_a_process_and_of_its_largest_child_is_seen():
    with measure_usage() as load:
        inner, held = run_alone(hold_memory, 0.8)
    assert inner.parent_bytes > held
    assert inner.child_bytes == 0
    assert load.child_bytes > held


@pytest.mark.skipif(find_spec("decord") is not None, reason="decord is installed")
def test_without_decord_it_says_what_to_install() -> None:
    assert reason_missing() == "decord is not installed; pip install decord"
