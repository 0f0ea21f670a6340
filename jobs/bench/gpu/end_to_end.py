"""Ingest films by one way into a library that stays, and compare the rows of two ways."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.library import Library
from jobs.bench.resource_usage import measure_usage
from jobs.ingest.config import IngestConfig
from pipeline.sources.fetch import Source

MIN_COSINE = 0.999
"""Vectors of two ways are equal from this cosine on."""


@dataclass(frozen=True, slots=True)
class WholeIngest:
    """One ingest, from the moment that the model is loaded until its rows are committed.

    `frames` are those that the library holds at the end; `busy` is the part of their time that workers decoded,
    embedded and wrote, 0 to 1; memory and `gpu` as in `jobs.bench.gpu.rates`.
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


def ingest_films(films: Sequence[Path], config: IngestConfig, library: Path) -> WholeIngest:
    """Index the films into a new library. Raises RuntimeError if one of them fails."""
    from jobs.ingest.run import run_ingest

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
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(jpeg)).convert("RGB"), np.float64)


def _psnr_db(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Compute the peak signal-to-noise ratio of 8-bit pictures; 0 for pictures of different sizes."""
    if one.shape != other.shape:
        return 0.0
    error = float(((one - other) ** 2).mean())
    return 10 * np.log10(255**2 / error) if error else float("inf")
