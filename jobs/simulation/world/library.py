"""A library of videos that do not exist: vectors made by arithmetic, pictures without a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from index.embedding.space import Fingerprint
from index.rows import FrameVectors, StoredFrame, TranscriptRow, VideoRow
from index.search.in_memory import InMemory

FRAME_S = 1.0
"""Seconds between frames, as an ingest samples unless told otherwise."""


@dataclass(frozen=True, slots=True)
class SimulatedLibrary:
    """One video, as much of `index.library.Library` as agents use that look at frames."""

    video: VideoRow
    units: NDArray[np.float32]
    """[n, dim], the frames' vectors, one every `FRAME_S`."""

    @property
    def fingerprint(self) -> Fingerprint:
        """Of a space without a model."""
        return Fingerprint("simulated", model="", weights_sha256="", preprocess="", dim=self.units.shape[1])

    def space(self, name: str | None = None) -> Fingerprint:
        return self.fingerprint

    def in_memory(self, video_id: str, space: str | None = None) -> InMemory:
        count = len(self.units)
        times_s = np.arange(count, dtype=np.float64) * FRAME_S
        stored = FrameVectors(np.arange(count, dtype=np.int32), times_s, self.units.astype(np.float16))
        return InMemory(stored, self.units)

    def frames(self, video_id: str, frame_nos: Sequence[int]) -> list[StoredFrame]:
        return [StoredFrame(video_id, number, number * FRAME_S, 1, 1, b"") for number in frame_nos]

    def transcript(self, video_id: str, start_s: float, end_s: float) -> list[TranscriptRow]:
        """Nothing is said."""
        return []


def video_row(video_id: str, frames: int) -> VideoRow:
    """The row of a made-up video with so many frames."""
    return VideoRow(
        video_id=video_id,
        uri=f"simulated:{video_id}",
        title=video_id,
        start_s=0.0,
        duration_s=frames * FRAME_S,
        fps=None,
        width_px=1,
        height_px=1,
        codec="simulated",
        frames=frames,
        segments=0,
        transcript_lines=0,
        decode_errors=0,
        sample_fps=1 / FRAME_S,
        space="simulated",
        state="complete",
        ingested_at=datetime(2000, 1, 1, tzinfo=UTC),
    )
