"""A made-up video as the source of an environment: vectors as a test sets them, and no library behind it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.protocol import Note, Video
from kinodex.index.rows import FrameVectors, StoredFrame
from kinodex.index.search.in_memory import InMemory
from kinodex.index.spaces.towers import Fingerprint

if TYPE_CHECKING:
    from kinodex.agent.environment import AnchorsFrom
    from kinodex.index.rows import (
        CaptionRow,
        ClipRow,
        DetectionRow,
        Hit,
        SceneRow,
        ScreenTextRow,
        SegmentRow,
        TranscriptRow,
    )

FRAME_S = 1.0
"""Seconds between frames, as an ingest samples by default."""


@dataclass(frozen=True)
class MadeVideo:
    """One made-up video as the `VideoSource` of an environment: it has frames, and nothing is written or said."""

    video_id: str
    units: NDArray[np.float32]
    """[n, dim], the frames' vectors, one every `FRAME_S`."""
    axes: Mapping[str, NDArray[np.float32]]
    """By text the unit vector [dim] of each that can be looked for."""

    @property
    def uri(self) -> str:
        return f"simulated:{self.video_id}"

    @property
    def space(self) -> Fingerprint:
        """A space without a model."""
        return Fingerprint("simulated", model="", weights_sha256="", preprocess="", dim=self.units.shape[1])

    @property
    def videos(self) -> tuple[Video, ...]:
        return (Video(self.video_id, self.video_id, 0.0, self.index_frames * FRAME_S),)

    @property
    def index_frames(self) -> int:
        return len(self.units)

    def noise(self) -> None:
        return None

    @cached_property
    def _in_memory(self) -> InMemory:
        count = len(self.units)
        times_s = np.arange(count, dtype=np.float64) * FRAME_S
        stored = FrameVectors(np.arange(count, dtype=np.int32), times_s, self.units.astype(np.float16))
        return InMemory(stored, self.units)

    def in_memory(self, video_id: str) -> InMemory:
        return self._in_memory

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([self.axes[text] for text in texts])

    def cosines(self, text: str, video_id: str) -> NDArray[np.float64]:
        return self._in_memory.cosines(self.axes[text]).astype(np.float64)

    def frames(self, video_id: str, frame_nos: Sequence[int]) -> list[StoredFrame]:
        return [StoredFrame(video_id, number, number * FRAME_S, 1, 1, b"") for number in frame_nos]

    def only(self, video_ids: Collection[str]) -> MadeVideo:
        return self

    def ranked(self, texts: Sequence[str], k: int, anchors_from: AnchorsFrom = "both") -> list[str]:
        return [self.video_id]

    def words(self, video_id: str) -> tuple[Note, ...]:
        return ()

    def lines(self, video_id: str) -> tuple[Note, ...]:
        return ()

    def line_cosines(self, text: str, video_id: str) -> NDArray[np.float64] | None:
        return None

    def segments(self, video_id: str) -> list[SegmentRow]:
        return []

    def captions(self, video_id: str) -> list[CaptionRow]:
        return []

    def detections(
        self, video_id: str, start_s: float | None, end_s: float | None, label: str | None
    ) -> list[DetectionRow]:
        return []

    def detection_labels(self, video_id: str) -> list[str]:
        return []

    def transcript(self, video_id: str, start_s: float, end_s: float) -> list[TranscriptRow]:
        return []

    def screen_text(self, video_id: str, start_s: float, end_s: float) -> list[ScreenTextRow]:
        return []

    def search_transcript(self, text: str, k: int) -> list[Hit]:
        return []

    def search_words(self, text: str, k: int) -> list[Hit]:
        return []

    def scenes(self, video_id: str) -> list[SceneRow]:
        return []

    def clips(self, video_id: str, model: str) -> list[ClipRow]:
        return []

    def add_clips(self, rows: Sequence[ClipRow]) -> None:
        """Drop captions: a simulation keeps nothing."""
