"""Measure an ingest against each of its stages alone and against the plain script: `kinodex bench ingest`.

Times of different runs do not compare on a shared machine. So everything is measured in turn, round by round, and the
ratio that is reported is the median of the ratios of the rounds; rates are medians too.

End to end is `run_ingest` into a fresh library, from the moment that the model is loaded until the rows are there, in
a process of its own: hashing, starting the decoders, decoding, JPEGs, embedding, writing. The plain script also starts
its clock with the model loaded, and writes nothing.

Ratios of end to end judge the result: over the slower of decode only and embed only, on one core each (what perfect
overlap of two cores reaches) and on all cores each; over what all cores would do that are never idle and do only the
stages ("core use", CPU only); and over the plain script of decord and open_clip, one frame at a time and in batches.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import resource
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from itertools import islice, repeat
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from kinodex.jobs.ingest.config import IngestConfig
from kinodex.pipeline.decoding.open import open_video, probe, split_video
from kinodex.pipeline.fetch import FetchedVideo, Source
from kinodex.pipeline.images import jpeg
from kinodex.pipeline.sample import Chunk, SamplingSettings, rgb_samples

if TYPE_CHECKING:
    from kinodex.index.spaces.towers import ImageEmbedder

T = TypeVar("T")

MEASURED_WITH = ("kinodex", "av", "torch", "open_clip_torch", "pylance")
STAGES = ("decode", "decode, all cores", "embed", "embed, all cores", "prepare", "jpeg")
SCRIPTS = {"script": "decord + open_clip, one frame at a time", "batched script": "decord + open_clip, in batches"}


@dataclass(frozen=True, slots=True)
class WholeIngest:
    """One ingest, from the moment that the model is loaded until its rows are committed.

    `frames` are those that the library holds at the end; `busy` is the part of their time that workers decoded,
    embedded and wrote, 0 to 1; memory in MB is resident, at its peak, and
    `gpu` has averages of GPU_FIGURES.
    """

    films: int
    frames: int
    video_s: float
    seconds: float
    busy: Mapping[str, float]
    arithmetic: str
    fell_back: Mapping[str, int]
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
    """Measure an ingest of local videos, round by round; raises a PipelineError or SpaceError."""
    from kinodex.jobs.towers import load_embedder

    space = load_embedder(config.space, config.device)
    no_script = reason_missing() if with_script else "not asked for"
    cores = len(os.sched_getaffinity(0))
    metadata = probe(paths[0])
    settings = config.sampling(space.fingerprint.preprocess, space.device_type == "cuda")
    whole, parts = make_chunks(paths, settings)
    frames, batches = load_material(whole, settings)
    as_jpeg = partial(jpeg, longest_px=settings.jpeg_side_px, quality=settings.jpeg_quality)
    embed_rate(space, batches[:1] * 2, 1)  # the first batch settles the arithmetic
    runs, rates, ratios = [], [], []
    with warm_processes(cores) as pool:
        for _ in range(rounds):
            rate = {
                "decode": decode_rate(pool, whole, settings, at_once=False),
                "embed": embed_rate(space, batches, 1),
            }
            runs.append(run_alone(ingest_once, paths, config))
            rate["end to end"] = runs[-1].frames / runs[-1].seconds
            if not no_script:
                rate |= _script_rates(paths, config, space.device_type, settings.batch)
            rate |= {
                "decode, all cores": decode_rate(pool, parts, settings, at_once=True),
                "embed, all cores": embed_rate(space, batches, cores),
                "jpeg": _rate(lambda: _each(frames, as_jpeg)),
                "prepare": _rate(lambda: _each(frames, settings.input)),
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


def ingest_once(paths: Sequence[Path], config: IngestConfig) -> WholeIngest:
    """Index the videos into a library that is deleted again. For a process of its own."""
    with tempfile.TemporaryDirectory(prefix="kinodex-bench-") as folder:
        return ingest_films(paths, config, Path(folder) / "library")


def ingest_films(films: Sequence[Path], config: IngestConfig, library: Path) -> WholeIngest:
    from kinodex.index.library import Library
    from kinodex.jobs.ingest.run import run_ingest

    sources = [Source(str(film), film.name) for film in films]
    with measure_usage() as usage:
        report = run_ingest(config.model_copy(update={"text_tower": False}), sources, str(library))
    if bad := [outcome.problem for outcome in report.outcomes if outcome.state == "failed"]:
        raise RuntimeError(f"the ingest that was to be measured failed: {bad[0]}")
    committed = sum(video.frames for video in Library.open(str(library)).videos())
    if committed != report.frames:
        raise RuntimeError(f"the ingest reports {report.frames} frames, and its library holds {committed}")
    return WholeIngest(
        films=len(films),
        frames=committed,
        video_s=report.video_s,
        seconds=report.seconds,
        busy=dict(report.utilisation),
        arithmetic=report.arithmetic,
        fell_back=dict(report.fell_back),
        parent_mb=usage.parent_bytes / 1e6,
        child_mb=usage.child_bytes / 1e6,
        gpu=usage.gpu,
    )


def table(figures: IngestFigures) -> str:
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


# Rates of the stages of an ingest, each alone: frames a second on one core, and on all of them.

MATERIAL_FRAMES = 256
"""Frames held in memory for all stages but decoding, however long the videos."""

Item = TypeVar("Item")
Rgb = NDArray[np.uint8]


def make_chunks(paths: Sequence[Path], settings: SamplingSettings) -> tuple[list[Chunk], list[Chunk]]:
    whole = [Chunk(FetchedVideo(Source(str(path), path.name), str(path), "", path.stat().st_size)) for path in paths]
    parts: list[Chunk] = []
    for chunk in whole:
        path = Path(chunk.video.path)
        spans = split_video(path, path.name, settings.fps, settings.cut_s) if settings.cut_s else ()
        parts += [Chunk(chunk.video, span, len(spans), index) for index, span in enumerate(spans)] or [chunk]
    return whole, parts


def load_material(chunks: Sequence[Chunk], settings: SamplingSettings) -> tuple[list[Rgb], list[NDArray[np.uint8]]]:
    """Decode the first frames `[H, W, 3]`, and make batches `[n, 3, h, w]` of inputs of them; raises PipelineError."""
    frames: list[Rgb] = []
    for chunk in chunks:
        path = Path(chunk.video.path)
        with open_video(path, path.name, decoder=settings.decoder) as video:
            samples = rgb_samples(video, chunk, settings, defaultdict(float))
            frames += [rgb for _, _, rgb in islice(samples, MATERIAL_FRAMES - len(frames))]
            samples.close()
    size = min(settings.batch, len(frames))
    inputs = [settings.input(rgb) for rgb in frames]
    batches = [np.stack(inputs[first : first + size]) for first in range(0, len(inputs) - size + 1, size)]
    return frames, batches


@contextmanager
def warm_processes(count: int) -> Iterator[Executor]:
    context = get_context("spawn")
    all_here = context.Barrier(count + 1)
    with ProcessPoolExecutor(count, context, initializer=_warm, initargs=(all_here,)) as pool:
        started = [pool.submit(int) for _ in range(count)]
        all_here.wait()
        for each in started:
            each.result()
        yield pool


def decode_rate(pool: Executor, chunks: Sequence[Chunk], settings: SamplingSettings, at_once: bool) -> float:
    if at_once:
        return _rate(lambda: sum(pool.map(_decode, chunks, repeat(settings))))
    return _rate(lambda: sum(pool.submit(_decode, chunk, settings).result() for chunk in chunks))


def embed_rate(tower: ImageEmbedder, batches: Sequence[NDArray[np.uint8]], cores: int) -> float:
    """Measure embedding by `cores` threads of this process, each on a core of its own. On a GPU they only feed it."""
    with tower.threads(1), ThreadPoolExecutor(cores) as pool:
        return _rate(lambda: sum(map(len, pool.map(tower.embed, batches))))


def _warm(all_here: threading.Barrier) -> None:
    from kinodex.pipeline.decoding import pyav_reader  # noqa: F401

    all_here.wait()


def _decode(chunk: Chunk, settings: SamplingSettings) -> int:
    path = Path(chunk.video.path)
    with open_video(path, path.name, decoder=settings.decoder) as video:
        return sum(1 for _ in rgb_samples(video, chunk, settings, defaultdict(float)))


def _each(items: Sequence[Item], work: Callable[[Item], object]) -> int:
    for item in items:
        work(item)
    return len(items)


def _rate(work: Callable[[], int]) -> float:
    began = time.perf_counter()
    items = work()
    return items / (time.perf_counter() - began)


# Run work in a fresh process, and measure the resources that it uses: memory of its processes, time of the GPU.

MEMORY_EVERY_S, GPU_EVERY_S = 0.2, 1.0
GPU_FIGURES = ("utilization.gpu", "utilization.decoder", "memory.used")
"""As nvidia-smi names them: percent, percent, MiB."""

P = ParamSpec("P")


@dataclass
class ResourceUsage:
    """Peaks of resident memory in bytes, of this process and of its largest descendant; means of GPU_FIGURES."""

    parent_bytes: int = 0
    child_bytes: int = 0
    gpu: dict[str, float] = field(default_factory=dict)


class Lost(Exception):
    """A process that returned no result: it ended by itself, or took too long."""


def run_alone(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `work` in a fresh process, which nothing before it helps or hinders; raises its errors, and Lost."""
    return run_alone_within(None, work, *args, **kwargs)


def run_alone_within(limit_s: float | None, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_send_result, args=(theirs, work, args, kwargs))
    process.start()
    theirs.close()
    try:
        if not ours.poll(limit_s):
            raise Lost(f"it took more than {limit_s:g} s")
        result: T | Exception = ours.recv()
    except EOFError as error:
        process.join()
        raise Lost(f"its process ended with status {process.exitcode}") from error
    finally:
        process.kill()
        process.join()
        ours.close()
    if isinstance(result, Exception):
        raise result
    return result


def _send_result(pipe: Connection, work: Callable[..., object], args: Any, kwargs: Any) -> None:
    try:
        pipe.send(work(*args, **kwargs))
    except Exception as error:  # whatever it is, it is raised where the result is waited for
        pipe.send(error)


@contextmanager
def measure_usage() -> Iterator[ResourceUsage]:
    usage, over = ResourceUsage(), threading.Event()
    samples: dict[str, list[float]] = defaultdict(list)
    threads = [threading.Thread(target=_every, args=(MEMORY_EVERY_S, over, lambda: _sample_memory(usage)))]
    if shutil.which("nvidia-smi"):
        threads.append(threading.Thread(target=_every, args=(GPU_EVERY_S, over, lambda: _sample_gpu(samples))))
    for thread in threads:
        thread.start()
    try:
        yield usage
    finally:
        over.set()
        for thread in threads:
            thread.join()
        usage.gpu = {name: statistics.mean(values) for name, values in samples.items()}


def _every(seconds: float, over: threading.Event, work: Callable[[], None]) -> None:
    work()
    while not over.wait(seconds):
        work()


def _sample_memory(usage: ResourceUsage) -> None:
    usage.parent_bytes = max(usage.parent_bytes, _resident_bytes(os.getpid()))
    usage.child_bytes = max([usage.child_bytes, *map(_resident_bytes, _descendants(os.getpid()))])


def _resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return 0  # it has ended meanwhile


def _descendants(pid: int) -> list[int]:
    children: list[int] = []
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children += map(int, listing.read_text().split())
        except OSError:
            continue  # a thread that has ended meanwhile
    return children + [each for child in children for each in _descendants(child)]


def _sample_gpu(samples: dict[str, list[float]]) -> None:
    """Add the figures of the busiest GPU, each figure for itself."""
    command = ["nvidia-smi", f"--query-gpu={','.join(GPU_FIGURES)}", "--format=csv,noheader,nounits"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    rows = [line.split(", ") for line in done.stdout.splitlines()] if done.returncode == 0 else []
    for name, column in zip(GPU_FIGURES, zip(*rows, strict=True), strict=False):
        values = [float(value) for value in column if value.replace(".", "").isdigit()]
        if values:
            samples[name].append(max(values))


# The script that people write to embed a video, to compare an ingest with: decord and open_clip, nothing stored.


def reason_missing() -> str | None:
    """Give the reason why the plain script cannot run here, if there is one."""
    return None if importlib.util.find_spec("decord") else "decord is not installed; pip install decord"


def run_plain_script(paths: Sequence[Path], space: str, device: str, fps: float, batch: int) -> tuple[int, float]:
    """Embed the videos; returns the number of frames and the seconds spent, with the model loaded.

    In fp32, as open_clip loads a model, with open_clip's own preprocessing of the full picture, and with as many
    threads as its libraries take by themselves. Run it in a fresh process.
    """
    import torch

    from kinodex.pipeline.decoding.others import plain_frames

    model, preprocess = _load(space, device)
    from PIL import Image

    count = 0
    began = time.perf_counter()
    with torch.inference_mode():
        for path in paths:
            for frames in plain_frames(path, fps, batch):
                images = torch.stack([preprocess(Image.fromarray(frame)) for frame in frames])
                features = torch.nn.functional.normalize(model.encode_image(images.to(device)), dim=-1)
                count += len(features.cpu().numpy())
    return count, time.perf_counter() - began


def _load(space: str, device: str) -> tuple[Any, Any]:
    """Load the model and its preprocessing as open_clip does by name."""
    from kinodex.index.spaces.space import import_open_clip, model_name

    open_clip = import_open_clip()
    named = model_name(open_clip, space)
    model = open_clip.create_model(
        named.model,
        pretrained=named.pretrained,
        force_quick_gelu=named.quick_gelu,
        force_preprocess_cfg=dict(named.preprocess),
        device=device,
    )
    settings = open_clip.transform.PreprocessCfg(**model.visual.preprocess_cfg)
    return model.eval(), open_clip.transform.image_transform_v2(settings, is_train=False)
