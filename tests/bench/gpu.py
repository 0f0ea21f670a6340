"""Measure an ingest on a machine with a GPU, in less time than a limit: `python -m tests.bench.gpu`.

The stages alone first, each in a process of its own: decoding on CPUs and by NVDEC, embedding on CPUs and the GPU. Then
whole ingests by every way that the machine has, of as many films as the stages can do in `work_s`. Then the rows of
each way against those of the CPU. A part that is missing here, that fails or that finds no time left is a row that
says so.
"""

from __future__ import annotations

import io
import json
import os
import platform
import shutil
import struct
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from itertools import cycle, islice, repeat
from pathlib import Path
from typing import Annotated, ParamSpec, TypeVar

import numpy as np
import typer
from numpy.typing import NDArray
from PIL import Image

from kinodex.doctor.alone import Lost, run_alone_within
from kinodex.errors import KinodexError
from kinodex.index.library import Library
from kinodex.jobs.ingest.config import IngestConfig, resolve
from kinodex.jobs.ingest.models import MOST_LOCAL_WORKERS
from kinodex.output import tell
from kinodex.pipeline.decoding.open import open_video, probe
from kinodex.pipeline.decoding.pyav_reader import PyavReader
from kinodex.pipeline.fetch import FetchedVideo
from kinodex.pipeline.gpu import GpuReader
from kinodex.pipeline.images import ModelInput
from kinodex.pipeline.sample import Chunk, SamplingSettings, rgb_samples
from kinodex.pipeline.source import Source
from kinodex.pipeline.video_writer import encode_video, repeat_video
from tests.bench import ingest
from tests.bench.figures import FpsOption, JsonOption, show
from tests.bench.ingest import WholeIngest, ingest_films, measure_usage
from tests.bench.random_space import make_random_space
from tests.world.sketch.render import draw_frames
from tests.world.sketch.script import write_script

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

    `preprocess` as in the space's fingerprint.
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
        except (Lost, KinodexError, RuntimeError) as error:  # torch and CUDA raise RuntimeError
            return None, f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"

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
        films = list(videos)
        if not films:
            report("drawing a film ...")
            films = [folder / "film.mp4"]
            draw_film(films[0])
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
    arguments = (way.device, bench.config.space, bench.sampling(way).batch, bench.cores, bench.work_s, on_device)
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
    from kinodex.index.spaces.space import load_space

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


# Ways of an ingest on this machine: where frames are decoded and embedded, and what a way lacks here.

NO_GPU = "torch sees no GPU here"


@dataclass(frozen=True, slots=True)
class Way:
    """One way to ingest: a `decoder` setting and a `device` setting. `missing`: why it is left out here."""

    name: str
    decoder: str
    device: str
    missing: str | None = None


REFERENCE = Way("CPU", "auto", "cpu")
"""The way that the others are compared with."""
CONTROL = Way("CPU, again", "auto", "cpu")
"""What two runs of the same way differ by."""
EMBEDS_ON_GPU = Way("GPU embeds", "auto", "cuda")
ALL_ON_GPU = Way("GPU decodes and embeds", "nvdec", "cuda")
GPU_CODE_ON_CPU = Way("code for the GPU, on the CPU", "nvdec", "cpu")


def list_ways(film: Path, with_gpu: bool = True) -> list[Way]:
    """List the ways, those that are left out here too, the reference first.

    With a GPU that torch sees they are the reference and those on the GPU; without one, or with `with_gpu` false, the
    control and the GPU's code on the CPU take their places. `film` is opened to see whether NVDEC decodes it.
    """
    import torch

    if not with_gpu or not torch.cuda.is_available():
        why = NO_GPU if with_gpu else "the GPU is not to be used"
        on_gpu = [replace(way, missing=why) for way in (EMBEDS_ON_GPU, ALL_ON_GPU)]
        return [REFERENCE, CONTROL, replace(GPU_CODE_ON_CPU, missing=_reason_unread(film, "cpu")), *on_gpu]
    return [REFERENCE, EMBEDS_ON_GPU, replace(ALL_ON_GPU, missing=_reason_unread(film, "cuda"))]


def _reason_unread(film: Path, device: str) -> str | None:
    """Explain why torchcodec does not decode `film` on `device`; None if it does."""
    from kinodex.pipeline.decoding.readers import PickError
    from kinodex.pipeline.decoding.torchcodec_reader import open_decoder

    try:
        open_decoder(film, probe(film).stream_index, device)
    except PickError as error:
        return str(error)
    return None


# Rates of decoding alone and embedding alone, on CPUs and on a GPU; each for a process of its own.
#
# Every measurement goes on for a number of seconds, whatever the machine's speed, and is warm before its clock starts.

EMBED_BATCHES = 4
"""Different batches that are embedded in turn."""
FEEDERS = 2
"""Threads that feed a GPU, so that one sends a batch while the other's is computed."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Frames a second of one stage, and the resources of its processes.

    Memory in MB is resident, at its peak, of the process and of its largest child; `gpu` as in
    `tests.bench.ingest`. `remark` says why the rate is not that of what it is called after.
    """

    frames_a_s: float
    parent_mb: float
    child_mb: float
    gpu: dict[str, float]
    remark: str = ""


def decode_on_cpus(films: Sequence[Path], settings: SamplingSettings, processes: int, work_s: float) -> Rate:
    """Measure decoding and scaling to RGB with PyAV, one film a process at a time."""
    with measure_usage() as usage, ingest.warm_processes(processes) as pool:
        turns = [_turn(films, number) for number in range(processes)]
        rates = list(pool.map(_decode_for, turns, repeat(settings), repeat(work_s)))
    return Rate(sum(rates), usage.parent_bytes / 1e6, usage.child_bytes / 1e6, usage.gpu)


def decode_on_device(
    films: Sequence[Path], settings: SamplingSettings, device: str, threads: int, work_s: float
) -> Rate:
    """Measure decoding to model inputs and small images with torchcodec, in as many threads as an ingest has workers.

    The frames of films that PyAV read in its place are counted too; `remark` says so.
    """
    fell_back: Counter[str] = Counter()
    with closing(_read_on_device(films, settings, device, fell_back)) as frames:
        next(frames)  # loads the libraries and makes the context of the device
    fell_back.clear()

    def work(thread: int) -> float:
        with closing(_read_on_device(_turn(films, thread), settings, device, fell_back)) as frames:
            return _rate_for(work_s, frames)

    with measure_usage() as usage, ThreadPoolExecutor(threads) as pool:
        rates = list(pool.map(work, range(threads)))
    remark = "; ".join(f"PyAV read {count} times: {reason}" for reason, count in fell_back.items())
    return Rate(sum(rates), usage.parent_bytes / 1e6, usage.child_bytes / 1e6, usage.gpu, remark)


def embed_on(device: str, space_name: str, batch: int, cores: int, work_s: float, on_device: bool = False) -> Rate:
    """Measure embedding batches of noise that lie in memory, or `on_device` on the device already.

    On a CPU a thread embeds on each core, as the workers of an ingest do; FEEDERS threads feed a GPU.
    """
    import torch

    from kinodex.index.spaces.space import load_space

    space = load_space(space_name, device=device, towers="image")
    model_input = ModelInput.from_json(space.fingerprint.preprocess)
    size = (EMBED_BATCHES, batch, 3, model_input.height_px, model_input.width_px)
    noise = list(np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8))
    batches = [torch.from_numpy(each).to(device) for each in noise] if on_device else noise
    threads = cores if space.device_type == "cpu" else FEEDERS

    def work(_: int) -> float:
        return _rate_for(work_s, (len(space.embed(each)) for each in cycle(batches)))

    with space.threads(1 if space.device_type == "cpu" else cores), ThreadPoolExecutor(threads) as pool:
        for each in batches[:2]:  # the first settles the arithmetic
            space.embed(each)
        with measure_usage() as usage:
            frames_a_s = sum(pool.map(work, range(threads)))
    return Rate(frames_a_s, usage.parent_bytes / 1e6, usage.child_bytes / 1e6, usage.gpu, space.arithmetic)


def _decode_for(films: Sequence[Path], settings: SamplingSettings, work_s: float) -> float:
    with closing(_decoded(films, settings)) as frames:
        return _rate_for(work_s, frames)


def _decoded(films: Sequence[Path], settings: SamplingSettings) -> Generator[int, None, None]:
    """Decode film after film without end; yields 1 for each frame."""
    for film in cycle(films):
        chunk = Chunk(FetchedVideo(Source(str(film), film.name), str(film), "", film.stat().st_size))
        with (
            open_video(film, film.name, decoder="pyav") as video,
            closing(rgb_samples(video, chunk, settings, defaultdict(float))) as samples,
        ):
            for _ in samples:
                yield 1


def _read_on_device(
    films: Sequence[Path], settings: SamplingSettings, device: str, fell_back: Counter[str]
) -> Generator[int, None, None]:
    """Decode film after film without end; yields the frames of each batch, and counts why PyAV read a film instead."""
    for film in cycle(films):
        with closing(PyavReader(film, film.name)) as exact:
            reader = GpuReader(exact, device)
            with closing(reader.batches(settings.fps, settings.input, settings.jpeg_side_px)) as batches:
                for number, batch in enumerate(batches):
                    if number == 0 and reader.fell_back:
                        fell_back[reader.fell_back] += 1
                    yield len(batch.numbers)


def _turn(films: Sequence[Path], number: int) -> list[Path]:
    """Reorder films so that several readers begin with different ones."""
    first = number % len(films)
    return [*films[first:], *films[:first]]


def _rate_for(work_s: float, counts: Iterator[int]) -> float:
    """Measure the items a second of an iterator without end, which yields how many it has done each time."""
    began, items = time.perf_counter(), 0
    while (spent_s := time.perf_counter() - began) < work_s or not items:
        items += next(counts)
    return items / spent_s


# The rows of two ways, compared.

MIN_COSINE = 0.999
"""Vectors of two ways are equal from this cosine on."""


@dataclass(frozen=True, slots=True)
class Equality:
    """Rows of two libraries compared, over all videos of the same bytes.

    `min_psnr_db` is the lowest of the stored pictures; None where all are equal.
    """

    frames: int
    same_times: bool
    min_cosine: float
    mean_cosine: float
    min_psnr_db: float | None

    @property
    def holds(self) -> bool:
        """True if times are equal and no cosine is below MIN_COSINE."""
        return self.same_times and self.min_cosine >= MIN_COSINE


def compare(one: Path, other: Path, most_videos: int = 2) -> Equality:
    """Compare the rows of the first videos that two libraries share. Raises ValueError if they share none."""
    left, right = Library.open(str(one)), Library.open(str(other))
    shared = sorted(left.video_ids() & right.video_ids())[:most_videos]
    if not shared:
        raise ValueError(f"{one} and {other} hold no video in common; ingest the same files into both")
    same_times, cosines, psnr_db = True, [np.zeros(0)], [np.inf]
    for video_id in shared:
        mine, theirs = left.vectors(video_id), right.vectors(video_id)
        if mine.frame_no.tolist() != theirs.frame_no.tolist() or mine.time_s.tolist() != theirs.time_s.tolist():
            same_times = False
            continue
        cosines.append(_cosines(mine.vectors, theirs.vectors))
        numbers = mine.frame_no.tolist()
        pairs = zip(left.frames(video_id, numbers), right.frames(video_id, numbers), strict=True)
        psnr_db += [_psnr_db(_pixels(a.jpeg), _pixels(b.jpeg)) for a, b in pairs]
    found = np.concatenate(cosines)
    lowest, mean = (float(found.min()), float(found.mean())) if len(found) else (0.0, 0.0)
    worst_db = float(min(psnr_db))
    return Equality(len(found), same_times, lowest, mean, worst_db if np.isfinite(worst_db) else None)


def _cosines(one: NDArray[np.float16], other: NDArray[np.float16]) -> NDArray[np.float64]:
    """Cosines of the rows of two `[n, dim]`; rounding to float16 leaves lengths that are not quite one."""
    left, right = one.astype(np.float64), other.astype(np.float64)
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    cosines: NDArray[np.float64] = (left * right).sum(axis=1) / lengths
    return cosines


def _pixels(jpeg: bytes) -> NDArray[np.float64]:
    return np.asarray(Image.open(io.BytesIO(jpeg)).convert("RGB"), np.float64)


def _psnr_db(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Compute the peak signal-to-noise ratio of 8-bit pictures; 0 for pictures of different sizes."""
    if one.shape != other.shape:
        return 0.0
    error = float(((one - other) ** 2).mean())
    return 10 * np.log10(255**2 / error) if error else float("inf")


# Films to measure decoding with: drawn here, of the size and with the grain of camera footage.

FPS, KEY_FRAME_S = 24, 10
DRAWN_S, REPEATS = 20, 6
"""Seconds that are drawn, and their repeats in a film of two minutes."""
SIZE_PX = (1280, 720)
GRAIN, GRAIN_PX, GRAINS = 10, 2, 8
"""Levels that grain adds or takes away at most, its size, and the number of different fields of it."""
SCRIPT_S = 60.0
MP4_SUFFIXES = (".mp4", ".m4v", ".mov")


def draw_film(path: Path, seconds: int = DRAWN_S, repeats: int = REPEATS, size_px: tuple[int, int] = SIZE_PX) -> None:
    """Draw a sketch film with grain, encode it as H.264 at 24 frames a second, and repeat it to its length.

    Grain keeps the encoder from coding most blocks as unchanged, which would make the film cheaper to decode than
    footage is.
    """
    short = path.with_name(f"short-{path.name}")
    frames = islice(_frames(size_px), seconds * FPS)
    encode_video(frames, short, width_px=size_px[0], height_px=size_px[1], fps=FPS, key_frame_s=KEY_FRAME_S)
    repeat_video(short, path, repeats)
    short.unlink()


def number_copies(films: Sequence[Path], folder: Path, count: int) -> list[Path]:
    """Make `count` videos of `films`, each other bytes and so another video to a library, with the same frames.

    An MP4 file takes an empty box at its end; a film in another container is used once, as it is.
    """
    copies = list(films[:count])
    sources = [film for film in films if film.suffix.lower() in MP4_SUFFIXES]
    for number in range(count - len(copies) if sources else 0):
        film = sources[number % len(sources)]
        copy = folder / f"copy-{number:03d}{film.suffix}"
        if not copy.exists():
            copy.write_bytes(film.read_bytes() + struct.pack(">I4sI", 12, b"free", number))
        copies.append(copy)
    return copies


def _frames(size_px: tuple[int, int]) -> Iterator[NDArray[np.uint8]]:
    """Draw the frames of a script in px of another size, with grain."""
    width_px, height_px = size_px
    random = np.random.default_rng(0)
    cells = (GRAINS, -(-height_px // GRAIN_PX), -(-width_px // GRAIN_PX), 1)
    fields = random.integers(-GRAIN, GRAIN + 1, cells, dtype=np.int16)
    fields = fields.repeat(GRAIN_PX, 1).repeat(GRAIN_PX, 2)[:, :height_px, :width_px]
    for number, frame in enumerate(draw_frames(write_script("film", SCRIPT_S, 5))):
        scaled = Image.fromarray(frame).resize(size_px, Image.Resampling.BILINEAR)
        yield np.clip(np.asarray(scaled, np.int16) + fields[number % GRAINS], 0, 255).astype(np.uint8)


# The figures of `kinodex bench gpu` as one table in Markdown.

HEAD = "| what | frames/s | times real time | of the slower stage | busy | GPU | memory, MB | rows | remark |"
GPU_NAMES = {"utilization.gpu": "cores {:.0f} %", "utilization.decoder": "NVDEC {:.0f} %", "memory.used": "{:,.0f} MiB"}
ABSENT = "–"


def table(figures: GpuFigures) -> str:
    """Write the figures, with what was left out and why."""
    lines = [
        f"{figures.picture}; {figures.space}, {figures.fps:g} frames a second sampled",
        f"{figures.machine}; {figures.versions}; measured in {figures.seconds:,.0f} s",
        "",
        HEAD,
        "|" + "---|" * (HEAD.count("|") - 1),
        *(_stage_line(stage, figures.fps) for stage in figures.stages),
        *(_way_line(whole) for whole in figures.ways),
        "",
        "times real time: seconds of video a second; busy: part of their time that workers decoded, embedded and "
        "wrote; GPU: averages by nvidia-smi; memory: resident at its peak, of the process and of its largest child; "
        f"rows: against those of the CPU, which they equal if all times do and no cosine is below {MIN_COSINE}",
    ]
    return "\n".join(lines)


def write_files(figures: GpuFigures, folder: Path) -> None:
    """Write gpu.md and gpu.json to a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gpu.md").write_text(table(figures) + "\n", encoding="utf-8")
    text = json.dumps(asdict(figures), ensure_ascii=False, indent=2)
    (folder / "gpu.json").write_text(text + "\n", encoding="utf-8")


def _stage_line(stage: Stage, fps: float) -> str:
    rate = stage.rate
    if rate is None:
        return _line(stage.name, remark=f"left out: {stage.missing}")
    return _line(
        stage.name,
        f"{rate.frames_a_s:,.1f}",
        f"{rate.frames_a_s / fps:,.0f}",
        gpu=_gpu(rate.gpu),
        memory=f"{rate.parent_mb:,.0f} + {rate.child_mb:,.0f}",
        remark=rate.remark,
    )


def _way_line(whole: WholeWay) -> str:
    name, done = f"**end to end, {whole.way.name}**", whole.ingest
    if done is None:
        return _line(name, remark=f"left out: {whole.missing}")
    fell_back = [f"PyAV read {count}: {reason}" for reason, count in done.fell_back.items()]
    return _line(
        name,
        f"{done.frames / done.seconds:,.1f}",
        f"{done.video_s / done.seconds:,.0f}",
        f"{whole.part:.2f}" if whole.part is not None else ABSENT,
        ", ".join(f"{stage} {part:.0%}" for stage, part in done.busy.items()),
        _gpu(done.gpu),
        f"{done.parent_mb:,.0f} + {done.child_mb:,.0f}",
        _rows(whole),
        "; ".join([f"{done.films} films, {done.frames:,} frames committed", done.arithmetic, *fell_back]),
    )


def _rows(whole: WholeWay) -> str:
    equality = whole.equality
    if equality is None:
        return ABSENT
    times = "times equal" if equality.same_times else "**times differ**"
    cosine = f"cosine at least {equality.min_cosine:.5f}, on average {equality.mean_cosine:.5f}"
    verdict = "equal" if equality.holds else "**not equal**"
    psnr_db = equality.min_psnr_db
    pictures = "pictures equal" if psnr_db is None else f"pictures at least {psnr_db:.1f} dB"
    return f"{verdict}: {times}, {cosine}, {pictures}, of {equality.frames} frames"


def _gpu(means: Mapping[str, float]) -> str:
    return ", ".join(GPU_NAMES[name].format(value) for name, value in means.items()) or ABSENT


def _line(
    what: str,
    rate: str = ABSENT,
    speed: str = ABSENT,
    part: str = ABSENT,
    busy: str = ABSENT,
    gpu: str = ABSENT,
    memory: str = ABSENT,
    rows: str = ABSENT,
    remark: str = "",
) -> str:
    return f"| {' | '.join([what, rate, speed, part, busy, gpu, memory, rows, remark.replace('|', '/')])} |"


def main(
    video: Annotated[
        list[Path] | None, typer.Argument(exists=True, help="Videos to measure on. Default: a film drawn here.")
    ] = None,
    space: Annotated[
        str | None, typer.Option(help="Embedding space. Default: the default space's architecture, random weights.")
    ] = None,
    fps: FpsOption = 1.0,
    seconds: Annotated[float, typer.Option(min=0.1, help="Length of each measurement in seconds, about.")] = 25.0,
    limit: Annotated[float, typer.Option(min=1.0, help="Seconds after which nothing more is begun.")] = 560.0,
    with_gpu: Annotated[bool, typer.Option("--gpu/--no-gpu", help="Use the GPU, if there is one.")] = True,
    out: Annotated[Path | None, typer.Option(help="Folder for gpu.md and gpu.json as well.")] = None,
    json: JsonOption = False,
) -> None:
    """Measure a machine with a GPU in ten minutes: decoding, embedding, whole ingests, and rows equal to the CPU's.

    Other settings come from the environment, such as KINODEX_INGEST_WORKERS=16. What is not there is left out and said.
    """
    resolved = resolve({"space": space, "fps": fps}, {}, os.environ, None, {})
    random_weights = "space" not in resolved.origins
    figures = bench_gpu(video or [], resolved.config, seconds, limit, with_gpu, random_weights, tell)
    if out is not None:
        write_files(figures, out)
    show(figures, table(figures), json)


if __name__ == "__main__":
    typer.run(main)
