"""`kinodex bench gpu` on a machine without a GPU: its CPU parts run, the rest is left out and said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kinodex.bench.gpu import ALL_ON_GPU, EMBEDS_ON_GPU, REFERENCE, Rate, Stage, bench_gpu, slower_stage
from kinodex.jobs.ingest.config import IngestConfig
from tests.support.command import Kinodex, bad


@pytest.mark.slow
def test_a_machine_is_measured_and_the_control_equals_the_reference(
    film: Path, kinodex: Kinodex, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    out = tmp_path / "figures"
    run = kinodex("bench", "gpu", film, "--space", "builtin", "--seconds", 0.1, "--no-gpu", "--out", out, "--json")
    assert run.code == 0, run.err
    figures = json.loads(run.out)
    assert json.loads((out / "gpu.json").read_text()) == figures
    reference, control = figures["ways"][:2]
    assert reference["ingest"]["frames"] == control["ingest"]["frames"] == 30
    assert control["equality"]["same_times"]
    assert control["equality"]["min_cosine"] >= 0.999
    assert reference["equality"] is None
    assert reference["part"] > 0
    assert {way["missing"] for way in figures["ways"][3:]} == {"the GPU is not to be used"}
    table = (out / "gpu.md").read_text()
    assert "left out: the GPU is not to be used" in table
    assert "| equal: times equal, cosine at least" in table


@pytest.mark.slow
def test_nothing_is_begun_after_the_limit(film: Path) -> None:
    pytest.importorskip("torch")
    figures = bench_gpu([film], IngestConfig(space="builtin"), work_s=0.1, limit_s=0.0, with_gpu=False)
    assert {stage.missing for stage in figures.stages} >= {"no time was left"}
    assert all(whole.ingest is None for whole in figures.ways)
    assert figures.ways[0].missing == "a stage of it has no rate"


def test_a_file_that_is_no_video_is_refused(kinodex: Kinodex, tmp_path: Path) -> None:
    text = tmp_path / "words.mp4"
    text.write_text("no film")
    bad(kinodex, "bench", "gpu", text, "--space", "builtin", code=3, says="words.mp4")


def test_the_slower_stage_of_a_way_is_that_of_its_devices() -> None:
    def stage(kind: str, decoder: str, device: str, frames_a_s: float) -> Stage:
        return Stage(f"{kind} {device}", kind, decoder, device, Rate(frames_a_s, 0.0, 0.0, {}))

    stages = [
        stage("decode", "auto", "cpu", 200.0),
        stage("decode", "nvdec", "cuda", 900.0),
        stage("embed", "auto", "cpu", 40.0),
        stage("embed", "auto", "cuda", 700.0),
        stage("embed", "nvdec", "cuda", 800.0),
    ]
    assert slower_stage(REFERENCE, stages) == 40.0
    assert slower_stage(EMBEDS_ON_GPU, stages) == 200.0
    assert slower_stage(ALL_ON_GPU, stages) == 800.0
    assert slower_stage(ALL_ON_GPU, stages[:1] + stages[2:]) is None
