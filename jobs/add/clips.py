"""Clips: overlapping windows of a video as vectors of a model that sees movement. `kinodex add clips`.

The frames of a window are those on screen in the middles of equal parts of it: stored ones, or with `fps` those of one
decode of the source at more frames a second.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.protocol.exchange import Usage
from kinodex.index.library import Library
from kinodex.index.rows import ClipVectors, VideoRow
from kinodex.index.spaces.named_models import note_model
from kinodex.jobs.add.endpoint import most_weight, weight_of
from kinodex.jobs.add.run import NO_COST, AddedRows
from kinodex.jobs.add.stage import StageWork
from kinodex.jobs.add.stages import Clips
from kinodex.jobs.clip_models import ServedModel, clip_spaces
from kinodex.jobs.costs import Forecast
from kinodex.jobs.errors import UsageError
from kinodex.jobs.library import batched, source_frames
from kinodex.jobs.towers.carried import carry_clips, log_notes
from kinodex.redaction import redact_uri

if TYPE_CHECKING:
    from kinodex.index.spaces.video_text import VideoTextModel

USUAL_FRAMES = 8
SIDE_PX, QUALITY = 512, 90
"""Of the frames of a decode at more frames a second."""
FRAMES_AT_ONCE = 64
VIDEOS_AHEAD = 4
Span = tuple[float, float]
Pictures = Generator[tuple[float, bytes], None, None]
"""Frames of a video in order: the time of each, as a player counts it, and its JPEG."""


@dataclass(frozen=True, slots=True)
class ClipEmbedder(StageWork[Clips]):
    """Windows of the videos of a library as vectors of a model here, or one behind an endpoint."""

    embedder: ServedModel | VideoTextModel
    pool: Executor | None = None

    @classmethod
    @contextmanager
    def open(cls, stage: Clips, library: Library) -> Iterator[ClipEmbedder]:
        """Load the model, or open the threads that ask for it."""
        if stage.base_url is None:
            from kinodex.index.spaces.video_text import load_video_text_model

            yield cls(stage, library, load_video_text_model(stage.model, stage.device))
            return
        with ThreadPoolExecutor(videos_at_once(stage)) as pool:
            yield cls(stage, library, served_model(stage), pool)

    @classmethod
    def forecast(cls, stage: Clips, library: Library, video_ids: Sequence[str] | None) -> Forecast:
        """Return the costs of clips: windows and frames as they are, a served model's tokens by the first.

        Nothing is sent.
        """
        videos = [row for row in pending(stage, library) if video_ids is None or row.video_id in video_ids]
        windows, count = sum(len(spans(stage, video)) for video in videos), stage.frames or USUAL_FRAMES
        first = next((video for video in videos if video.frames), None)
        if stage.base_url is None or first is None:
            return Forecast(stage.name, windows, 0, windows * count, 0, 0, 0.0, basis="library")
        with closing(stored_jpegs(library, first)) as pictures:
            shown = [*dict.fromkeys(next(windows_of(pictures, spans(stage, first), count)))]
        served = served_model(stage)
        tokens = windows * served.tokens(shown)
        cost = served.role.price.usage(tokens, 0, 0).cost
        return Forecast(stage.name, windows, windows, windows * len(shown), tokens, 0, cost, basis="library")

    @property
    def model(self) -> str:
        """The digest of the model."""
        return self.embedder.space.digest

    @property
    def at_once(self) -> int:
        return most_weight(self.stage.batch) if self.pool else 1

    def weight(self, video: VideoRow) -> int:
        return weight_of(len(spans(self.stage, video)), self.stage.batch) if self.pool else 1

    def prepare(self) -> None:
        model = self.embedder
        if not isinstance(model, ServedModel) and self.stage.frames not in (
            None,
            model.fixed_frames or self.stage.frames,
        ):
            raise UsageError(
                f"got {self.stage.frames} frames a window, and {self.stage.model} takes {model.fixed_frames}"
            )
        self.library.additions.add_clip_space(model.space)
        if isinstance(model, ServedModel):
            note_model(redact_uri(model.base_url))
        else:
            log_notes(carry_clips(self.library, model))

    def rows_of(self, video: VideoRow) -> AddedRows:
        windows_s, vectors, usage = spans(self.stage, video), [], NO_COST
        with closing(self._pictures(video)) as pictures:
            windows = windows_of(pictures, windows_s, self.stage.frames or self.embedder.frames)
            while some := list(islice(windows, windows_at_once(self.stage))):
                made, cost = self._embed(some)
                vectors.append(made)
                usage += cost
        starts_s, ends_s = (np.array([span[at] for span in windows_s], np.float64) for at in (0, 1))
        joined = np.concatenate(vectors) if vectors else np.empty((0, self.embedder.space.dim), np.float16)
        rows = ClipVectors(starts_s, ends_s, joined)
        return AddedRows(rows, len(windows_s), usage=usage, arithmetic=self.embedder.arithmetic)

    def write(self, rows: Mapping[str, Any]) -> None:
        self.library.additions.add_clips(rows, self.embedder.space)

    def _embed(self, windows: Sequence[Sequence[bytes]]) -> tuple[NDArray[np.float16], Usage]:
        model = self.embedder
        if not isinstance(model, ServedModel):
            return model.embed_windows(windows), NO_COST
        vectors, usage = model.embed([("", [*dict.fromkeys(window)]) for window in windows], model.space.dim)
        return vectors.astype(np.float16), usage

    def _pictures(self, video: VideoRow) -> Pictures:
        fps = self.stage.fps
        return stored_jpegs(self.library, video) if fps is None else _decoded(self.library, video, fps)


def served_model(stage: Clips) -> ServedModel:
    """Return the model behind the endpoint of a stage."""
    at_once = windows_at_once(stage)
    return ServedModel(stage.model, stage.base_url or "", stage.instruction, at_once, stage.input_price)


def videos_at_once(stage: Clips) -> int:
    return 1 if stage.base_url is None else min(VIDEOS_AHEAD, stage.batch)


def windows_at_once(stage: Clips) -> int:
    """Windows of a video at once: at an endpoint several videos share the whole."""
    return max(1, stage.batch // videos_at_once(stage))


def spans(stage: Clips, video: VideoRow) -> list[Span]:
    """Return the windows of a video: one every `stride_s`, the last of them up to its end; none without frames."""
    if not video.frames:
        return []
    most = max(0, math.ceil((video.end_s - video.start_s - stage.window_s) / stage.stride_s - 1e-9))
    starts_s = [video.start_s + number * stage.stride_s for number in range(most + 1)]
    return [(start_s, min(start_s + stage.window_s, video.end_s)) for start_s in starts_s]


def pending(stage: Clips, library: Library) -> list[VideoRow]:
    """Return the videos that lack clips by this model, by what the library knows of it: nothing is loaded or sent."""
    known = [
        each.digest
        for each in clip_spaces(library)
        if each.name == stage.model and each.is_served == (stage.base_url is not None)
    ]
    return library.additions.pending(stage.name, known[-1]) if known else library.videos()


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
    """Return the picture that is on screen at a time, of pictures in order; the first if all come later."""
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
