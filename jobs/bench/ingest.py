"""Measure an ingest against each of its stages alone and against the plain script: `kinodex bench ingest`.

Times of different runs do not compare on a shared machine. So everything is measured in turn, round by round, and the
ratio that is reported is the median of the ratios of the rounds; rates are medians too.

End to end is `run_ingest` into a fresh library, from the moment that the model is loaded until the rows are there, in
a process of its own: hashing, starting the decoders, decoding, JPEGs, embedding, writing. The plain script also starts
its clock with the model loaded, and writes nothing.

Four ratios judge the result:

one core each   end to end over the slower of decode only and embed only, each on one core. With two cores that is what
                perfect overlap reaches when one core decodes and the other embeds; more means that cores are shared
                better than that, less that one waited for the other.
all cores each  the same with all cores for decoding, then all for embedding: near 1 only where one of them is
                nearly free.
core use        end to end over what it would be if all cores were busy all the time with decoding, JPEGs, preparing
                and embedding, at the speed that each has on one core: the part of the machine that is used. CPU only.
the script      end to end over the plain script of decord and open_clip, one frame at a time, and in batches.
"""

from __future__ import annotations

import os
import platform
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

from jobs.bench import stages
from jobs.bench.baseline_script import reason_missing, run_plain_script
from jobs.bench.resource_usage import measure_usage, run_alone
from jobs.ingest.config import IngestConfig
from pipeline.decoding.open import probe
from pipeline.sources.fetch import Source

T = TypeVar("T")

MEASURED_WITH = ("kinodex", "av", "torch", "open_clip_torch", "pylance")
STAGES = ("decode", "decode, all cores", "embed", "embed, all cores", "prepare", "jpeg")
SCRIPTS = {"script": "decord + open_clip, one frame at a time", "batched script": "decord + open_clip, in batches"}


@dataclass(frozen=True, slots=True)
class IngestRun:
    """One ingest into a fresh library. Memory is resident, at its peak; `gpu` as in `jobs.bench.resource_usage`."""

    frames: int
    video_s: float
    seconds: float
    parent_mb: float
    child_mb: float
    gpu: dict[str, float]


@dataclass(frozen=True, slots=True)
class IngestFigures:
    """Medians over the rounds. `rates` are frames a second by stage and for "end to end" and SCRIPTS.

    `ratios` are explained at the top of this file; `spread` is the lowest and the highest of each in any round.
    """

    videos: tuple[str, ...]
    picture: str
    space: str
    fps: float
    rounds: int
    frames: int
    video_s: float
    rates: dict[str, float]
    ratios: dict[str, float]
    spread: dict[str, tuple[float, float]]
    parent_mb: float
    child_mb: float
    gpu: dict[str, float]
    no_script: str | None
    cores: int
    machine: str
    versions: str


def bench_ingest(
    paths: Sequence[Path],
    config: IngestConfig,
    rounds: int,
    with_script: bool = True,
    report: Callable[[str], None] = lambda line: None,
) -> IngestFigures:
    """Measure an ingest of local videos, `rounds` times, and report each round when it is over.

    Raises a PipelineError if a video cannot be read, a SpaceError if the model cannot be loaded.
    """
    from index.embedding.load_tower import load_image_tower

    space = load_image_tower(config.space, config.device)
    no_script = reason_missing() if with_script else "not asked for"
    cores = len(os.sched_getaffinity(0))
    metadata = probe(paths[0])
    settings = config.sampling(space.fingerprint.preprocess, space.device_type == "cuda")
    whole, parts = stages.make_chunks(paths, settings)
    material = stages.load_material(whole, settings)
    stages.embed_rate(space, material.batches[:1] * 2, 1)  # the first batch settles the arithmetic
    runs, rates, ratios = [], [], []
    with stages.warm_processes(cores) as pool:
        for _ in range(rounds):
            rate = {
                "decode": stages.decode_rate(pool, whole, settings, at_once=False),
                "embed": stages.embed_rate(space, material.batches, 1),
            }
            runs.append(run_alone(ingest_once, paths, config))
            rate["end to end"] = runs[-1].frames / runs[-1].seconds
            if not no_script:
                rate |= _script_rates(paths, config, space.device_type, settings.batch)
            rate |= {
                "decode, all cores": stages.decode_rate(pool, parts, settings, at_once=True),
                "embed, all cores": stages.embed_rate(space, material.batches, cores),
                "jpeg": stages.jpeg_rate(material.frames, settings),
                "prepare": stages.prepare_rate(material.frames, settings),
            }
            rates.append(rate)
            ratios.append(_ratios(rate, cores, space.device_type))
            report(f"round {len(rates)}: " + ", ".join(f"{name} {part:.2f}" for name, part in ratios[-1].items()))
    return IngestFigures(
        videos=tuple(path.name for path in paths),
        picture=f"{metadata.width_px}x{metadata.height_px} {metadata.codec}",
        space=space.name,
        fps=config.fps,
        rounds=rounds,
        frames=runs[-1].frames,
        video_s=runs[-1].video_s,
        rates=_over_rounds(rates, statistics.median),
        ratios=_over_rounds(ratios, statistics.median),
        spread=_over_rounds(rates, _spread) | _over_rounds(ratios, _spread),
        parent_mb=max(run.parent_mb for run in runs),
        child_mb=max(run.child_mb for run in runs),
        gpu=_over_rounds([run.gpu for run in runs], statistics.median),
        no_script=no_script,
        cores=cores,
        machine=f"{platform.system()} {platform.machine()}, {cores} cores, model on {space.device_type}",
        versions=", ".join(f"{name} {version(name)}" for name in MEASURED_WITH),
    )


def ingest_once(paths: Sequence[Path], config: IngestConfig) -> IngestRun:
    """Index the videos into a library that is deleted again. For a process of its own.

    Raises RuntimeError if one of them fails.
    """
    from jobs.ingest.run import run_ingest

    sources = [Source(str(path), path.name) for path in paths]
    with tempfile.TemporaryDirectory(prefix="kinodex-bench-") as folder, measure_usage() as usage:
        report = run_ingest(config.model_copy(update={"text_tower": False}), sources, f"{folder}/library")
    if bad := [outcome.problem for outcome in report.outcomes if outcome.state == "failed"]:
        raise RuntimeError(f"the ingest that was to be measured failed: {bad[0]}")
    parent_mb, child_mb = usage.parent_bytes / 1e6, usage.child_bytes / 1e6
    return IngestRun(report.frames, report.video_s, report.seconds, parent_mb, child_mb, usage.gpu)


def table(figures: IngestFigures) -> str:
    """Write the figures as lines for people."""
    f = figures
    speed = f.rates["end to end"] * f.video_s / f.frames
    lines = [
        f"{', '.join(f.videos)}: {f.picture}, {f.video_s:,.0f} s, {f.frames:,} frames at {f.fps:g} fps, {f.space}",
        f"{f.machine}; {f.versions}",
        f"median of {f.rounds} rounds (lowest to highest)",
        "",
        "frames a second",
        _line("end to end", f.rates["end to end"], f, f"{speed:,.0f} s of video a second"),
        *(_line(name, f.rates[name], f, "" if "all" in name else "on one core") for name in STAGES),
        *(_line(name, f.rates[name], f, what) for name, what in SCRIPTS.items() if name in f.rates),
        "",
        "end to end, as a part of",
        *(_line(name, ratio, f, _meaning(name, f.cores)) for name, ratio in f.ratios.items()),
        "",
        f"memory at most {f.parent_mb:,.0f} MB in the ingest with its model, {f.child_mb:,.0f} MB in a decoding child",
        *(f"{name} {value:.0f} on average, end to end" for name, value in f.gpu.items()),
    ]
    if f.no_script:
        lines.append(f"the plain script was not run: {f.no_script}")
    return "\n".join(lines)


def _script_rates(paths: Sequence[Path], config: IngestConfig, device: str, batch: int) -> dict[str, float]:
    rates = {}
    for name, size in zip(SCRIPTS, (1, batch), strict=True):
        frames, seconds = run_alone(run_plain_script, paths, config.space, device, config.fps, size)
        rates[name] = frames / seconds
    return rates


def _ratios(rate: dict[str, float], cores: int, device: str) -> dict[str, float]:
    whole = rate["end to end"]
    ratios = {
        "one core each": whole / min(rate["decode"], rate["embed"]),
        "all cores each": whole / min(rate["decode, all cores"], rate["embed, all cores"]),
    }
    if device == "cpu":
        core_s = sum(1 / rate[stage] for stage in ("decode", "jpeg", "prepare", "embed"))
        ratios["core use"] = whole * core_s / cores
    return ratios | {f"over {name}": whole / rate[name] for name in SCRIPTS if name in rate}


def _meaning(ratio: str, cores: int) -> str:
    return {
        "one core each": "the slower of decode and embed, each with one core to itself",
        "all cores each": f"the slower of decode and embed, each with all {cores} cores to itself",
        "core use": f"what {cores} cores would do that are never idle and do only the stages",
        "over script": "the plain script, one frame at a time",
        "over batched script": "the plain script, in batches",
    }[ratio]


def _over_rounds(rounds: Sequence[dict[str, float]], combine: Callable[[list[float]], T]) -> dict[str, T]:
    return {name: combine([each[name] for each in rounds]) for name in rounds[0]}


def _spread(values: list[float]) -> tuple[float, float]:
    return min(values), max(values)


def _line(name: str, value: float, figures: IngestFigures, remark: str) -> str:
    lowest, highest = figures.spread[name]
    shown = "  {:<20} {:>9,.2f}  ({:,.2f} to {:,.2f})" if value < 10 else "  {:<20} {:>9,.1f}  ({:,.1f} to {:,.1f})"
    return f"{shown.format(name, value, lowest, highest):<56} {remark}".rstrip()
