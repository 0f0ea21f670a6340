"""Measure the search of a library of a million frames: `kinodex bench search`.

Every query is put to an open library ("warm"), to one opened again for it ("fresh"), and to one opened again after its
files were dropped from the system's memory ("cold", see `drop_page_cache`). Queries of one video go to another video
each time, so that none is answered from what an earlier one read; "in memory" is a video read once and searched
again, against numpy on the same rows. Recall is against numpy on all rows. The rows are made up: see
`jobs.bench.synthetic_library`. Recall is also given for the index alone, whose vectors are rounded to 8 bits: what the
search compares again exactly makes the difference, above all in a narrow cone. Searches of lines by words, by meaning
and by both are compared in turn: see `jobs.bench.sentences`.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from index.library import Library
from index.rows import Hit, Scope
from index.search.query import candidates
from index.store.indexes import refresh
from index.store.schema import vectors_table
from index.store.vector_index import COLUMN, count_parts
from jobs.bench.fixtures import drop_page_cache
from jobs.bench.sentences import SentenceTimes, add_sentences, meaning_of, sentence_times
from jobs.bench.synthetic_library import Size, make_library, queries, video_id, words
from jobs.viewer.search.groups import FrameTimes, groups_view
from jobs.viewer.search.library_search import VIDEOS_KEPT
from jobs.viewer.search.moments import find_moments
from jobs.viewer.search.request import SearchRequest

K = 10
FRAMES_READ = 16
FRESH_QUERIES, COLD_QUERIES = 20, 5
OPENED_S = 20.0
"""After so many seconds no further library is opened for a kind of query: graphs of ten million frames take 10 s."""
ONE_VIDEO_GOAL_MS, IN_MEMORY_GOAL, RECALL_GOAL = 5.0, 2.0, 0.95
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
    sentences: SentenceTimes | None = None


def bench_search(
    directory: Path, size: Size, count: int, report: Callable[[int], None], say: Callable[[str], None] = lambda _: None
) -> SearchFigures:
    """Make the library in `directory`, or use the one that is there, and put `count` queries of each kind to it.

    `say` gets a line for each kind, as its figures come. The open library is let go before others are opened afresh:
    the graphs of ten million frames do not fit twice.
    """
    library, write_s = make_library(str(directory), size, report)
    write_s += add_sentences(library)
    began = time.perf_counter()
    refresh(library.tables)
    index_s = time.perf_counter() - began
    del library
    vectors, texts = queries(count, size), words(count, seed=2)
    kinds = _queries(size, vectors, texts)
    found = _found(Library.open(str(directory)), size, vectors)
    say(f"recall@{K} {found.recall:.3f}, of the index alone {found.index_recall:.3f}")
    warm = _warm_ms(Library.open(str(directory)), kinds, count, say)
    in_memory_ms, numpy_ms = _in_memory(Library.open(str(directory)), vectors)
    sentences = sentence_times(Library.open(str(directory)), texts)
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
        sentences=sentences,
        machine=f"{platform.system()} {platform.machine()}, {len(os.sched_getaffinity(0))} cores; "
        f"pylance {version('pylance')}, numpy {version('numpy')}",
    )


class _Found(NamedTuple):
    recall: float
    index_recall: float
    best_cosine: float
    parts: int


def _found(library: Library, size: Size, vectors: Floats) -> _Found:
    """Compare what the search and its index find with the exact nearest frames."""
    parts = count_parts(library.tables[vectors_table(library.fingerprint)])
    exact, best_cosine = _exact(library, size, vectors)
    recall = _recall(exact, [_keys(library.search.frames(vector, k=K), size) for vector in vectors])
    index_recall = _recall(exact, [_index_keys(library, size, vector) for vector in vectors])
    return _Found(recall, index_recall, best_cosine, parts)


def table(figures: SearchFigures) -> str:
    """Write the figures as Markdown, for people."""
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
            *([] if f.sentences is None else [_sentence_line(f.sentences)]),
            f"median cosine of the best frame: {f.best_cosine:.2f}",
            f"recall@{K} of the index alone: {f.index_recall:.3f}",
            f"recall@{K} over all frames: {f.recall:.3f} (goal {RECALL_GOAL:g}: {_verdict(f.recall >= RECALL_GOAL)})",
        ]
    )


def _sentence_line(times: SentenceTimes) -> str:
    words, meaning, fused = times.cpu_ms
    return (
        f"top {K} of all lines, in turn: by words {times.words_ms:.1f} ms ({words:.1f} of CPU), by meaning "
        f"{times.meaning_ms:.1f} ({meaning:.1f}), both fused {times.fused_ms:.1f} ({fused:.1f}), CPU of both over "
        f"words alone {times.ratio:.2f}"
    )


def _verdict(met: bool) -> str:
    return "met" if met else "missed"


def _queries(size: Size, vectors: Floats, texts: Sequence[str]) -> list[Kind]:
    """List the kinds of query."""
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
        ("two words in all transcripts", lambda opened, n: opened.search.transcript(text(n)), None),
        ("two words in one transcript", lambda opened, n: opened.search.transcript(text(n), one(n)), None),
        ("two words in all captions", lambda opened, n: opened.search.captions(text(n)), None),
        ("words and vector in all captions", lambda opened, n: opened.search.captions(text(n), vector(n)), None),
        ("two words in all lines", lambda opened, n: opened.search.words(text(n)), None),
        (
            "words and meaning in all lines, fused",
            lambda opened, n: opened.search.words(text(n), meaning=meaning_of(text(n))),
            None,
        ),
        ("frames, transcript and captions, fused", lambda opened, n: opened.search.hybrid(text(n), vector(n)), None),
        (
            "the same with the meaning of lines",
            lambda opened, n: opened.search.hybrid(text(n), vector(n), meaning=meaning_of(text(n))),
            None,
        ),
        (
            "the page: frames, transcript and captions by video, with why",
            lambda opened, n: _page(opened, text(n), vector(n)),
            PAGE_GOAL_MS,
        ),
    ]


def _page(library: Library, text: str, vector: Floats) -> object:
    """Search as the page does, with a vector in place of the text tower."""
    request = SearchRequest(text)
    moments = find_moments(library, request, lambda _: vector, library.fingerprint, lambda _: None)
    return groups_view(library, moments, text, "words", _frame_times(library))


@lru_cache(maxsize=1)
def _frame_times(library: Library) -> FrameTimes:
    """Frame times of videos, kept as an open page keeps them."""
    return lru_cache(VIDEOS_KEPT)(lambda video: library.frame_times(video.video_id))


def _warm_ms(
    library: Library, kinds: Sequence[Kind], count: int, say: Callable[[str], None]
) -> list[tuple[float, float]]:
    """Measure each kind of query on an open library: median and 95th percentile in milliseconds."""
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
    """Measure `most` times, or until that has taken `OPENED_S`."""
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
    """Measure the top ten of one video in memory, by us and by numpy, in turn: medians in milliseconds."""
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


def _exact(library: Library, size: Size, vectors: Floats) -> tuple[list[set[int]], float]:
    """Find the exact ten nearest frames of all for each query, as numbers, and the median of the best cosines."""
    best = np.full((len(vectors), K), -np.inf, np.float32)
    keys = np.zeros((len(vectors), K), np.int64)
    for number in range(size.videos):
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
    """Measure the part of the exact nearest frames that was found."""
    return sum(len(each & right) for each, right in zip(found, exact, strict=True)) / (K * len(exact))
