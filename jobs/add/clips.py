"""Clips: overlapping windows of a video as vectors of a model that sees movement. `kinodex add clips`.

The frames of a window are those on screen in the middles of equal parts of it: stored ones, or with `fps` those of one
decode of the source at more frames a second.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.protocol import Usage
from kinodex.index.library import Library
from kinodex.index.rows import ClipVectors, VideoRow
from kinodex.index.spaces.named_models import note_model
from kinodex.jobs.add.endpoint import map_in_order
from kinodex.jobs.add.run import NO_COST, AddedRows, RowsOf, check_settings
from kinodex.jobs.clip_models import INSTRUCTION, ServedModel, clip_spaces, loaded
from kinodex.jobs.errors import UsageError
from kinodex.jobs.library import batched, source_frames
from kinodex.jobs.towers import carry_clips, log_notes
from kinodex.redaction import redact_uri

if TYPE_CHECKING:
    from kinodex.index.spaces.video_text import VideoTextModel

WINDOW_S, STRIDE_S = 4.0, 2.0
SHORTEST_S, LONGEST_S = 2.0, 8.0
USUAL_FRAMES = 8
SIDE_PX, QUALITY = 512, 90
"""Of the frames of a decode at more frames a second."""
FRAMES_AT_ONCE = 64
VIDEOS_AHEAD = 4
Span = tuple[float, float]
Pictures = Generator[tuple[float, bytes], None, None]
"""Frames of a video in order: the time of each, as a player counts it, and its JPEG."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Clips:
    """Settings of the addition; `clip_model` is a hub id or folder, or with `base_url` the name of a served model."""

    clip_model: str
    window_s: float = WINDOW_S
    stride_s: float = STRIDE_S
    fps: float | None = None
    """Frames a second of a decode of the sources; None: the stored frames."""
    frames: int | None = None
    """Frames of a window; None: as many as the model is made for, or 8."""
    base_url: str | None = None
    instruction: str = INSTRUCTION
    """Of a served model: see `ServedModel`."""
    batch: int = 8
    """Windows that the model gets at once."""
    input_price: float = 0.0
    device: str = "auto"
    name: str = "clips"

    def __post_init__(self) -> None:
        if not SHORTEST_S <= self.window_s <= LONGEST_S:
            raise UsageError(f"got windows of {self.window_s:g} s; they have {SHORTEST_S:g} to {LONGEST_S:g}")
        if not 0.1 <= self.stride_s <= self.window_s:
            raise UsageError(
                f"got a window every {self.stride_s:g} s; give 0.1 to {self.window_s:g} s, so that nothing lies between"
            )
        if self.fps is not None and not 0 < self.fps <= 60:
            raise UsageError(f"got {self.fps:g} frames a second; give more than 0 and at most 60")

    @property
    def model(self) -> str:
        """The digest of the model."""
        return self._model.space.digest

    @property
    def settings(self) -> Mapping[str, Any]:
        served = {"base_url": self.base_url, "instruction": self.instruction} if self.base_url else {}
        windows = {"window_s": self.window_s, "stride_s": self.stride_s, "fps": self.fps, "frames": self.frames}
        return {"model": self.clip_model, **windows, **served}

    def prepare(self, library: Library) -> None:
        model = self._model
        if not isinstance(model, ServedModel) and self.frames not in (None, model.fixed_frames or self.frames):
            raise UsageError(f"got {self.frames} frames a window, and {self.clip_model} takes {model.fixed_frames}")
        check_settings(library, self, "window_s", "stride_s", "fps", "frames")
        library.additions.add_clip_space(model.space)
        if isinstance(model, ServedModel):
            note_model(redact_uri(model.base_url))
        else:
            log_notes(carry_clips(library, model))

    def rows_of(self, library: Library, video: VideoRow) -> AddedRows:
        spans, vectors, usage = self.spans(video), [], NO_COST
        with closing(self._pictures(library, video)) as pictures:
            windows = windows_of(pictures, spans, self.frames or self._model.frames)
            while some := list(islice(windows, self._at_once)):
                made, cost = self._embed(some)
                vectors.append(made)
                usage += cost
        starts_s, ends_s = (np.array([span[at] for span in spans], np.float64) for at in (0, 1))
        joined = np.concatenate(vectors) if vectors else np.empty((0, self._model.space.dim), np.float16)
        rows = ClipVectors(starts_s, ends_s, joined)
        return AddedRows(rows, len(spans), usage=usage, arithmetic=self._model.arithmetic)

    def write(self, library: Library, rows: Mapping[str, Any]) -> None:
        library.additions.add_clips(rows, self._model.space)

    def each(self, work: Callable[[RowsOf, VideoRow], T], videos: Iterable[VideoRow]) -> Generator[T, None, None]:
        """Work on videos one by one with a local model, on several at once at an endpoint."""
        if self.base_url is None:
            yield from (work(self.rows_of, video) for video in videos)
            return
        with ThreadPoolExecutor(self._videos_at_once) as pool:
            yield from map_in_order(pool, partial(work, self.rows_of), videos, self.batch, self._count)

    def share(self, processes: int) -> Self:
        """Divide the requests at once among processes; a local model works on as much as before in each."""
        return self if self.base_url is None else replace(self, batch=max(1, self.batch // processes))

    def spans(self, video: VideoRow) -> list[Span]:
        """The windows of a video: one every `stride_s`, the last of them up to its end; none without frames."""
        if not video.frames:
            return []
        most = max(0, math.ceil((video.end_s - video.start_s - self.window_s) / self.stride_s - 1e-9))
        starts_s = [video.start_s + number * self.stride_s for number in range(most + 1)]
        return [(start_s, min(start_s + self.window_s, video.end_s)) for start_s in starts_s]

    def pending(self, library: Library) -> list[VideoRow]:
        """The videos that lack clips by this model, by what the library knows of it: nothing is loaded or sent."""
        known = [
            each.digest
            for each in clip_spaces(library)
            if each.name == self.clip_model and each.is_served == (self.base_url is not None)
        ]
        return library.additions.pending(self.name, known[-1]) if known else library.videos()

    @property
    def _videos_at_once(self) -> int:
        return 1 if self.base_url is None else min(VIDEOS_AHEAD, self.batch)

    @property
    def _at_once(self) -> int:
        """Windows of a video at once: at an endpoint several videos share the whole."""
        return max(1, self.batch // self._videos_at_once)

    def _count(self, video: VideoRow) -> int:
        return len(self.spans(video))

    @property
    def served(self) -> ServedModel:
        """The model behind the endpoint."""
        return ServedModel(self.clip_model, self.base_url or "", self.instruction, self._at_once, self.input_price)

    @property
    def _model(self) -> ServedModel | VideoTextModel:
        return loaded(self.clip_model, self.device) if self.base_url is None else self.served

    def _embed(self, windows: Sequence[Sequence[bytes]]) -> tuple[NDArray[np.float16], Usage]:
        model = self._model
        if not isinstance(model, ServedModel):
            return model.embed_windows(windows), NO_COST
        vectors, usage = model.embed([("", [*dict.fromkeys(window)]) for window in windows], model.space.dim)
        return vectors.astype(np.float16), usage

    def _pictures(self, library: Library, video: VideoRow) -> Pictures:
        return stored_jpegs(library, video) if self.fps is None else _decoded(library, video, self.fps)


def windows_of(pictures: Iterable[tuple[float, bytes]], spans: Sequence[Span], count: int) -> Iterator[list[bytes]]:
    """Yield the frames of each window, of windows in order: those on screen in the middles of `count` equal parts.

    A frame that is on screen in several parts comes several times.
    """
    source, held = iter(pictures), deque[tuple[float, bytes]]()
    ahead = next(source, None)
    for start_s, end_s in spans:
        while ahead is not None and (ahead[0] < end_s or not held):
            held.append(ahead)
            ahead = next(source, None)
        while len(held) > 1 and held[1][0] <= start_s:
            held.popleft()
        middles_s = [start_s + (end_s - start_s) * (number + 0.5) / count for number in range(count)]
        yield [_shown(held, time_s) for time_s in middles_s]


def _shown(held: Sequence[tuple[float, bytes]], time_s: float) -> bytes:
    """The picture that is on screen at a time, of pictures in order; the first if all come later."""
    return next((jpeg for at_s, jpeg in reversed(held) if at_s <= time_s), held[0][1])


def stored_jpegs(library: Library, video: VideoRow) -> Pictures:
    """Read the stored frames of a video in order, with the time of each."""
    numbers, _ = library.frame_times(video.video_id)
    for some in batched(numbers.tolist(), FRAMES_AT_ONCE):
        for frame in library.frames(video.video_id, some):
            yield frame.time_s, frame.jpeg


def _decoded(library: Library, video: VideoRow, fps: float) -> Pictures:
    """Decode a source once; raises SourceError or VideoError."""
    if video.frames:
        with closing(source_frames(library, video, fps, SIDE_PX, QUALITY, FRAMES_AT_ONCE)) as frames:
            for frame in frames:
                yield frame.time_s, frame.jpeg
