"""Measure the search of a library of a million frames: `python -m tests.bench.search FOLDER`.

Every query is put to an open library ("warm"), to one opened again for it ("fresh"), and to one opened again after its
files were dropped from the system's memory ("cold", see `drop_page_cache`). Queries of one video go to another video
each time, so that none is answered from what an earlier one read; "in memory" is a video read once and searched
again, against numpy on the same rows. Recall is against numpy on all rows. The rows are made up: see
below. Recall is also given for the index alone, whose vectors are rounded to 8 bits: what the
search compares again exactly makes the difference, above all in a narrow cone.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from kinodex.index.library import Library
from kinodex.index.rows import Hit, Scope, VideoRow
from kinodex.index.search.queries import candidates
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.store.indexes import refresh
from kinodex.index.store.schema import vectors_table
from kinodex.index.store.vector_index import COLUMN, count_parts
from kinodex.index.sweep import sweep
from kinodex.output import tell, tell_count
from kinodex.requests import Find
from kinodex.search.finder import Finder
from kinodex.web.search import VIDEOS_KEPT, FrameTimes, groups_view
from tests.bench.figures import JsonOption, show

K = 10
FRAMES_READ = 16
FRESH_QUERIES, COLD_QUERIES = 20, 5
OPENED_S = 20.0
"""After this many seconds no further library is opened for a kind of query: graphs of ten million frames take 10 s."""
ONE_VIDEO_GOAL_MS, IN_MEMORY_GOAL, RECALL_GOAL = 5.0, 2.0, 0.95
SHARES, CONDITION_GOAL = (0.5, 0.05, 0.005, 0.0005), 2.0
"""Shares of the videos for which conditions hold; a search of them takes at most this many times that of all."""
PAGE_GOAL_MS = 100.0
"""Of the search of the page, which is asked again while somebody types; without the text tower."""
WHOLE_GOAL_MS = {1_000_000: 5.0, 10_000_000: 20.0}
"""Goal by the number of frames up to which it holds."""

Floats = NDArray[np.float32]
Query = Callable[[Library, int], object]
"""A function that puts the n-th query of one kind to a library."""
Kind = tuple[str, Query, float | None]
"""Title, query, goal in milliseconds."""


@dataclass(frozen=True, slots=True)
class Times:
    """Times of one kind of query, in milliseconds: `warm_ms` and `p95_ms` warm, the others medians too."""

    question: str
    warm_ms: float
    p95_ms: float
    fresh_ms: float
    cold_ms: float
    goal_ms: float | None = None


@dataclass(frozen=True, slots=True)
class ConditionFigures:
    """A search of the videos for which a condition holds: their number, times warm in milliseconds, and recall.

    `ratio` is the median over that of the same queries of all videos, put in turn.
    """

    share: float
    videos: int
    warm_ms: float
    p95_ms: float
    whole_ms: float
    ratio: float
    recall: float


@dataclass(frozen=True, slots=True)
class SearchFigures:
    """Figures of a search benchmark; `ratio` is in memory over numpy, `recall` of the ten nearest frames of all."""

    size: Size
    write_s: float
    index_s: float
    stored_bytes: int
    times: tuple[Times, ...]
    in_memory_ms: float
    numpy_ms: float
    ratio: float
    recall: float
    machine: str
    parts: int = 0
    """Graphs of the index; 0 where everything is scanned."""
    index_recall: float = 0.0
    """Recall of the index alone, before its candidates are compared again."""
    best_cosine: float = 0.0
    """Median over the queries, of their best frame."""
    conditions: tuple[ConditionFigures, ...] = ()


def bench_search(
    directory: Path, size: Size, count: int, report: Callable[[int], None], say: Callable[[str], None] = lambda _: None
) -> SearchFigures:
    """Make the library in `directory`, or use the one that is there, and put `count` queries of each kind to it.

    `say` gets a line for each kind, as its figures come. The open library is let go before others are opened afresh:
    the graphs of ten million frames do not fit twice.
    """
    library, write_s = make_library(str(directory), size, report)
    began = time.perf_counter()
    refresh(library.tables)
    index_s = time.perf_counter() - began
    del library
    vectors, texts = queries(count, size), words(count, seed=2)
    kinds = _queries(size, vectors, texts)
    found = _found(Library.open(str(directory)), size, vectors)
    say(f"recall@{K} {found.recall:.3f}, of the index alone {found.index_recall:.3f}")
    warm = _warm_ms(Library.open(str(directory)), kinds, count, say)
    conditions = bench_conditions(Library.open(str(directory)), size, vectors, say)
    in_memory_ms, numpy_ms = _in_memory(Library.open(str(directory)), vectors)
    opened = [_opened_ms(directory, *kind[:2], count, say) for kind in kinds]
    return SearchFigures(
        size=size,
        write_s=write_s,
        index_s=index_s,
        stored_bytes=Library.open(str(directory)).info().stored_bytes,
        times=tuple(
            Times(title, *warm_ms, *opened_ms, goal_ms)
            for (title, _, goal_ms), warm_ms, opened_ms in zip(kinds, warm, opened, strict=True)
        ),
        in_memory_ms=in_memory_ms,
        numpy_ms=numpy_ms,
        ratio=in_memory_ms / numpy_ms,
        recall=found.recall,
        parts=found.parts,
        index_recall=found.index_recall,
        best_cosine=found.best_cosine,
        conditions=conditions,
        machine=machine(),
    )


def machine() -> str:
    return (
        f"{platform.system()} {platform.machine()}, {len(os.sched_getaffinity(0))} cores; "
        f"pylance {version('pylance')}, numpy {version('numpy')}"
    )


def bench_conditions(
    library: Library, size: Size, vectors: Floats, say: Callable[[str], None]
) -> tuple[ConditionFigures, ...]:
    """Put the queries to the videos of conditions and to all videos in turn, so that both meet the same machine."""
    order = np.random.default_rng(4).permutation(size.videos).tolist()
    library.metadata.write({video_id(number): {"place": place} for place, number in enumerate(order)})
    figures = []
    for share in SHARES:
        count = max(1, round(share * size.videos))
        among = library.where(f"place < {count}")
        exact, _ = _exact(library, size, vectors, order[:count])
        times: dict[bool, list[float]] = {True: [], False: []}
        found = []
        for n in range(-1, len(vectors)):  # a cost of the first query only is shown by "fresh"
            for opened in (library, among):
                began = time.perf_counter()
                hits = opened.search.frames(vectors[n], k=K)
                if n >= 0:
                    times[opened is among].append(1000 * (time.perf_counter() - began))
            found += [_keys(hits, size)] if n >= 0 else []
        warm_ms, p95_ms = np.quantile(times[True], [0.5, 0.95])
        whole_ms = float(np.median(times[False]))
        ratio, recall = float(warm_ms) / whole_ms, _recall(exact, found)
        figures.append(ConditionFigures(share, count, float(warm_ms), float(p95_ms), whole_ms, ratio, recall))
        say(f"in {share:.2%} of the videos: warm {warm_ms:.1f} ms, all {whole_ms:.1f} ms, recall@{K} {recall:.3f}")
    return tuple(figures)


def condition_table(figures: Sequence[ConditionFigures], size: Size) -> str:
    """The figures of conditions as a table in Markdown."""
    lines = [
        f"top {K} of the videos for which a condition holds, of {size.videos:,} of {size.frames:,} frames",
        "",
        f"| videos | warm p50 ms | warm p95 ms | all videos, p50 ms | ratio (goal {CONDITION_GOAL:g}) | "
        f"recall@{K} (goal {RECALL_GOAL:g}) |",
        "|---|---|---|---|---|---|",
    ]
    for each in figures:
        met = _verdict(each.ratio <= CONDITION_GOAL), _verdict(each.recall >= RECALL_GOAL)
        lines.append(
            f"| {each.share:.2%}: {each.videos:,} | {each.warm_ms:.2f} | {each.p95_ms:.2f} | {each.whole_ms:.2f} | "
            f"{each.ratio:.2f}: {met[0]} | {each.recall:.3f}: {met[1]} |"
        )
    return "\n".join(lines)


class _Found(NamedTuple):
    recall: float
    index_recall: float
    best_cosine: float
    parts: int


def _found(library: Library, size: Size, vectors: Floats) -> _Found:
    parts = count_parts(library.tables[vectors_table(library.fingerprint)])
    exact, best_cosine = _exact(library, size, vectors)
    recall = _recall(exact, [_keys(library.search.frames(vector, k=K), size) for vector in vectors])
    index_recall = _recall(exact, [_index_keys(library, size, vector) for vector in vectors])
    return _Found(recall, index_recall, best_cosine, parts)


def table(figures: SearchFigures) -> str:
    f = figures
    lines = [
        f"{f.size.videos} videos of {f.size.frames} frames, {f.size.dim} dimensions, {f.size.lines} transcript lines "
        f"and captions a video, {f.stored_bytes / 1e9:.2f} GB; what was not there was written in {f.write_s:.0f} s "
        f"and indexed in {f.index_s:.0f} s, the vectors in parts: {f.parts}; {f.machine}",
        *(["vectors made up in a narrow cone, as SigLIP's are"] if f.size.is_cone else []),
        "",
        "| question | warm p50 ms | warm p95 ms | fresh p50 ms | cold p50 ms | goal, warm p50 |",
        "|---|---|---|---|---|---|",
    ]
    for t in f.times:
        goal = "" if t.goal_ms is None else f"{t.goal_ms:g} ms: {_verdict(t.warm_ms <= t.goal_ms)}"
        lines.append(
            f"| {t.question} | {t.warm_ms:.2f} | {t.p95_ms:.2f} | {t.fresh_ms:.1f} | {t.cold_ms:.1f} | {goal} |"
        )
    return "\n".join(
        [
            *lines,
            "",
            f"top {K} in one video again, in memory: {f.in_memory_ms:.3f} ms, numpy {f.numpy_ms:.3f} ms, ratio "
            f"{f.ratio:.2f} (goal {IN_MEMORY_GOAL:g}: {_verdict(f.ratio <= IN_MEMORY_GOAL)})",
            condition_table(f.conditions, f.size),
            "",
            f"median cosine of the best frame: {f.best_cosine:.2f}",
            f"recall@{K} of the index alone: {f.index_recall:.3f}",
            f"recall@{K} over all frames: {f.recall:.3f} (goal {RECALL_GOAL:g}: {_verdict(f.recall >= RECALL_GOAL)})",
        ]
    )


def _verdict(met: bool) -> str:
    return "met" if met else "missed"


def _queries(size: Size, vectors: Floats, texts: Sequence[str]) -> list[Kind]:
    order = np.random.default_rng(3).permutation(size.videos)
    times_s = np.linspace(0, size.frames, FRAMES_READ, endpoint=False)
    whole_goal_ms = next((goal for frames, goal in WHOLE_GOAL_MS.items() if size.videos * size.frames <= frames), None)

    def video(n: int) -> str:
        return video_id(int(order[n % size.videos]))

    def one(n: int) -> Scope:
        return Scope((video(n),))

    def vector(n: int) -> Floats:
        chosen: Floats = vectors[n % len(vectors)]
        return chosen

    def text(n: int) -> str:
        return texts[n % len(texts)]

    return [
        (f"top {K} in one video", lambda opened, n: opened.search.frames(vector(n), one(n), K), ONE_VIDEO_GOAL_MS),
        ("all vectors of a video", lambda opened, n: opened.in_memory(video(n)), None),
        (f"top {K} of all frames", lambda opened, n: opened.search.frames(vector(n), k=K), whole_goal_ms),
        (f"{FRAMES_READ} frames of a video by time", lambda opened, n: opened.frames_at(video(n), list(times_s)), None),
        ("two words in all transcripts", lambda opened, n: opened.search.lines("speech", text(n)), None),
        ("two words in one transcript", lambda opened, n: opened.search.lines("speech", text(n), one(n)), None),
        ("two words in all captions", lambda opened, n: opened.search.captions(text(n)), None),
        ("words and vector in all captions", lambda opened, n: opened.search.captions(text(n), vector(n)), None),
        ("two words in all lines", lambda opened, n: opened.search.words(text(n)), None),
        ("frames, transcript and captions, fused", lambda opened, n: opened.search.hybrid(text(n), vector(n)), None),
        (
            "the page: frames, transcript and captions by video, with why",
            lambda opened, n: _page(opened, text(n), vector(n)),
            PAGE_GOAL_MS,
        ),
    ]


def _page(library: Library, text: str, vector: Floats) -> object:
    finder = Finder(library, embed_text=lambda _: vector, meaning_of=lambda _: None)
    hits = finder.find(Find(query=text, k=36))
    return groups_view(library, hits, text, "words", _frame_times(library))


@lru_cache(maxsize=1)
def _frame_times(library: Library) -> FrameTimes:
    """Frame times of videos, kept as an open page keeps them."""
    return lru_cache(VIDEOS_KEPT)(lambda video: library.frame_times(video.video_id))


def _warm_ms(
    library: Library, kinds: Sequence[Kind], count: int, say: Callable[[str], None]
) -> list[tuple[float, float]]:
    found = []
    for title, query, _ in kinds:
        query(library, count)  # a cost of the first query only is shown by "fresh"
        p50_ms, p95_ms = np.quantile([_ms(query, library, n) for n in range(count)], [0.5, 0.95])
        say(f"{title}: warm {p50_ms:.1f} ms, 95 of 100 within {p95_ms:.1f} ms")
        found.append((float(p50_ms), float(p95_ms)))
    return found


def _opened_ms(
    directory: Path, title: str, query: Query, count: int, say: Callable[[str], None]
) -> tuple[float, float]:
    """Measure a kind of query as the first of a library that was opened for it, fresh and cold: medians."""
    fresh = _some_ms(lambda n: _first_ms(directory, query, count + n), min(count, FRESH_QUERIES))

    def cold_ms(n: int) -> float:
        drop_page_cache(directory)
        return _first_ms(directory, query, 2 * count + n)

    cold = _some_ms(cold_ms, min(count, COLD_QUERIES))
    say(f"{title}: fresh {np.median(fresh):.1f} ms, cold {np.median(cold):.1f} ms")
    return float(np.median(fresh)), float(np.median(cold))


def _some_ms(measure: Callable[[int], float], most: int) -> list[float]:
    began, found = time.perf_counter(), [measure(0)]
    while len(found) < most and time.perf_counter() - began < OPENED_S:
        found.append(measure(len(found)))
    return found


def _first_ms(directory: Path, query: Query, n: int) -> float:
    began = time.perf_counter()
    query(Library.open(str(directory)), n)
    return 1000 * (time.perf_counter() - began)


def _ms(query: Query, library: Library, n: int) -> float:
    began = time.perf_counter()
    query(library, n)
    return 1000 * (time.perf_counter() - began)


def _in_memory(library: Library, vectors: Floats) -> tuple[float, float]:
    in_memory = library.in_memory(video_id(0))
    rows = in_memory.units

    def by_numpy(n: int) -> NDArray[np.intp]:
        cosines = rows @ vectors[n]
        top = np.argpartition(-cosines, K)[:K]
        best: NDArray[np.intp] = top[np.argsort(-cosines[top])]
        return best

    ours, numpys = [], []
    for n in range(len(vectors)):
        ours.append(_ms(lambda _, n: in_memory.search(vectors[n], K), library, n))
        numpys.append(_ms(lambda _, n: by_numpy(n), library, n))
    return float(np.median(ours)), float(np.median(numpys))


def _exact(
    library: Library, size: Size, vectors: Floats, numbers: Sequence[int] | None = None
) -> tuple[list[set[int]], float]:
    """Find the exact ten nearest frames for each query, as numbers, and the median of the best cosines.

    Of all videos, or of those of these numbers.
    """
    best = np.full((len(vectors), K), -np.inf, np.float32)
    keys = np.zeros((len(vectors), K), np.int64)
    for number in range(size.videos) if numbers is None else numbers:
        cosines = vectors @ library.in_memory(video_id(number)).units.T
        together = np.hstack([best, cosines])
        numbered = np.broadcast_to(number * size.frames + np.arange(size.frames), cosines.shape)
        top = np.argpartition(-together, K, axis=1)[:, :K]
        best = np.take_along_axis(together, top, axis=1)
        keys = np.take_along_axis(np.hstack([keys, numbered]), top, axis=1)
    return [set(row) for row in keys.tolist()], float(np.median(best.max(axis=1)))


def _keys(hits: Sequence[Hit], size: Size) -> set[int]:
    return {int(hit.video_id, 16) * size.frames + (hit.frame_no or 0) for hit in hits}


def _index_keys(library: Library, size: Size, vector: Floats) -> set[int]:
    """Ask the index for ten frames, by its own order."""
    table = library.tables[vectors_table(library.fingerprint)]
    nearest = {"column": COLUMN, "q": vector, "k": K, "metric": "cosine", "ef": candidates(K, table.count_rows())}
    columns = ["video_id", "frame_no"]
    rows = library.tables.rows(vectors_table(library.fingerprint), None, columns, nearest=nearest).to_pylist()
    return {int(row["video_id"], 16) * size.frames + row["frame_no"] for row in rows}


def _recall(exact: Sequence[set[int]], found: Sequence[set[int]]) -> float:
    return sum(len(each & right) for each, right in zip(found, exact, strict=True)) / (K * len(exact))


def drop_page_cache(folder: Path) -> None:
    """Drop the cached pages of all files in a folder, by `posix_fadvise(DONTNEED)`, so that the disk is read next.

    Advice to the system, which keeps what is not written to the disk yet (so this writes it first) or what another
    process has mapped; the disk's own cache, and that of a host around a virtual machine, stay as they are.
    """
    os.sync()
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)


# Make a library of made-up rows for measuring search: no video, no model, only numbers distributed like real ones.
#
# Each video has scenes, each scene a direction near one of the library's topics, each frame a direction near its
# scene's: so frames crowd together as those of real videos do, and a query has near and far neighbours. Words are drawn
# by Zipf's law.
#
# In a narrow cone (`Size.is_cone`) all frames share one direction and all queries another, as pictures and texts of
# CLIP's kind do (Liang et al. 2022, "Mind the gap"): the cosines of the best matches are 0.06 to 0.3, as SigLIP's are,
# and those of all others are not much lower.

TOPICS, CHAPTERS = 300, 20
SCENE_SPREAD, FRAME_SPREAD = 0.8, 0.5
CONE_QUERY_SPREAD = 1.0
CONE_QUERY_SHARE = (0.15, 0.6)
"""Length of what a query has in common with frames, beside 1 for the direction that all queries share."""
WORDS, WORDS_A_LINE = 20_000, 8
VIDEOS_A_COMMIT = 10
MODEL = "made up"
Vectors = NDArray[np.float16]


class Size(NamedTuple):
    """Size of a made-up library: `lines` transcript lines and as many captions a video, a `jpeg_bytes` JPEG a frame."""

    videos: int
    frames: int
    lines: int
    dim: int
    jpeg_bytes: int
    is_cone: bool = False
    """Vectors lie in a narrow cone."""

    @property
    def settings(self) -> dict[str, int]:
        """Settings that the library keeps, as those without a cone always had them."""
        return {name: number for name, number in self._asdict().items() if name != "is_cone" or number}

    @property
    def topic_dim(self) -> int:
        """Numbers of a vector that tell topics, scenes and frames apart."""
        return self.dim - 2 if self.is_cone else self.dim


class MadeFrame(NamedTuple):
    """A made-up frame, as `VideoWriter` takes it."""

    frame_no: int
    time_s: float
    jpeg: bytes
    vector: Vectors
    width_px: int = 512
    height_px: int = 288


class _Line(NamedTuple):
    start_s: float
    end_s: float
    text: str
    source: str = "sidecar"
    language: str | None = None
    speaker: str | None = None


class MadeCaption(NamedTuple):
    """A made-up caption, as `Additions.add_captions` takes it."""

    segment_no: int
    start_s: float
    end_s: float
    text: str
    vector: Vectors | None
    confidence: float | None = None


def make_library(uri: str, size: Size, report: Callable[[int], None]) -> tuple[Library, float]:
    """Make the library at `uri`, or complete the one there; with the seconds spent. Raises SettingsMismatch."""
    library = Library.open_or_create(uri, size.settings, made_fingerprint(size.dim))
    began = time.perf_counter()
    present = {row.video_id for row in library.videos()}
    missing = [number for number in range(size.videos) if video_id(number) not in present]
    sweep(library)
    for first in range(0, len(missing), VIDEOS_A_COMMIT):
        _write(library, missing[first : first + VIDEOS_A_COMMIT], size)
        report(size.videos - len(missing) + min(first + VIDEOS_A_COMMIT, len(missing)))
    return library, time.perf_counter() - began


def made_fingerprint(dim: int) -> Fingerprint:
    return Fingerprint("made-up", "0" * 12, "0" * 64, '{"size": 0}', dim)


def video_id(number: int) -> str:
    return f"{number:064x}"


def queries(count: int, size: Size) -> NDArray[np.float32]:
    random = np.random.default_rng(1)
    numbers = random.integers(size.videos, size=count)
    frames = np.stack([_topic_vectors(int(n), size)[random.integers(size.frames)] for n in numbers])
    spread = CONE_QUERY_SPREAD if size.is_cone else FRAME_SPREAD
    near = _unit(frames + spread * _directions(random, count, size.topic_dim))
    if not size.is_cone:
        return near
    share = random.uniform(*CONE_QUERY_SHARE, (count, 1)).astype(np.float32)
    return _unit(np.hstack([share * near, np.zeros((count, 1), np.float32), np.ones((count, 1), np.float32)]))


def words(count: int, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(_word(int(n)) for n in random.integers(10, 2_000, size=2)) for _ in range(count)]


def frame_vectors(number: int, size: Size) -> Vectors:
    vectors = _topic_vectors(number, size)
    if size.is_cone:
        shared = np.tile(np.array([1, 0], np.float32), (size.frames, 1))
        vectors = _unit(np.hstack([vectors, shared]))
    return vectors.astype(np.float16)


def _topic_vectors(number: int, size: Size) -> NDArray[np.float32]:
    random = np.random.default_rng([0, number])
    topics = _directions(np.random.default_rng(0), TOPICS, size.topic_dim)[random.integers(TOPICS, size=CHAPTERS)]
    scenes = _unit(topics + SCENE_SPREAD * _directions(random, CHAPTERS, size.topic_dim))
    shown = np.sort(random.integers(CHAPTERS, size=size.frames))
    return _unit(scenes[shown] + FRAME_SPREAD * _directions(random, size.frames, size.topic_dim))


def _write(library: Library, numbers: Sequence[int], size: Size) -> None:
    vectors = {number: frame_vectors(number, size) for number in numbers}
    frames = {video_id(number): _frames(number, size, vectors[number]) for number in numbers}
    digests = library.writer.add_frames(frames)
    lines = {video_id(number): list(_lines(number, size)) for number in numbers}
    digests["speech"] = library.writer.add_speech(lines)
    captions = {video_id(number): list(_captions(number, size, vectors[number])) for number in numbers}
    library.writer.complete([made_row(number, size) for number in numbers], digests=digests)
    library.additions.add_captions(captions, MODEL)
    library.additions.complete("captions", MODEL, {id_: len(rows) for id_, rows in captions.items()}, {})


def _frames(number: int, size: Size, vectors: Vectors) -> list[MadeFrame]:
    noise = np.random.default_rng(number).bytes(size.frames * size.jpeg_bytes)
    cuts = range(0, len(noise), size.jpeg_bytes)
    pictures = [noise[first : first + size.jpeg_bytes] for first in cuts]
    return [
        MadeFrame(n, float(n), jpeg, vector) for n, (jpeg, vector) in enumerate(zip(pictures, vectors, strict=True))
    ]


def made_row(number: int, size: Size) -> VideoRow:
    return VideoRow(
        video_id=video_id(number),
        uri=f"made-up://{number}",
        title=f"video {number}",
        start_s=0.0,
        duration_s=float(size.frames),
        fps=25.0,
        width_px=512,
        height_px=288,
        codec="none",
        frames=size.frames,
        segments=0,
        speech_lines=size.lines,
        decode_errors=0,
        sample_fps=1.0,
        space="made-up",
        state="complete",
        ingested_at=datetime.now(UTC),
    )


def _lines(number: int, size: Size) -> Iterator[_Line]:
    for at, text in enumerate(_texts(2 * number, size.lines)):
        yield _Line(at * size.frames / size.lines, (at + 1) * size.frames / size.lines, text)


def _captions(number: int, size: Size, vectors: Vectors) -> Iterator[MadeCaption]:
    for at, text in enumerate(_texts(2 * number + 1, size.lines)):
        start_s, end_s = at * size.frames / size.lines, (at + 1) * size.frames / size.lines
        yield MadeCaption(at, start_s, end_s, text, vectors[int(start_s)])


def _texts(seed: int, count: int) -> list[str]:
    numbers = np.random.default_rng([1, seed]).zipf(1.3, size=(count, WORDS_A_LINE)) % WORDS
    return [" ".join(_word(int(number)) for number in line) for line in numbers]


def _word(number: int) -> str:
    """Make a word of its own for each number: its digits to the base of 20 as syllables."""
    word = ""
    while number or not word:
        number, digit = divmod(number, 20)
        word += "bdfgklmnprstvzjhcxwy"[digit] + "aeiou"[digit % 5]
    return word


def _directions(random: np.random.Generator, count: int, dim: int) -> NDArray[np.float32]:
    return _unit(random.standard_normal((count, dim), dtype=np.float32))


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    units: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return units


def main(
    directory: Annotated[Path, typer.Argument(help="Folder for the made-up library; an existing one is used.")],
    videos: Annotated[int, typer.Option(min=1, help="Videos in it.")] = 1000,
    frames: Annotated[int, typer.Option(min=20, help="Frames a video.")] = 1000,
    lines: Annotated[int, typer.Option(min=1, help="Transcript lines a video, and as many captions.")] = 100,
    dim: Annotated[int, typer.Option(min=8, help="Numbers in a vector.")] = 512,
    jpeg_bytes: Annotated[int, typer.Option(min=1, help="Bytes of a stored picture.")] = 1000,
    count: Annotated[int, typer.Option("--queries", min=1, help="Questions of each kind.")] = 100,
    cone: Annotated[
        bool, typer.Option("--cone", help="Vectors in a narrow cone: cosines of the best matches of 0.06 to 0.3.")
    ] = False,
    conditions: Annotated[
        bool, typer.Option("--conditions", help="Only searches of the videos for which a condition holds.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Measure searches of a library of a million made-up frames: warm, freshly opened and cold, with recall."""

    def on_progress(done: int) -> None:
        tell_count(f"{done} of {videos} videos written")

    size = Size(videos, frames, lines, dim, jpeg_bytes, cone)
    if conditions:
        library, _ = make_library(str(directory), size, on_progress)
        refresh(library.tables)
        found = bench_conditions(library, size, queries(count, size), lambda line: tell(f"\r{line}"))
        show(found, f"{condition_table(found, size)}\n\n{machine()}", json)
        return
    figures = bench_search(directory, size, count, on_progress, lambda line: tell(f"\r{line}"))
    show(figures, table(figures), json)


if __name__ == "__main__":
    typer.run(main)
