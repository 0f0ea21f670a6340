"""How fast one video becomes rows, against the slower of decoding it and embedding it: `kinodex bench ingest`.

All figures are taken in one run on one machine, in turn, and the medians of the rounds are compared, because times of
different runs do not compare on a shared machine.
"""

from __future__ import annotations

import os
import platform
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.library import Library
from index.spaces import Space
from jobs.ingest import Report, ingest
from jobs.settings import library_settings
from pipeline.decode import VideoReader, open_video
from pipeline.ingest import IngestSettings, decoded
from pipeline.pictures import jpeg
from pipeline.sources import Source

KEPT_FRAMES = 256
"""Frames held in memory for the embed-only and JPEG-only figures, however long the video."""

MEASURED_WITH = ("kinodex", "av", "torch", "open_clip_torch", "lancedb")


@dataclass(frozen=True, slots=True)
class IngestFigures:
    """Medians over the rounds. Rates are frames a second; `ratio` is end to end over the slower single stage."""

    video: str
    picture: str
    space: str
    fps: float
    rounds: int
    frames: int
    video_s: float
    end_to_end: float
    end_to_end_video_s: float
    decode_only: float
    embed_only: float
    jpeg_only: float
    ratio: float
    machine: str
    versions: str


def bench_ingest(path: Path, space: Space, settings: IngestSettings, rounds: int) -> IngestFigures:
    """Measure ingest of one video, `rounds` times after a warm-up of the model.

    Raises a PipelineError if the video cannot be read.
    """
    with open_video(path) as video:
        facts = video.facts
        kept = list(islice(_pictures(video, space, settings), KEPT_FRAMES))
    _embed(kept[: settings.batch_size], space, settings.batch_size)
    rounds_of: dict[str, list[float]] = {"whole": [], "decode": [], "embed": [], "jpeg": []}
    for _ in range(rounds):
        rounds_of["decode"].append(_rate(lambda: _decode(path, space, settings)))
        rounds_of["embed"].append(_rate(lambda: _embed(kept, space, settings.batch_size)))
        rounds_of["jpeg"].append(_rate(lambda: _pack(kept, settings)))
        report = _ingest(path, space, settings)
        rounds_of["whole"].append(report.frames / report.seconds)
    rates = {name: statistics.median(values) for name, values in rounds_of.items()}
    return IngestFigures(
        video=path.name,
        picture=f"{facts.width_px}x{facts.height_px} {facts.codec}",
        space=space.name,
        fps=settings.fps,
        rounds=rounds,
        frames=report.frames,
        video_s=report.video_s,
        end_to_end=rates["whole"],
        end_to_end_video_s=rates["whole"] * report.video_s / report.frames,
        decode_only=rates["decode"],
        embed_only=rates["embed"],
        jpeg_only=rates["jpeg"],
        ratio=rates["whole"] / min(rates["decode"], rates["embed"]),
        machine=f"{platform.system()} {platform.machine()}, {len(os.sched_getaffinity(0))} cores",
        versions=", ".join(f"{name} {version(name)}" for name in MEASURED_WITH),
    )


def table(figures: IngestFigures) -> str:
    """The figures as lines for people."""
    f = figures
    return "\n".join(
        [
            f"{f.video}: {f.picture}, {f.video_s:.1f} s, {f.frames} frames at {f.fps:g} fps, space {f.space}",
            f"  end to end   {f.end_to_end:9.1f} frames/s   {f.end_to_end_video_s:7.1f} s of video a second",
            f"  decode only  {f.decode_only:9.1f} frames/s",
            f"  embed only   {f.embed_only:9.1f} frames/s",
            f"  JPEG only    {f.jpeg_only:9.1f} frames/s",
            f"  ratio        {f.ratio:9.2f}   end to end to the slower of decode and embed, median of {f.rounds}",
            f"  {f.machine}; {f.versions}",
        ]
    )


def _rate(work: Callable[[], int]) -> float:
    """Items a second of `work`, which returns how many items it did."""
    began = time.perf_counter()
    items = work()
    return items / (time.perf_counter() - began)


def _pictures(video: VideoReader, space: Space, settings: IngestSettings) -> Iterator[NDArray[np.uint8]]:
    return (rgb for _, _, rgb in decoded(video, settings, space, defaultdict(float)))


def _decode(path: Path, space: Space, settings: IngestSettings) -> int:
    with open_video(path) as video:
        return sum(1 for _ in _pictures(video, space, settings))


def _embed(pictures: list[NDArray[np.uint8]], space: Space, batch_size: int) -> int:
    for first in range(0, len(pictures), batch_size):
        space.embed(np.stack([space.prepare(rgb) for rgb in pictures[first : first + batch_size]]))
    return len(pictures)


def _pack(pictures: list[NDArray[np.uint8]], settings: IngestSettings) -> int:
    for rgb in pictures:
        jpeg(rgb, settings.jpeg_side_px, settings.jpeg_quality)
    return len(pictures)


def _ingest(path: Path, space: Space, settings: IngestSettings) -> Report:
    with tempfile.TemporaryDirectory() as folder:
        library = Library.open_or_create(f"{folder}/library", library_settings(settings), space.fingerprint)
        return ingest([Source(str(path), path.name)], library, space, settings)
