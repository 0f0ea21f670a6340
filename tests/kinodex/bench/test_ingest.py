"""`kinodex bench ingest` and its like, on a film of a few seconds: what is counted is right, times are not judged."""

from __future__ import annotations

import importlib.util
import json

import pytest

from kinodex.bench import ingest as bench_ingest
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
