"""The stages of an ingest, each alone: how many frames a second on one core, and on all of them."""

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
from pipeline.sampling.sample import rgb_samples
from pipeline.sampling.types import Chunk, SamplingSettings
from pipeline.sources.discover import Source
from pipeline.sources.fetch import FetchedVideo

if TYPE_CHECKING:
    from index.embedding.space import Space

KEPT_FRAMES = 256
"""Frames held in memory for all stages but decoding, however long the videos."""

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Kept:
    """Some pictures `[H, W, 3]`, and what the model is given of them, in batches `[n, 3, h, w]`."""

    pictures: tuple[NDArray[np.uint8], ...]
    batches: tuple[NDArray[np.uint8], ...]


def pieces_of(paths: Sequence[Path], reading: SamplingSettings) -> tuple[list[Chunk], list[Chunk]]:
    """The videos whole, and cut as an ingest cuts them."""
    whole = [Chunk(FetchedVideo(Source(str(path), path.name), str(path), "", path.stat().st_size)) for path in paths]
    parts: list[Chunk] = []
    for chunk in whole:
        path = Path(chunk.video.path)
        spans = split_video(path, path.name, reading.fps, reading.cut_s) if reading.cut_s else ()
        parts += [Chunk(chunk.video, span, len(spans), index) for index, span in enumerate(spans)] or [chunk]
    return whole, parts


def keep(chunks: Sequence[Chunk], reading: SamplingSettings) -> Kept:
    """The first frames of the videos. Raises PipelineError if one that it opens cannot be read."""
    pictures: list[NDArray[np.uint8]] = []
    for chunk in chunks:
        path = Path(chunk.video.path)
        with open_video(path, path.name, decoder=reading.decoder) as video:
            frames = rgb_samples(video, chunk, reading, defaultdict(float))
            pictures += [rgb for _, _, rgb in islice(frames, KEPT_FRAMES - len(pictures))]
            frames.close()
    size = min(reading.batch, len(pictures))
    inputs = [reading.input(rgb) for rgb in pictures]
    batches = [np.stack(inputs[first : first + size]) for first in range(0, len(inputs) - size + 1, size)]
    return Kept(tuple(pictures), tuple(batches))


@contextmanager
def warm_processes(count: int) -> Iterator[Executor]:
    """Processes with the decoder loaded."""
    context = get_context("spawn")
    all_here = context.Barrier(count + 1)
    with ProcessPoolExecutor(count, context, initializer=_warm, initargs=(all_here,)) as pool:
        started = [pool.submit(int) for _ in range(count)]
        all_here.wait()
        for each in started:
            each.result()
        yield pool


def decode_rate(pool: Executor, chunks: Sequence[Chunk], reading: SamplingSettings, at_once: bool) -> float:
    """Decoding and scaling to RGB, all pieces at once or one after the other on one core."""
    if at_once:
        return _rate(lambda: sum(pool.map(_decode, chunks, repeat(reading))))
    return _rate(lambda: sum(pool.submit(_decode, chunk, reading).result() for chunk in chunks))


def embed_rate(space: Space, batches: Sequence[NDArray[np.uint8]], cores: int) -> float:
    """Embedding by so many threads of this process, each on a core of its own. On a GPU they only feed it."""
    import torch

    torch.set_num_threads(1)
    with ThreadPoolExecutor(cores) as pool:
        return _rate(lambda: sum(map(len, pool.map(space.embed, batches))))


def jpeg_rate(pictures: Sequence[NDArray[np.uint8]], reading: SamplingSettings) -> float:
    """Making the JPEGs that are stored, on one core."""
    return _rate(lambda: _each(pictures, lambda rgb: jpeg(rgb, reading.jpeg_side_px, reading.jpeg_quality)))


def prepare_rate(pictures: Sequence[NDArray[np.uint8]], reading: SamplingSettings) -> float:
    """Scaling and cutting pictures to the model's input, on one core."""
    return _rate(lambda: _each(pictures, reading.input))


def _warm(all_here: threading.Barrier) -> None:
    from pipeline.decoding import pyav_reader  # noqa: F401

    all_here.wait()


def _decode(chunk: Chunk, reading: SamplingSettings) -> int:
    path = Path(chunk.video.path)
    with open_video(path, path.name, decoder=reading.decoder) as video:
        return sum(1 for _ in rgb_samples(video, chunk, reading, defaultdict(float)))


def _each(items: Sequence[Item], work: Callable[[Item], object]) -> int:
    for item in items:
        work(item)
    return len(items)


def _rate(work: Callable[[], int]) -> float:
    """Items a second of `work`, which returns how many items it did."""
    began = time.perf_counter()
    items = work()
    return items / (time.perf_counter() - began)
