"""Replies of the MCP server's tools, with their limits.

An assistant reads a reply into its context, and clients refuse large ones (Claude Desktop those above 1 MB), so every
reply has limits, and `cut` says what was left out and how to get it; `missing`, which stage was never added.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

from mcp.types import CallToolResult, TextContent
from pydantic import BaseModel, PlainSerializer

from kinodex.index.conditions import quoted
from kinodex.index.metadata import Facet, plain
from kinodex.index.rows import Basis, TextLine

VIDEOS, SEGMENTS, HITS, ROWS, EVIDENCE, FRAMES = 100, 60, 50, 200, 50, 8
"""The most videos, segments of an overview, hits, rows of a table, ranges of evidence and frames in one reply."""
LABELS, COLUMNS = 30, 50
SIDE_PX = 1024
TEXT_BYTES = 40_000
"""About three bytes make a token."""
IMAGE_BYTES = 700_000
"""Of all JPEGs together, before base64 makes them a third larger."""
CHARACTERS = 1_000
"""Of one text: a caption, a line, a title."""
ANSWER_CHARACTERS = 8_000

R = TypeVar("R", bound=BaseModel)


def clipped(text: str, most: int = CHARACTERS) -> str:
    """Shorten a text to `most` characters, followed by its length if it was longer."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


Number = Annotated[float, PlainSerializer(lambda value: round(value, 4), return_type=float)]
"""Seconds, scores and parts of a picture, rounded to four digits."""
Text = Annotated[str, PlainSerializer(clipped, return_type=str)]
LongText = Annotated[str, PlainSerializer(lambda text: clipped(text, ANSWER_CHARACTERS), return_type=str)]


class OfVideo(BaseModel):
    """Part of a reply that is about one video."""

    video_id: str
    title: Text


class Span(BaseModel):
    """A range [start_s, end_s) of a video, in seconds."""

    start_s: Number
    end_s: Number


class Rows(OfVideo):
    """Some rows of a video; `cut` says how to get the others, `missing` that none were ever made."""

    cut: str | None = None
    missing: str | None = None


class VideoLine(OfVideo):
    """A video of a list. `frames` is 0 for a video that has only text."""

    duration_s: Number
    frames: int
    segments: int
    speech_lines: int


class Stage(BaseModel):
    """Rows that an optional stage such as captions or text added, and its model."""

    stage: str
    model: Text
    videos: int
    rows: int


class Column(BaseModel):
    """A column of videos, which a condition may name: each of its values with the number of videos, or both ends."""

    name: Text
    type: str
    values: dict[Text, int] = {}
    least: Text | None = None
    most: Text | None = None


class Videos(BaseModel):
    """A library in numbers, and some of its videos by title; `found` counts those that the filter lets through."""

    library_videos: int
    library_hours: Number
    stages: list[Stage]
    found: int
    columns: list[Column] = []
    videos: list[VideoLine]
    cut: str | None = None


class SegmentLine(Span):
    """A shot, window or captioned range [start_s, end_s) of a video."""

    kind: str
    caption: Text | None = None


class VideoFacts(OfVideo, Span):
    """One video, which covers [start_s, end_s). Without frames, its sizes and codec mean nothing."""

    frames: int
    sample_fps: Number
    width_px: int
    height_px: int
    codec: str


class Overview(BaseModel):
    """One video: facts, segments, and counts of its other rows."""

    video: VideoFacts
    captions_by: Text | None = None
    columns: dict[Text, Text] = {}
    lines: dict[str, int]
    """Lines of text by kind."""
    speech_from: list[str]
    speech_languages: list[str]
    detected: dict[str, int]
    """Detections by label, the most frequent first."""
    segments: list[SegmentLine]
    never_added: list[str]
    """Stages that were never added: their counts say nothing about the video."""
    cut: str | None = None


class Judged(BaseModel):
    """The `basis` on which something may be said of a moment: its place in an order; a `probability` of the space's
    own; or "verified": a model looked, said if it is `present`, and gave its `reason`."""

    basis: Basis = "ranking"
    probability: Number | None = None
    present: bool | None = None
    reason: Text = ""


class HitLine(OfVideo, Span, Judged):
    """A moment; the score orders the hits of one search. `cosine` compares pictures or captions, `bm25` words."""

    score: Number
    found_in: str
    text: Text | None = None
    speaker: Text | None = None
    cosine: Number | None = None
    bm25: Number | None = None
    query: str | None = None


class Hits(BaseModel):
    """The hits of a search, best first, and what may be claimed of them."""

    basis: Basis
    claim: str
    hits: list[HitLine]
    notes: list[str] | None = None
    cut: str | None = None
    missing: str | None = None


class EvidenceLine(OfVideo, Span):
    """A time range [start_s, end_s) that was really shown to the answering model."""


class RangeLine(EvidenceLine, Judged):
    """A range [start_s, end_s) of a video that fits an event."""

    score: Number | None
    found_in: str


class Ranges(BaseModel):
    """The ranges that fit an event best, best first, and what may be claimed of them; `present` only if verified."""

    basis: Basis
    claim: str
    present: bool | None = None
    ranges: list[RangeLine]


class Line(Span):
    """A line that is said in [start_s, end_s), or shown as text: `found_in` says which."""

    text: Text
    speaker: Text | None = None
    found_in: str
    confidence: Number | None = None

    @classmethod
    def of(cls, line: TextLine) -> Line:
        """Make a line of one of a library."""
        return cls(
            start_s=line.start_s,
            end_s=line.end_s,
            text=line.text,
            speaker=line.speaker,
            found_in=line.source,
            confidence=line.confidence,
        )


class Lines(Rows):
    """Lines of a video, in order."""

    lines: list[Line]


class Caption(Span):
    """A description, by a model or by people, of the pictures in [start_s, end_s)."""

    text: Text
    confidence: Number | None = None


class Captions(Rows):
    """Captions of a video by one writer, in order."""

    captions_by: Text | None = None
    captions: list[Caption]


class Part(Span):
    """A chapter, or a scene of one, in [start_s, end_s). Both texts are empty where a model gave none."""

    level: str
    title: Text
    text: Text


class Contents(Rows):
    """The table of contents of a video: its chapters, or its scenes, in order."""

    written_by: Text | None = None
    parts: list[Part]


class Detection(BaseModel):
    """A thing that a model found in a frame; `box` is x0, y0, x1, y1 as parts of width and height."""

    time_s: Number
    label: Text
    score: Number
    box: tuple[Number, Number, Number, Number]
    track_id: int | None = None


class Detections(Rows):
    """Detections in a video, by time."""

    detections: list[Detection]


class FramesHeading(OfVideo):
    """The heading of a reply with pictures; each picture follows its number and time."""

    frames: int
    cut: str | None = None


class FrameLabel(BaseModel):
    """The number and time of a frame, before its picture."""

    frame_no: int
    time_s: Number


class AskReply(BaseModel):
    """An answer, its evidence, and its cost."""

    status: str
    answer: LongText | None = None
    letter: str | None = None
    reason: Text | None = None
    evidence: list[EvidenceLine]
    rounds: int
    agent: str
    models: dict[str, str]
    ledger: dict[str, int | float]
    cut: str | None = None


def as_json(reply: BaseModel) -> TextContent:
    return TextContent(type="text", text=reply.model_dump_json(exclude_none=True))


def tool_result(reply: BaseModel) -> CallToolResult:
    """Wrap a reply as the protocol asks for it: as text and as data."""
    return CallToolResult(content=[as_json(reply)], structured_content=reply.model_dump(mode="json", exclude_none=True))


def first_fitting(lines: Sequence[R]) -> list[R]:
    kept: list[R] = []
    left = TEXT_BYTES
    for line in lines:
        left -= len(line.model_dump_json(exclude_none=True).encode())
        if left < 0:
            break
        kept.append(line)
    return kept


def page(
    rows: Sequence[Any], line: type[R], plural: str, offset: int = 0, most: int = ROWS
) -> tuple[list[R], str | None]:
    """Make lines of the rows from `offset` on that fit in one reply, and the text of `cut` for those after them."""
    kept = first_fitting(lines_of(rows[offset : offset + most], line))
    end = offset + len(kept)
    if end >= len(rows):
        return kept, None
    return kept, f"{plural} {offset:,} to {end - 1:,} of {len(rows):,}; call again with offset={end} for the next"


def spread(rows: Sequence[Any], line: type[R], most: int) -> list[R]:
    """Make lines of at most `most` rows, evenly spread over all of them, as many as fit in one reply."""
    count = min(most, len(rows))
    while True:
        lines = lines_of([rows[number * len(rows) // count] for number in range(count)], line)
        if len(first_fitting(lines)) == count:
            return lines
        count //= 2


def columns_of(facets: Sequence[Facet]) -> list[Column]:
    return [
        Column(
            name=quoted(facet.name),
            type=facet.type,
            values={plain(value): count for value, count in facet.values},
            least=None if facet.least is None else plain(facet.least),
            most=None if facet.most is None else plain(facet.most),
        )
        for facet in facets[:COLUMNS]
    ]


def lines_of(rows: Sequence[Any], line: type[R]) -> list[R]:
    """Make lines of a reply from rows of a library; a line has some of a row's fields."""
    return [line.model_validate(row, from_attributes=True) for row in rows]
