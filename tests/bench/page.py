"""Measure how soon the page of a library of many videos is there: the server's replies, and Chromium's first paint."""

from __future__ import annotations

import io
import shutil
import socket
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from kinodex.bench.search import (
    MODEL,
    MadeCaption,
    MadeFrame,
    Size,
    frame_vectors,
    made_fingerprint,
    made_row,
    video_id,
    words,
)
from kinodex.index.library import Library
from kinodex.index.rows import DetectionRow, SceneRow, SegmentRow, TranscriptRow
from kinodex.index.store.indexes import refresh
from kinodex.jobs.errors import UsageError
from tests.support.say import say

POSTERS = 100
PATHS = ("home", "libraries/0", "libraries/0/videos", "libraries/0/videos?words=harbour+winter")
ENGINE = """() => new Promise((done) => {
  const shown = () => {
    const first = performance.getEntriesByName("first-contentful-paint")[0];
    const cards = document.querySelectorAll(".posters li a").length;
    if (first && cards) requestAnimationFrame(() => done([first.startTime, performance.now()]));
    else setTimeout(shown, 5);
  };
  shown();
})"""
"""Times in milliseconds since the address was opened: the first text on the page, and the posters' cards drawn."""


@dataclass(frozen=True, slots=True)
class PageFigures:
    """Times in milliseconds: of the server's replies (first and warm), of a poster, and of the page in a browser."""

    videos: int
    replies: dict[str, tuple[float, float]]
    poster_cpu: float
    poster_again: float
    first_paint: float | None
    grid: float | None


def bench_page(directory: Path, videos: int, rounds: int, tell: Callable[[str], None]) -> PageFigures:
    """Make the library if it is missing, and measure; without a Chromium the browser's figures are None."""
    library = make_page_library(str(directory), videos, lambda done: tell(f"{done} of {videos} videos written"))
    with server(library.uri) as address:
        replies = {path: _replies(f"{address}/data/{path}", rounds) for path in PATHS}
        ids = [row.video_id for row in library.videos()[:POSTERS]]
        first, again = (_cpu_of([f"{address}/posters/0/{each}" for each in ids]) for _ in range(2))
        paint = _paint(address, rounds)
    return PageFigures(videos, replies, first, again, *paint)


def table(figures: PageFigures) -> str:
    """Write the figures as lines."""
    lines = [f"{path:42} {first:6.0f} ms first {warm:6.1f} ms warm" for path, (first, warm) in figures.replies.items()]
    browser = "no Chromium here" if figures.first_paint is None else f"{figures.first_paint:.0f} ms"
    grid = "" if figures.grid is None else f", its posters' cards {figures.grid:.0f} ms"
    return "\n".join(
        [
            f"a library of {figures.videos:,} videos",
            *lines,
            f"a poster: {figures.poster_cpu:.1f} ms of CPU the first time, {figures.poster_again:.1f} ms again",
            f"in a browser, median: first paint {browser}{grid}",
        ]
    )


@contextmanager
def server(uri: str) -> Iterator[str]:
    """Run the viewer's server on loopback in a thread; gives its address."""
    from kinodex.web.app import Site, make_app
    from kinodex.web.inputs import ViewerApi, classify_inputs
    from tests.support.loopback import serve_in_thread

    app = make_app(Site(ViewerApi(classify_inputs([uri]))))
    with serve_in_thread(app, socket.create_server(("127.0.0.1", 0))) as address:
        yield address


def _replies(address: str, rounds: int) -> tuple[float, float]:
    """Milliseconds of the first reply, and of the median of the next ones."""
    times_ms = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        _get(address)
        times_ms.append(1e3 * (time.perf_counter() - began))
    return times_ms[0], statistics.median(times_ms[1:])


def _cpu_of(addresses: Sequence[str]) -> float:
    """Milliseconds of this process's CPU an address."""
    began = time.process_time()
    for address in addresses:
        _get(address)
    return 1e3 * (time.process_time() - began) / len(addresses)


def _get(address: str) -> bytes:
    from urllib.request import urlopen

    with urlopen(address) as reply:
        content: bytes = reply.read()
        return content


def _paint(address: str, rounds: int) -> tuple[float | None, float | None]:
    """Medians of the first paint and of the grid in a fresh headless Chromium page, in milliseconds."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        return None, None
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError as error:
        raise UsageError("the browser's figures need playwright; `pip install playwright` brings it") from error
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        times_ms = []
        for _ in range(rounds):
            page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
            page.goto(f"{address}/#/library/0", wait_until="commit")
            times_ms.append(page.evaluate(ENGINE))
            page.context.close()
        browser.close()
    return statistics.median(paint for paint, _ in times_ms), statistics.median(grid for _, grid in times_ms)


# All that later stages add to the made-up film of hours: text on screen, captions, scenes and chapters.

SHOTS_A_SCENE, SCENES_A_CHAPTER = 6, 7
SHOWN_EVERY_S, SHOWN_S = 5.0, 4.0


class _Shown(NamedTuple):
    start_s: float
    end_s: float
    text: str
    confidence: float = 0.9
    box: tuple[float, float, float, float] = (0.1, 0.8, 0.6, 0.9)
    frames: int = 4
    language: str | None = None


def annotate(library: Library, video_id: str) -> None:
    """Add the stages "text", "captions" and "summaries" to a complete video of segments alone."""
    shots = library.segments(video_id)
    end_s = library.video(video_id).end_s
    shown = [
        _Shown(at * SHOWN_EVERY_S, at * SHOWN_EVERY_S + SHOWN_S, f"{text} {text}".upper())
        for at, text in enumerate(words(int(end_s / SHOWN_EVERY_S), seed=11))
    ]
    captions = [
        MadeCaption(shot.segment_no, shot.start_s, shot.end_s, f"a shot of {text} beside {text}", None)
        for shot, text in zip(shots, words(len(shots), seed=12), strict=True)
    ]
    library.additions.discard_leftovers("text", MODEL)
    library.screen_text.add({video_id: shown}, MODEL)
    library.additions.complete("text", MODEL, {video_id: len(shown)}, {})
    library.additions.add_captions({video_id: captions}, MODEL)
    library.additions.complete("captions", MODEL, {video_id: len(captions)}, {})
    parts = [*_parts("scene", shots, SHOTS_A_SCENE), *_parts("chapter", shots, SHOTS_A_SCENE * SCENES_A_CHAPTER)]
    library.additions.discard_leftovers("summaries", MODEL)
    library.scenes.add({video_id: parts})
    library.additions.complete("summaries", MODEL, {video_id: len(parts)}, {})


def _parts(level: Literal["scene", "chapter"], shots: list[SegmentRow], size: int) -> Iterator[SceneRow]:
    """Each `size` shots as one part, with a title and a summary."""
    for number, first in enumerate(range(0, len(shots), size)):
        own = shots[first : first + size]
        title, more = words(2, seed=100 * size + number)
        summary = f"In this {level} there are {title} and {more}, and then {more} and {title} again."
        span_s = own[0].start_s, own[-1].end_s
        yield SceneRow(own[0].video_id, level, number, *span_s, first, len(own), title.capitalize(), summary, MODEL)


# A made-up film of hours with shots, lines, detections, and if one likes all that later stages add: for its page.

SCENES, LABELS = 160, ("person", "car", "dog", "lamp", "boat", "chair", "tree", "cup", "book")
SHOT_S, LINE_EVERY_S, DETECTIONS_EVERY = 8.0, 2.5, 3
FRAMES_A_COMMIT = 2_000
SPEAKERS = ("Ada", "Ben", "speaker 3", "speaker 4")


def make_long_film(uri: str, frames: int, is_annotated: bool = False) -> Library:
    """Make a library of one film with a frame a second, or open the one that is there.

    If it `is_annotated`, its lines have speakers, and it has text on screen, captions, scenes and chapters.
    """
    kind = "long film, annotated" if is_annotated else "long film"
    library = Library.open_or_create(uri, {"kind": kind, "frames": frames}, made_fingerprint(DIM))
    name = video_id(0)
    if library.has_video(name):
        return library
    size = Size(1, frames, 0, DIM, 0)
    shots = _shots(name, frames)
    scenes = [draw_scene(number) for number in range(min(SCENES, len(shots)))]
    scene_of = np.searchsorted([each.end_s for each in shots], np.arange(frames), side="right") % len(scenes)
    vectors = frame_vectors(0, size)
    for first in range(0, frames, FRAMES_A_COMMIT):
        part = range(first, min(first + FRAMES_A_COMMIT, frames))
        rows = [MadeFrame(n, float(n), scenes[scene_of[n]], vectors[n]) for n in part]
        library.writer.add_frames({name: rows})
    said = _lines(name, frames, SPEAKERS if is_annotated else (None,))
    library.writer.add_segments({name: shots})
    library.writer.add_transcript({name: said})
    row = replace(made_row(0, size), title="A long film", segments=len(shots), transcript_lines=len(said))
    library.writer.complete([row])
    seen = _detections(name, frames)
    library.additions.add_detections({name: seen}, MODEL)
    library.additions.complete("detections", MODEL, {name: len(seen)}, {})
    if is_annotated:
        annotate(library, name)
    return library


def _shots(name: str, frames: int) -> list[SegmentRow]:
    random = np.random.default_rng(5)
    ends = np.cumsum(random.lognormal(np.log(SHOT_S), 0.7, 4 * frames // int(SHOT_S)))
    cuts = [0.0, *ends[ends < frames - 1].round(2).tolist(), float(frames)]
    return [SegmentRow(name, at, start, end, "shot") for at, (start, end) in enumerate(pairwise(cuts))]


def _lines(name: str, frames: int, speakers: Sequence[str | None]) -> list[TranscriptRow]:
    count = int(frames / LINE_EVERY_S)
    texts = words(count, seed=9)
    starts_s = [at * LINE_EVERY_S for at in range(count)]
    return [
        TranscriptRow(
            name, start_s, start_s + 2.2, f"{text} and then {text}", "sidecar", None, speakers[at % len(speakers)]
        )
        for at, (start_s, text) in enumerate(zip(starts_s, texts, strict=True))
    ]


def _detections(name: str, frames: int) -> Sequence[DetectionRow]:
    random = np.random.default_rng(6)
    rows = []
    for number in range(frames):
        for label in LABELS[: 1 + (number // 40) % len(LABELS)]:
            if random.random() < 1 / DETECTIONS_EVERY:
                continue
            x, y = random.uniform(0, 0.7, 2).round(3).tolist()
            rows.append(DetectionRow(name, number, float(number), label, 0.8, (x, y, x + 0.2, y + 0.25), None, MODEL))
    return rows


# A made-up library of many short videos with pictures of their own kind, to look at its pages.

FRAMES, DIM, LINES = 12, 64, 4
SEGMENTS = 3
MADE_UP_SCENES, WIDTH_PX, HEIGHT_PX = 48, 512, 288
VIDEOS_A_COMMIT = 500
PLACES = ("Harbour", "Market", "Garden", "Kitchen", "Desert", "Lighthouse", "Workshop", "Bridge", "Glacier", "Forest")
EVENTS = ("winter", "concert", "race", "storm", "festival", "wedding", "lesson", "parade", "repair", "interview")


def make_page_library(uri: str, videos: int, report: Callable[[int], None]) -> Library:
    """Make a library of this many videos at `uri`, or complete the one there; `report` gets the count of those done."""
    size = Size(videos, FRAMES, LINES, DIM, 0)
    library = Library.open_or_create(uri, {"kind": "page", "frames": FRAMES}, made_fingerprint(DIM))
    present = library.video_ids()
    missing = [number for number in range(videos) if video_id(number) not in present]
    scenes = [draw_scene(number) for number in range(MADE_UP_SCENES)]
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
    digests["transcript"] = library.writer.add_transcript({ids[n]: _made_up_lines(ids[n]) for n in numbers})
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
    pictures = [black, *(scenes[(number + at // 4) % MADE_UP_SCENES] for at in range(1, FRAMES))]
    vectors = frame_vectors(number, size)
    return [MadeFrame(at, float(5 * at), jpeg, vectors[at]) for at, jpeg in enumerate(pictures)]


def _segments(id_: str) -> list[SegmentRow]:
    return [SegmentRow(id_, at, 20.0 * at, 20.0 * at + 20, "shot") for at in range(SEGMENTS)]


def _made_up_lines(id_: str) -> list[TranscriptRow]:
    return [TranscriptRow(id_, 5.0 * at, 5.0 * at + 4, f"line {at}", "sidecar") for at in range(LINES)]


def main(
    directory: Annotated[Path, typer.Argument(help="Folder for the made-up library; an existing one is used.")],
    videos: Annotated[int, typer.Option(min=1, help="Videos in it.")] = 10_000,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds; medians are printed.")] = 5,
) -> None:
    """Measure how soon the page of a library of many videos is there: replies, posters, first paint in Chromium."""
    print(table(bench_page(directory, videos, rounds, say)))


if __name__ == "__main__":
    typer.run(main)
