"""Rows of a library as plain dataclasses. Times are those that a player shows (see below), in seconds, float64."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from kinodex.index.kinds import FoundIn, KindName
from kinodex.index.spaces.towers import SpaceCard

Basis = Literal["ranking", "probability", "verified"]
"""What stands behind a moment: an order alone, which claims nothing; a probability of the space's own; or a model that
looked at its frames and lines and said yes or no."""
AddedSource = Literal["model", "imported"]
"""Sources of transcript lines that were added later; those of `ingest` are "sidecar" and "embedded"."""


@dataclass(frozen=True, slots=True)
class VideoRow:
    """One complete video; it covers `[start_s, start_s + duration_s)`."""

    video_id: str
    uri: str
    title: str
    start_s: float
    duration_s: float
    fps: float | None
    width_px: int
    height_px: int
    codec: str
    frames: int
    """Stored frames: distinct ones, so fewer than samples where the picture stands still."""
    segments: int
    speech_lines: int
    decode_errors: int
    sample_fps: float
    space: str
    state: str
    ingested_at: datetime
    zero_s: float = 0.0
    """Presentation time, in the file, of what a player shows as 0:00: by `first_zero_s`, from its first stream."""

    @property
    def end_s(self) -> float:
        """End of the video, which is no longer part of it."""
        return self.start_s + self.duration_s


@dataclass(frozen=True, slots=True)
class FailureRow:
    """A source that could not be read, or a stage of it; one row for each uri and stage."""

    uri: str
    stage: str
    error_class: str
    message: str
    attempts: int
    failed_at: datetime


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A source that an ingest has looked into, and the video found in it; several sources may be one video."""

    uri: str
    video_id: str
    size_bytes: int | None
    stamp: str
    """Changes whenever the content does: a modification time or an entity tag, as the source's store gives it."""
    seen_at: datetime
    mount: str | None = None
    """Mount point of the file system that a local file lay in: while that is missing, nothing is known of the file."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run of an ingest or an optional stage; `report` is its own report, as JSON can hold it."""

    run_id: str
    kind: str
    state: str
    started_at: datetime
    ended_at: datetime | None
    report: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StoredFrame:
    """A frame with its picture."""

    video_id: str
    frame_no: int
    time_s: float
    width_px: int
    height_px: int
    jpeg: bytes


@dataclass(frozen=True, slots=True)
class FrameVectors:
    """All frames of one video in time order, without pictures."""

    frame_no: NDArray[np.int32]
    """[n]"""
    time_s: NDArray[np.float64]
    """[n]"""
    vectors: NDArray[np.float16]
    """[n, dim], unit length"""


@dataclass(frozen=True, slots=True)
class ClipVectors:
    """Windows `[start_s, end_s)` of one video in time order, which may overlap, as vectors of a video-text model."""

    start_s: NDArray[np.float64]
    """[n]"""
    end_s: NDArray[np.float64]
    """[n]"""
    vectors: NDArray[np.float16]
    """[n, dim], unit length"""


CLIP = "clip "
"""Beginning of the kind of a segment that is a clip with a name, as an episode of LongTVQA has them."""


@dataclass(frozen=True, slots=True)
class SegmentRow:
    """The half-open range `[start_s, end_s)` of a video; the caption is missing until a model wrote one.

    `[fade_start_s, fade_end_s)` is the dissolve or fade that a shot begins with, which begins in the shot before; None
    for a cut, and where only samples were looked at.
    """

    video_id: str
    segment_no: int
    start_s: float
    end_s: float
    kind: str
    caption: str | None = None
    caption_confidence: float | None = None
    caption_model: str | None = None
    fade_start_s: float | None = None
    fade_end_s: float | None = None

    @property
    def clip_name(self) -> str:
        """The name of an episode's clip; "" of any other segment."""
        return self.kind.removeprefix(CLIP) if self.kind.startswith(CLIP) else ""


@dataclass(frozen=True, slots=True)
class SpokenWord:
    """A word of a line, with its punctuation, said in `[start_s, end_s)`."""

    text: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class SpeechRow:
    """A line that is said or shown as text in `[start_s, end_s)`."""

    video_id: str
    start_s: float
    end_s: float
    text: str
    source: str
    language: str | None = None
    speaker: str | None = None
    model: str | None = None
    """The speech model that wrote it, or the author of an imported line; None for subtitles."""
    words: tuple[SpokenWord, ...] = ()
    """Empty where nobody knows the times of words."""


@dataclass(frozen=True, slots=True)
class SpeakerRow:
    """A voice of the library, the name that a person gave it, if any, and the seconds of speech in its vector."""

    speaker: str
    name: str | None
    seconds: float
    model: str


@dataclass(frozen=True, slots=True)
class CaptionRow:
    """A model's description of the segment `[start_s, end_s)`; `confidence` is 0 to 1."""

    video_id: str
    segment_no: int
    start_s: float
    end_s: float
    text: str
    confidence: float | None
    model: str


@dataclass(frozen=True, slots=True)
class NoteRow:
    """A caption that a model wrote for an agent, of `[start_s, end_s)` of a video; it was shown that many `frames`."""

    video_id: str
    model: str
    start_s: float
    end_s: float
    text: str
    confidence: float | None
    frames: int

    @property
    def part(self) -> str:
        """Name of the part of the video, which is a column of the key."""
        return part_name(self.start_s, self.end_s)


def part_name(start_s: float, end_s: float) -> str:
    """Name a part of a video by its times, to the millisecond."""
    return f"{start_s:.3f}-{end_s:.3f}"


@dataclass(frozen=True, slots=True)
class DetectionRow:
    """A thing detected in a frame by a model; `box` is x0, y0, x1, y1 as parts of width and height, `score` 0 to 1."""

    video_id: str
    frame_no: int
    time_s: float
    label: str
    score: float
    box: tuple[float, float, float, float]
    track_id: int | None
    model: str


@dataclass(frozen=True, slots=True)
class ScreenTextRow:
    """A line of text that the picture shows in `[start_s, end_s)`, best read; `box` and `confidence` as detections."""

    video_id: str
    start_s: float
    end_s: float
    text: str
    confidence: float
    box: tuple[float, float, float, float]
    frames: int
    language: str | None
    model: str


@dataclass(frozen=True, slots=True)
class ChapterRow:
    """A scene (some segments) or chapter (some scenes) `[start_s, end_s)` of a video, numbered from 0 in its level."""

    video_id: str
    level: Literal["scene", "chapter"]
    number: int
    start_s: float
    end_s: float
    first_segment: int
    segments: int
    title: str
    text: str
    model: str


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of text in `[start_s, end_s)`; `source` is one of `LINE_KINDS`, such as "speech".

    `speaker` is the voice or name of who says it, and `confidence` is 0 to 1. These and the `language` are None for
    kinds without them.
    """

    video_id: str
    source: KindName
    start_s: float
    end_s: float
    text: str
    model: str | None
    speaker: str | None = None
    confidence: float | None = None
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """Limits of a search: these videos (None: all) and times in `[start_s, end_s)` (None: without bound)."""

    video_ids: tuple[str, ...] | None = None
    start_s: float | None = None
    end_s: float | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A moment found by a search, `[time_s, end_s)`.

    `score` orders the hits of one search and means nothing across searches: a cosine for what was found by its vector,
    BM25 for what was found by its words, the model's own for detections, and a rank score where several searches were
    fused. A moment that several searches found is in "several", unless they found the same line, and its `parts` are
    their hits. `cosine` (of the frame's or the line's vector) and `bm25` (of the words) are what each search found;
    None where it did not find the moment.
    """

    video_id: str
    time_s: float
    end_s: float
    frame_no: int | None
    score: float
    text: str | None
    found_in: FoundIn
    cosine: float | None = None
    bm25: float | None = None
    speaker: str | None = None
    """Who says the text, as readers see it; None where nobody knows."""
    language: str | None = None
    basis: Basis = "ranking"
    probability: float | None = None
    """That its picture fits the words, by the space's own sigmoid; None of a space without one, and of words alone."""
    present: bool | None = None
    """Said by the model that looked (basis "verified"), for the `reason`; else None."""
    reason: str = ""
    reranked: float | None = None
    """The score of the reranker that ordered them, by their words; None without one, and of hits without words."""
    title: str = ""
    """The title of its video, of hits that a search of the front door gives."""
    query: str = ""
    """How a picture and words beside it became one vector: `sum` of their unit vectors, or by the `model`; else ""."""
    recorded_at: datetime | None = None
    """When a source that grows showed it, of hits that a search of the front door gives; None of any other video."""
    parts: tuple[Hit, ...] = ()
    """The hits that were fused into it, one for each kind it was found in; none for a hit of one search."""

    def part(self, kind: KindName) -> Hit | None:
        """Return the hit of one kind that it is made of, or is itself; None if it was not found there."""
        return next((hit for hit in self.parts or (self,) if hit.found_in == kind), None)


@dataclass(frozen=True, slots=True)
class AddedFacts:
    """Counts of one stage by one model: videos that have it, and rows."""

    stage: str
    model: str
    videos: int
    rows: int


@dataclass(frozen=True, slots=True)
class LibraryFacts:
    """A library in numbers."""

    uri: str
    format_version: int
    videos: int
    hours: float
    frames: int
    segments: int
    speech_lines: int
    added: tuple[AddedFacts, ...]
    failures: int
    stored_bytes: int
    space: str
    space_digest: str
    settings: Mapping[str, Any]
    space_card: SpaceCard | None = None
    """What is known of the quality of the library's own space."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Columns of the library's own about its videos, and their types."""


Row = TypeVar("Row")


def known(kind: type[Row], row: Mapping[str, Any]) -> Row:
    """Make a row of a stored one, without columns that a later kinodex added."""
    return kind(**{field.name: row[field.name] for field in fields(cast(Any, kind)) if field.name in row})
