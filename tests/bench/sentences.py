"""Searches by meaning in `kinodex bench search`: made-up vectors of lines, and their cost beside words alone.

Each word has a direction of its own, and a text the mean of its words': so a line is like a query as far as they share
words, and a search by meaning has near and far lines. No model runs: a query's vector is there, as it is once embedded.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from kinodex.bench.search import words
from kinodex.index.library import Library
from kinodex.index.rows import Scope
from kinodex.index.search.words import lines_like
from kinodex.index.sentences import STAGE, Meaning
from kinodex.index.spaces.sentence_model import Likeness, ModelFacts
from kinodex.index.spaces.towers import Fingerprint

DIM, WORDS, VIDEOS_A_COMMIT, K = 384, 20_000, 50, 10
"""Numbers of a vector, as MiniLM's; directions of words; results of a search."""
LEAST_COSINE = 0.2
"""Four deviations of chance among vectors of `DIM` numbers."""
SPACE = Fingerprint("made-up-sentences", "0" * 12, "0" * 64, ModelFacts("mean", 64, "", "", "[PAD]").as_json(), DIM)


class SentenceTimes(NamedTuple):
    """Medians of one run, in turn, in milliseconds: a search of all lines by BM25, by meaning, and by both fused.

    `cpu_ms` has the mean CPU of each, of all threads: it does not grow with what else runs on the machine.
    """

    words_ms: float
    meaning_ms: float
    fused_ms: float
    cpu_ms: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """CPU of both over that of words alone."""
        return self.cpu_ms[2] / self.cpu_ms[0]


def add_sentences(library: Library) -> float:
    """Add vectors of the lines of videos that have none yet; returns the seconds spent."""
    began = time.perf_counter()
    library.sentences.add_space(SPACE, Likeness(0.0, 1 / DIM**0.5))
    lacking = [row.video_id for row in library.additions.pending(STAGE, SPACE.digest)]
    for first in range(0, len(lacking), VIDEOS_A_COMMIT):
        lines = {each: library.sentences.lines(each) for each in lacking[first : first + VIDEOS_A_COMMIT]}
        rows = {each: (found, text_vectors([line.text for line in found])) for each, found in lines.items()}
        library.sentences.add(rows, SPACE)
        library.additions.complete(STAGE, SPACE.digest, {each: len(found) for each, found in lines.items()}, {})
    return time.perf_counter() - began


def meaning_of(text: str) -> Meaning:
    """The meaning of a query, as a model would give it."""
    return Meaning(text_vectors([text])[0], SPACE, LEAST_COSINE)


def text_vectors(texts: Sequence[str]) -> NDArray[np.float32]:
    """Unit vectors `[n, DIM]` of texts, each the mean of its words' directions."""
    directions = _directions()
    rows = [directions[[zlib.crc32(word.encode()) % WORDS for word in text.split()]].sum(axis=0) for text in texts]
    vectors = np.array(rows, np.float32).reshape(len(texts), DIM)
    units: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return units


def sentence_times(library: Library, texts: Sequence[str]) -> SentenceTimes:
    """Search all lines in three ways, in turn, so that all meet the same load."""
    tables, visible = library.tables, library.visible
    ways: list[Callable[[str], object]] = [
        lambda text: library.search.words(text, k=K),
        lambda text: lines_like(tables, visible, meaning_of(text), Scope(), K),
        lambda text: library.search.words(text, k=K, meaning=meaning_of(text)),
    ]
    for way in ways:
        way(texts[0])  # which opens the tables
    times_ms = np.zeros((len(texts), len(ways), 2))
    for n, text in enumerate(texts):
        for at, way in enumerate(ways):
            began = np.array([time.perf_counter(), time.process_time()])
            way(text)
            times_ms[n, at] = 1000 * (np.array([time.perf_counter(), time.process_time()]) - began)
    words_ms, meaning_ms, fused_ms = np.median(times_ms[..., 0], axis=0).tolist()
    return SentenceTimes(words_ms, meaning_ms, fused_ms, tuple(times_ms[..., 1].mean(axis=0).tolist()))


@cache
def _directions() -> NDArray[np.float32]:
    return np.random.default_rng(4).standard_normal((WORDS, DIM), dtype=np.float32)


def table(times: SentenceTimes) -> str:
    """Write the times as a table in Markdown."""
    ways = zip(
        ("words", "meaning", "both fused"),
        (times.words_ms, times.meaning_ms, times.fused_ms),
        times.cpu_ms,
        strict=True,
    )
    return "\n".join(
        [
            f"| top {K} of all lines by | p50 ms | CPU ms |",
            "|---|---|---|",
            *(f"| {way} | {ms:.1f} | {cpu_ms:.1f} |" for way, ms, cpu_ms in ways),
            f"CPU of both over words alone: {times.ratio:.2f}",
        ]
    )


def main(
    directory: Annotated[Path, typer.Argument(help="Folder of a library that `kinodex bench search` made.")],
    queries: Annotated[int, typer.Option(min=1)] = 50,
) -> None:
    """Give the lines of a made-up library vectors, and search them by words, by meaning and by both, in turn."""
    library = Library.open(str(directory))
    add_sentences(library)
    print(table(sentence_times(library, words(queries, seed=2))))


if __name__ == "__main__":
    typer.run(main)
