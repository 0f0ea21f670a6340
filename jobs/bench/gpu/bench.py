"""Measure an ingest on a machine with a GPU, in less time than a limit: `kinodex bench gpu`.

The stages alone first, each in a process of its own: decoding on CPUs and by NVDEC, embedding on CPUs and the GPU. Then
whole ingests by every way that the machine has, of as many films as the stages can do in `work_s`. Then the rows of
each way against those of the CPU. A part that is missing here, that fails or that finds no time left is a row that
says so.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import ParamSpec, TypeVar

from index.errors import KinodexError
from jobs.bench.fixtures import make_random_space
from jobs.bench.gpu.end_to_end import Equality, WholeIngest, compare, ingest_films
from jobs.bench.gpu.film import draw_film, number_copies
from jobs.bench.gpu.rates import Rate, decode_on_cpus, decode_on_device, embed_on
from jobs.bench.gpu.ways import REFERENCE, Way, list_ways
from jobs.bench.resource_usage import Lost, run_alone_within
from jobs.ingest.config import IngestConfig
from jobs.ingest.run import MOST_LOCAL_WORKERS
from pipeline.decoding.open import probe
from pipeline.errors import PipelineError
from pipeline.sampling.sample import SamplingSettings

DEFAULT_MODEL = "ViT-B-32-SigLIP2-256"
"""The default space's architecture; with random weights it is as fast as it is trained."""
MOST_FILMS = 64
MEASURED_WITH = ("kinodex", "av", "torch", "torchcodec", "open_clip_torch", "pylance", "nvidia-ml-py")

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage alone: `kind` is "decode" or "embed". Without a rate, `missing` says why.

    Of an embedding stage, `decoder` is "nvdec" where the frames lie in the memory of the device already.
    """

    name: str
    kind: str
    decoder: str
    device: str
    rate: Rate | None = None
    missing: str | None = None


@dataclass(frozen=True, slots=True)
class WholeWay:
    """One way end to end. `part` is its rate over that of the slower of its two stages; `missing` as in `Stage`."""

    way: Way
    ingest: WholeIngest | None = None
    part: float | None = None
    equality: Equality | None = None
    missing: str | None = None


@dataclass(frozen=True, slots=True)
class GpuFigures:
    """All that was measured, and with what. `seconds` is the time of the whole measurement."""

    picture: str
    space: str
    fps: float
    machine: str
    versions: str
    seconds: float
    stages: tuple[Stage, ...]
    ways: tuple[WholeWay, ...]


@dataclass
class _Bench:
    """A measurement under way: its films, its settings, and the moment at which it has to be over.

    `preprocess` as in the space's fingerprint; `batch` frames are embedded at a time on a device of either kind.
    """

    films: Sequence[Path]
    folder: Path
    config: IngestConfig
    work_s: float
    ends_at: float
    report: Callable[[str], None]
    preprocess: str
    cores: int

    def measure(self, name: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> tuple[T | None, str]:
        """Run one part in a fresh process within the time that is left; returns its result, or why there is none."""
        left_s = self.ends_at - time.monotonic()
        if left_s <= 0:
            return None, "no time was left"
        self.report(f"{name} ...")
        try:
            return run_alone_within(left_s, work, *args, **kwargs), ""
        except (Lost, KinodexError, PipelineError, RuntimeError) as error:  # torch and CUDA raise RuntimeError
            return None, f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"

    def batch(self, way: Way) -> int:
        return self.sampling(way).batch

    def sampling(self, way: Way) -> SamplingSettings:
        config = self.config.model_copy(update={"decoder": way.decoder})
        return config.sampling(self.preprocess, way.device == "cuda")


def bench_gpu(
    videos: Sequence[Path],
    config: IngestConfig,
    work_s: float,
    limit_s: float,
    with_gpu: bool = True,
    random_weights: bool = False,
    report: Callable[[str], None] = lambda line: None,
) -> GpuFigures:
    """Measure on `videos`, or on a film that is drawn; each part for about `work_s` seconds, all within `limit_s`.

    With `random_weights` the space is DEFAULT_MODEL with weights that mean nothing, made here. What cannot run on this
    machine is left out and said. Raises a PipelineError if a video cannot be read, a SpaceError for a bad space.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kinodex-bench-") as name:
        folder = Path(name)
        films = list(videos) or [_drawn(folder, report)]
        picture = _picture(films[0])
        if random_weights:
            space = run_alone_within(None, make_random_space, folder / "space", DEFAULT_MODEL)
            config = config.model_copy(update={"space": space})
        preprocess, ways = run_alone_within(None, _look, config.space, films[0], with_gpu)
        cores = len(os.sched_getaffinity(0))
        bench = _Bench(films, folder, config, work_s, began + limit_s, report, preprocess, cores)
        stages = _measure_stages(bench, ways)
        wholes = _compared(bench, [_measure_way(bench, way, stages) for way in ways])
        return GpuFigures(
            picture=picture,
            space=f"{DEFAULT_MODEL}, random weights" if random_weights else config.space,
            fps=config.fps,
            machine=f"{platform.system()} {platform.machine()}, {cores} cores, {_gpu_name()}",
            versions=", ".join(_versions()),
            seconds=time.monotonic() - began,
            stages=tuple(stages),
            ways=tuple(wholes),
        )


def _measure_stages(bench: _Bench, ways: Sequence[Way]) -> list[Stage]:
    """Measure decoding and embedding on every device of the ways, each once."""
    decoding: dict[tuple[str, str], Way] = {}
    embedding: dict[str, Way] = {}
    for way in ways:  # of the ways that share a stage the first counts
        decoding.setdefault((way.decoder, decode_device(way)), way)
        embedding.setdefault(way.device, way)
    stages = [_decode_stage(bench, way) for way in decoding.values()]
    for way in embedding.values():
        stages += [
            _embed_stage(bench, way, on_device) for on_device in ((False, True) if way.device != "cpu" else (False,))
        ]
    return stages


def _decode_stage(bench: _Bench, way: Way) -> Stage:
    device = decode_device(way)
    on_device = way.decoder == "nvdec"
    unit = {"cuda": "NVDEC", "cpu": "torchcodec on the CPU"}[device] if on_device else f"PyAV, {bench.cores} cores"
    stage = Stage(f"decode, {unit}", "decode", way.decoder, device, missing=way.missing if on_device else None)
    if stage.missing:
        return stage
    sampling = bench.sampling(way)
    if on_device:
        threads = bench.config.workers or min(bench.cores, MOST_LOCAL_WORKERS)
        rate, why = bench.measure(stage.name, decode_on_device, bench.films, sampling, device, threads, bench.work_s)
    else:
        rate, why = bench.measure(stage.name, decode_on_cpus, bench.films, sampling, bench.cores, bench.work_s)
    return replace(stage, rate=rate, missing=why or None)


def _embed_stage(bench: _Bench, way: Way, on_device: bool) -> Stage:
    unit = f"{bench.cores} cores" if way.device == "cpu" else f"GPU, from {'its own' if on_device else 'host'} memory"
    missing = way.missing if way.device != "cpu" else None
    stage = Stage(f"embed, {unit}", "embed", "nvdec" if on_device else "auto", way.device, missing=missing)
    if stage.missing:
        return stage
    arguments = (way.device, bench.config.space, bench.batch(way), bench.cores, bench.work_s, on_device)
    rate, why = bench.measure(stage.name, embed_on, *arguments)
    return replace(stage, rate=rate, missing=why or None)


def _measure_way(bench: _Bench, way: Way, stages: Sequence[Stage]) -> WholeWay:
    """Ingest as many films by one way as its slower stage alone could do in `work_s`."""
    if way.missing:
        return WholeWay(way, missing=way.missing)
    slower = slower_stage(way, stages)
    if slower is None:
        return WholeWay(way, missing="a stage of it has no rate")
    video_s = sum(probe(film).claimed_duration_s or 0.0 for film in bench.films) / len(bench.films)
    count = round(bench.work_s * slower / max(video_s * bench.config.fps, 1.0))
    films = number_copies(bench.films, bench.folder, min(max(count, 1), MOST_FILMS))
    config = bench.config.model_copy(update={"decoder": way.decoder, "device": way.device})
    ingest, why = bench.measure(f"end to end, {way.name}", ingest_films, films, config, _library(bench, way))
    part = ingest.frames / ingest.seconds / slower if ingest else None
    return WholeWay(way, ingest, part, missing=why or None)


def _compared(bench: _Bench, wholes: Sequence[WholeWay]) -> list[WholeWay]:
    """Compare the rows of each way with those of the reference, where both have run."""
    done = {whole.way.name for whole in wholes if whole.ingest}
    compared = []
    for whole in wholes:
        if whole.way.name in done - {REFERENCE.name} and REFERENCE.name in done:
            equality = compare(_library(bench, REFERENCE), _library(bench, whole.way))
            whole = replace(whole, equality=equality)
        compared.append(whole)
    return compared


def slower_stage(way: Way, stages: Sequence[Stage]) -> float | None:
    """Return the rate of the slower of a way's two stages; None if one of them has none."""
    rates = [_rate_of(stages, "decode", way.decoder, decode_device(way))]
    # Frames that NVDEC decodes are in the memory of the GPU already.
    rates.append(_rate_of(stages, "embed", way.decoder if way.device != "cpu" else "auto", way.device))
    known = [rate for rate in rates if rate]
    return min(known) if len(known) == len(rates) else None


def decode_device(way: Way) -> str:
    """Return the device that decodes: all decoders but "nvdec" do on the CPU."""
    return way.device if way.decoder == "nvdec" else "cpu"


def _rate_of(stages: Sequence[Stage], kind: str, decoder: str, device: str) -> float | None:
    found = [each.rate for each in stages if (each.kind, each.decoder, each.device) == (kind, decoder, device)]
    return found[0].frames_a_s if found and found[0] else None


def _library(bench: _Bench, way: Way) -> Path:
    return bench.folder / f"library {way.name}"


def _drawn(folder: Path, report: Callable[[str], None]) -> Path:
    report("drawing a film ...")
    path = folder / "film.mp4"
    draw_film(path)
    return path


def _picture(film: Path) -> str:
    metadata = probe(film)
    seconds = metadata.claimed_duration_s or 0.0
    mbit_s = film.stat().st_size * 8 / 1e6 / max(seconds, 1.0)
    return (
        f"{film.name}: {metadata.width_px}x{metadata.height_px} {metadata.codec}, {metadata.fps:g} frames a second, "
        f"{mbit_s:.1f} Mbit/s, {seconds:,.0f} s"
    )


def _look(space: str, film: Path, with_gpu: bool) -> tuple[str, list[Way]]:
    """Return the preprocessing of a space and the ways of this machine; loads torch."""
    from index.embedding.space import load_space

    return load_space(space, device="cpu", towers="image").fingerprint.preprocess, list_ways(film, with_gpu)


def _gpu_name() -> str:
    """Name the GPUs as nvidia-smi lists them."""
    if shutil.which("nvidia-smi") is None:
        return "no nvidia-smi"
    command = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "; ".join(done.stdout.splitlines()) or "nvidia-smi lists no GPU"


def _versions() -> list[str]:
    versions = []
    for name in MEASURED_WITH:
        with suppress(PackageNotFoundError):
            versions.append(f"{name} {version(name)}")
    return versions
