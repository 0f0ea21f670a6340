"""Rates of the stages of an ingest, each alone: frames a second on one core, and on all of them."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, repeat
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from pipeline.decoding.open import open_video
from pipeline.decoding.split_video import split_video
from pipeline.images.convert import jpeg
from pipeline.sampling.sample import Chunk, SamplingSettings, rgb_samples
from pipeline.sources.fetch import FetchedVideo, Source

if TYPE_CHECKING:
    from index.embedding.embedders import ImageEmbedder

MATERIAL_FRAMES = 256
"""Frames held in memory for all stages but decoding, however long the videos."""

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Material:
    """RGB frames `[H, W, 3]`, and the model's inputs made of them, in batches `[n, 3, h, w]`."""

    frames: tuple[NDArray[np.uint8], ...]
    batches: tuple[NDArray[np.uint8], ...]


def make_chunks(paths: Sequence[Path], settings: SamplingSettings) -> tuple[list[Chunk], list[Chunk]]:
    """Make chunks of the videos: each whole, and split as an ingest splits them."""
    whole = [Chunk(FetchedVideo(Source(str(path), path.name), str(path), "", path.stat().st_size)) for path in paths]
    parts: list[Chunk] = []
    for chunk in whole:
        path = Path(chunk.video.path)
        spans = split_video(path, path.name, settings.fps, settings.cut_s) if settings.cut_s else ()
        parts += [Chunk(chunk.video, span, len(spans), index) for index, span in enumerate(spans)] or [chunk]
    return whole, parts


def load_material(chunks: Sequence[Chunk], settings: SamplingSettings) -> Material:
    """Decode the first frames of the videos. Raises PipelineError if one that it opens cannot be read."""
    frames: list[NDArray[np.uint8]] = []
    for chunk in chunks:
        path = Path(chunk.video.path)
        with open_video(path, path.name, decoder=settings.decoder) as video:
            samples = rgb_samples(video, chunk, settings, defaultdict(float))
            frames += [rgb for _, _, rgb in islice(samples, MATERIAL_FRAMES - len(frames))]
            samples.close()
    size = min(settings.batch, len(frames))
    inputs = [settings.input(rgb) for rgb in frames]
    batches = [np.stack(inputs[first : first + size]) for first in range(0, len(inputs) - size + 1, size)]
    return Material(tuple(frames), tuple(batches))


@contextmanager
def warm_processes(count: int) -> Iterator[Executor]:
    """Start processes with the decoder loaded."""
    context = get_context("spawn")
    all_here = context.Barrier(count + 1)
    with ProcessPoolExecutor(count, context, initializer=_warm, initargs=(all_here,)) as pool:
        started = [pool.submit(int) for _ in range(count)]
        all_here.wait()
        for each in started:
            each.result()
        yield pool


def decode_rate(pool: Executor, chunks: Sequence[Chunk], settings: SamplingSettings, at_once: bool) -> float:
    """Measure decoding and scaling to RGB, all chunks at once or one after the other on one core."""
    if at_once:
        return _rate(lambda: sum(pool.map(_decode, chunks, repeat(settings))))
    return _rate(lambda: sum(pool.submit(_decode, chunk, settings).result() for chunk in chunks))


def embed_rate(tower: ImageEmbedder, batches: Sequence[NDArray[np.uint8]], cores: int) -> float:
    """Measure embedding by `cores` threads of this process, each on a core of its own. On a GPU they only feed it."""
    with tower.threads(1), ThreadPoolExecutor(cores) as pool:
        return _rate(lambda: sum(map(len, pool.map(tower.embed, batches))))


def jpeg_rate(frames: Sequence[NDArray[np.uint8]], settings: SamplingSettings) -> float:
    """Measure making the JPEGs that are stored, on one core."""
    return _rate(lambda: _each(frames, lambda rgb: jpeg(rgb, settings.jpeg_side_px, settings.jpeg_quality)))


def prepare_rate(frames: Sequence[NDArray[np.uint8]], settings: SamplingSettings) -> float:
    """Measure scaling and cropping frames to the model's input, on one core."""
    return _rate(lambda: _each(frames, settings.input))


def _warm(all_here: threading.Barrier) -> None:
    from pipeline.decoding import pyav_reader  # noqa: F401

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
    """Measure the items a second of `work`, which returns their number."""
    began = time.perf_counter()
    items = work()
    return items / (time.perf_counter() - began)
