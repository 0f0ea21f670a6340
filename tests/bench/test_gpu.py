"""The bench of GPUs on a machine without a GPU: its CPU parts run, the rest is left out and said."""

from __future__ import annotations

import importlib.util
import json
from itertools import pairwise
from pathlib import Path

import pytest

from kinodex.jobs.ingest.config import IngestConfig
from kinodex.pipeline.decoding.open import open_video, probe
from tests.bench import gpu
from tests.bench.conftest import FILM_S, Bench
from tests.bench.gpu import (
    ALL_ON_GPU,
    CONTROL,
    EMBEDS_ON_GPU,
    FPS,
    GPU_CODE_ON_CPU,
    HEAD,
    NO_GPU,
    REFERENCE,
    Equality,
    GpuFigures,
    Rate,
    Stage,
    WholeWay,
    compare,
    draw_film,
    list_ways,
    table,
)
from tests.bench.ingest import WholeIngest, ingest_films
from tests.world.drawn_space import DRAWN, DRAWN_BY_TORCH


@pytest.mark.slow
def test_a_machine_is_measured_and_the_control_equals_the_reference(film: Path, bench: Bench, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    out = tmp_path / "figures"
    run = bench(gpu.main, film, "--space", DRAWN_BY_TORCH, "--seconds", 0.1, "--no-gpu", "--out", out, "--json")
    assert run.code == 0, run.err
    figures = json.loads(run.out)
    assert json.loads((out / "gpu.json").read_text()) == figures
    reference, control = figures["ways"][:2]
    frames = reference["ingest"]["frames"]  # of as many films as a stage alone can do
    assert frames == control["ingest"]["frames"] > 0 and frames % FILM_S == 0
    assert control["equality"]["same_times"]
    assert control["equality"]["min_cosine"] >= 0.999
    assert reference["equality"] is None
    assert reference["part"] > 0
    assert {way["missing"] for way in figures["ways"][3:]} == {"the GPU is not to be used"}
    table = (out / "gpu.md").read_text()
    assert "left out: the GPU is not to be used" in table
    assert "| equal: times equal, cosine at least" in table


CONFIG = IngestConfig(space=DRAWN, workers=1)


@pytest.fixture(scope="module")
def library(film: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("ways") / "library"
    done = ingest_films([film], CONFIG, place)
    assert (done.films, done.frames) == (1, FILM_S)
    assert done.busy["decode"] > 0
    assert done.parent_mb > 0
    return place


@pytest.mark.slow
def test_other_pictures_and_times_show_and_what_cannot_be_compared_is_refused(
    film: Path, library: Path, tmp_path: Path
) -> None:
    worse = CONFIG.model_copy(update={"jpeg_quality": 20})
    ingest_films([film], worse, tmp_path / "worse")
    found = compare(library, tmp_path / "worse")
    assert found.same_times
    assert found.min_psnr_db is not None
    assert 20 < found.min_psnr_db < 45
    ingest_films([film], CONFIG.model_copy(update={"fps": 0.5}), tmp_path / "fewer")
    assert not compare(library, tmp_path / "fewer").holds
    bad = tmp_path / "bad.mp4"
    bad.write_bytes(b"no film")
    with pytest.raises(RuntimeError, match=r"bad\.mp4"):
        ingest_films([bad], CONFIG, tmp_path / "empty")
    with pytest.raises(ValueError, match="no video in common"):
        compare(library, tmp_path / "empty")


def test_a_drawn_film_has_its_length_and_no_two_equal_frames(tmp_path: Path) -> None:
    draw_film(tmp_path / "film.mp4", seconds=1, repeats=2, size_px=(160, 96))
    metadata = probe(tmp_path / "film.mp4")
    assert (metadata.width_px, metadata.height_px, metadata.fps) == (160, 96, FPS)
    with open_video(tmp_path / "film.mp4") as video:
        pictures = [sample.frame.to_ndarray(format="gray") for sample in video.samples(1000.0)]
    assert len(pictures) == 2 * FPS
    assert all((one != other).any() for one, other in pairwise(pictures)), "there is no grain"
    assert [path.name for path in tmp_path.iterdir()] == ["film.mp4"]


GPU = {"utilization.gpu": 81.0, "utilization.decoder": 64.4, "memory.used": 4321.0}
INGEST = WholeIngest(4, 600, 600.0, 8.0, {"decode": 0.5}, "bfloat16", {"a reason | two": 1}, 1500.0, 0.0, GPU)
WHOLE = WholeWay(ALL_ON_GPU, INGEST, 0.875, Equality(600, True, 0.9995, 0.9999, 38.25))
FIGURES = GpuFigures(
    picture="film.mp4",
    space=DRAWN,
    fps=2.0,
    machine="a machine",
    versions="torch 2",
    seconds=500.0,
    stages=(
        Stage("decode, NVDEC", "decode", "nvdec", "cuda", Rate(900.0, 700.0, 0.0, GPU)),
        Stage("embed, GPU", "embed", "auto", "cuda", missing="torch sees no GPU here"),
    ),
    ways=(WHOLE, WholeWay(REFERENCE, missing="no time was left")),
)


def test_every_row_has_all_columns_and_the_goal_can_be_read_off() -> None:
    rows = [line for line in table(FIGURES).splitlines() if line.startswith("|")]
    assert rows[0] == HEAD
    assert {row.count("|") for row in rows} == {HEAD.count("|")}
    decode, embed, whole, reference = rows[2:]
    assert "| 900.0 | 450 |" in decode
    assert "left out: torch sees no GPU here" in embed
    assert "| 75.0 | 75 | 0.88 | decode 50% | cores 81 %, NVDEC 64 %, 4,321 MiB | 1,500 + 0 |" in whole
    assert "equal: times equal, cosine at least 0.99950, on average 0.99990, pictures at least 38.2 dB" in whole
    assert "4 films, 600 frames committed; bfloat16; PyAV read 1: a reason / two" in whole
    assert "left out: no time was left" in reference


def test_without_a_gpu_the_control_and_the_reasons_take_its_place(film: Path) -> None:
    torch = pytest.importorskip("torch")
    has_gpu = torch.cuda.is_available()
    ways = {way.name: way.missing for way in list_ways(film, with_gpu=False)}
    assert list(ways)[:2] == [REFERENCE.name, CONTROL.name]
    assert ways[REFERENCE.name] is ways[CONTROL.name] is None
    why = ways[GPU_CODE_ON_CPU.name]
    has_torchcodec = importlib.util.find_spec("torchcodec") is not None
    assert why is None if has_torchcodec else why is not None and "pip install torchcodec" in why
    assert ways[EMBEDS_ON_GPU.name] == ways[ALL_ON_GPU.name] == "the GPU is not to be used"
    on_gpu = {way.name: way.missing for way in list_ways(film)}
    assert on_gpu[EMBEDS_ON_GPU.name] == (None if has_gpu else NO_GPU)
