"""A made-up library of many short videos with pictures of their own kind, to look at its pages."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from index.library import Library
from index.rows import SegmentRow, TranscriptRow
from index.store.indexes import refresh
from jobs.bench.synthetic_library import (
    MODEL,
    MadeCaption,
    MadeFrame,
    Size,
    frame_vectors,
    made_fingerprint,
    made_row,
    video_id,
)

FRAMES, DIM, LINES = 12, 64, 4
SEGMENTS = 3
SCENES, WIDTH_PX, HEIGHT_PX = 48, 512, 288
VIDEOS_A_COMMIT = 500
PLACES = ("Harbour", "Market", "Garden", "Kitchen", "Desert", "Lighthouse", "Workshop", "Bridge", "Glacier", "Forest")
EVENTS = ("winter", "concert", "race", "storm", "festival", "wedding", "lesson", "parade", "repair", "interview")


def make_page_library(uri: str, videos: int, report: Callable[[int], None]) -> Library:
    """Make a library of this many videos at `uri`, or complete the one there; `report` gets the count of those done."""
    size = Size(videos, FRAMES, LINES, DIM, 0)
    library = Library.open_or_create(uri, {"kind": "page", "frames": FRAMES}, made_fingerprint(DIM))
    present = library.video_ids()
    missing = [number for number in range(videos) if video_id(number) not in present]
    scenes = [draw_scene(number) for number in range(SCENES)]
    black = _as_jpeg(np.zeros((HEIGHT_PX, WIDTH_PX, 3), np.uint8))
    for first in range(0, len(missing), VIDEOS_A_COMMIT):
        _write(library, missing[first : first + VIDEOS_A_COMMIT], size, scenes, black)
        report(videos - len(missing) + min(first + VIDEOS_A_COMMIT, len(missing)))
    refresh(library.tables)  # as an ingest does at its end
    return library


def title_of(number: int) -> str:
    """Make a title of two words, a year and a number, in no order of the alphabet."""
    random = np.random.default_rng([2, number])
    place, event = PLACES[random.integers(len(PLACES))], EVENTS[random.integers(len(EVENTS))]
    return f"{place} {event} {1960 + int(random.integers(65))} no {number}"


def draw_scene(number: int) -> bytes:
    """Draw a picture of a sky, a ground and some blocks as JPEG, another for each number."""
    random = np.random.default_rng([3, number])
    top, bottom = random.integers(150, 255, 3), random.integers(10, 110, 3)
    slope = np.linspace(0, 1, HEIGHT_PX)[:, None, None]
    picture = np.broadcast_to(top * (1 - slope) + bottom * slope, (HEIGHT_PX, WIDTH_PX, 3)).astype(np.uint8).copy()
    for _ in range(7):
        x, y = int(random.integers(WIDTH_PX - 80)), int(random.integers(60, HEIGHT_PX - 60))
        width, height = random.integers(30, 120, 2)
        picture[y : y + height, x : x + width] = random.integers(0, 255, 3)
    return _as_jpeg(picture)


def _as_jpeg(picture: NDArray[np.uint8]) -> bytes:
    from PIL import Image

    held = io.BytesIO()
    Image.fromarray(picture).save(held, "JPEG", quality=70)
    return held.getvalue()


def _write(library: Library, numbers: Sequence[int], size: Size, scenes: Sequence[bytes], black: bytes) -> None:
    ids = {number: video_id(number) for number in numbers}
    digests = library.writer.add_frames({ids[n]: _frames(n, size, scenes, black) for n in numbers})
    digests["segments"] = library.writer.add_segments({ids[n]: _segments(ids[n]) for n in numbers})
    digests["transcript"] = library.writer.add_transcript({ids[n]: _lines(ids[n]) for n in numbers})
    rows = [made_row(n, size) for n in numbers]
    named = [
        replace(row, title=title_of(n), segments=SEGMENTS, duration_s=60.0 + n % 5400)
        for n, row in zip(numbers, rows, strict=True)
    ]
    dated = [
        replace(row, ingested_at=row.ingested_at + timedelta(seconds=n)) for n, row in zip(numbers, named, strict=True)
    ]
    library.writer.complete(dated, digests=digests)
    captions = {ids[n]: _captions(n) for n in numbers}
    library.additions.add_captions(captions, MODEL)
    library.additions.complete("captions", MODEL, {id_: len(rows) for id_, rows in captions.items()}, {})


def _captions(number: int) -> list[MadeCaption]:
    return [MadeCaption(at, 20.0 * at, 20.0 * at + 20, f"{title_of(number)}, part {at}", None) for at in range(2)]


def _frames(number: int, size: Size, scenes: Sequence[bytes], black: bytes) -> list[MadeFrame]:
    """Make the frames of a video: a black one first, then three scenes."""
    pictures = [black, *(scenes[(number + at // 4) % SCENES] for at in range(1, FRAMES))]
    vectors = frame_vectors(number, size)
    return [MadeFrame(at, float(5 * at), jpeg, vectors[at]) for at, jpeg in enumerate(pictures)]


def _segments(id_: str) -> list[SegmentRow]:
    return [SegmentRow(id_, at, 20.0 * at, 20.0 * at + 20, "shot") for at in range(SEGMENTS)]


def _lines(id_: str) -> list[TranscriptRow]:
    return [TranscriptRow(id_, 5.0 * at, 5.0 * at + 4, f"line {at}", "sidecar") for at in range(LINES)]
