"""Rates of decoding alone and embedding alone, on CPUs and on a GPU; each for a process of its own.

Every measurement goes on for a number of seconds, whatever the machine's speed, and is warm before its clock starts.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import cycle, repeat
from pathlib import Path

import numpy as np

from jobs.bench import stages
from jobs.bench.resource_usage import measure_usage
from pipeline.decoding.gpu_reader import GpuReader
from pipeline.decoding.open import open_video
from pipeline.decoding.pyav_reader import PyavReader
from pipeline.images.convert import ModelInput
from pipeline.sampling.sample import Chunk, SamplingSettings, rgb_samples
from pipeline.sources.fetch import FetchedVideo, Source

EMBED_BATCHES = 4
"""Different batches that are embedded in turn."""
FEEDERS = 2
"""Threads that feed a GPU, so that one sends a batch while the other's is computed."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Frames a second of one stage, and the resources of its processes.

    Memory in MB is resident, at its peak, of the process and of its largest child; `gpu` as in
    `jobs.bench.resource_usage`. `remark` says why the rate is not that of what it is called after.
    """

    frames_a_s: float
    parent_mb: float
    child_mb: float
    gpu: dict[str, float]
    remark: str = ""


def decode_on_cpus(films: Sequence[Path], settings: SamplingSettings, processes: int, work_s: float) -> Rate:
    """Measure decoding and scaling to RGB with PyAV, one film a process at a time."""
    with measure_usage() as usage, stages.warm_processes(processes) as pool:
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

    from index.embedding.space import load_space

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
