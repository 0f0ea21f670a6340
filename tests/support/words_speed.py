"""Time of a search of all words, with meaning and without: `python -m tests.support.words_speed FOLDER [LINES]`.

The library is made up: lines of ten words of a few thousand, vectors of 384 numbers near one of as many topics as there
are words. Searches with and without meaning take turns, so that both meet the same load.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from numpy.typing import NDArray

from kinodex.index.library import Library
from kinodex.index.sentences import Meaning
from kinodex.index.spaces.sentence_model import Likeness
from kinodex.index.store.indexes import refresh
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, write
from tests.support.libraries.sentence_lines import ConceptModel

LINES_A_VIDEO, DIM, WORDS, ROUNDS = 500, 384, 4000, 200
MODEL = ConceptModel("made-up", DIM)


def topics() -> NDArray[np.float32]:
    rows = np.random.default_rng(0).standard_normal((WORDS, DIM)).astype(np.float32)
    units: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return units


def make(folder: str, count: int) -> Library:
    library = Library.create(folder, SETTINGS, fingerprint())
    library.sentences.add_space(MODEL.space, Likeness(0.0, 0.05))
    random, of_words = np.random.default_rng(1), topics()
    for number in range(count // LINES_A_VIDEO):
        words = random.integers(0, WORDS, (LINES_A_VIDEO, 10))
        lines = tuple((float(at), at + 1.0, " ".join(f"w{word}" for word in row)) for at, row in enumerate(words))
        video_id = f"{number:05d}"
        write(library, made(video_id, 1, number, lines=lines))
        vectors = of_words[words[:, 0]] + 0.05 * random.standard_normal((LINES_A_VIDEO, DIM)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        library.sentences.add({video_id: (library.sentences.lines(video_id), vectors)}, MODEL.space)
        library.additions.complete("sentences", MODEL.space.digest, {video_id: LINES_A_VIDEO}, {})
    refresh(library.tables)
    return library


def main(folder: str, count: str = "100000") -> None:
    library = Library.open(folder) if Library.exists(folder) else make(folder, int(count))
    random, of_words = np.random.default_rng(2), topics()
    ways: dict[str, list[float]] = {"words": [], "words and meaning": []}
    cpu = dict.fromkeys(ways, 0.0)
    for _ in range(ROUNDS):
        word, other = (int(each) for each in random.integers(0, WORDS, 2))
        meaning = Meaning(of_words[word], MODEL.space, 0.3)
        for name, used in (("words", None), ("words and meaning", meaning)):
            began, spent = time.perf_counter(), time.process_time()
            hits = library.search.words(f"w{word} w{other}", k=10, meaning=used)
            ways[name].append(1e3 * (time.perf_counter() - began))
            cpu[name] += 1e3 * (time.process_time() - spent) / ROUNDS
            assert hits
    for name, times in ways.items():
        p50, p95 = np.percentile(times, [50, 95])
        print(f"{name}: p50 {p50:.1f} ms, p95 {p95:.1f} ms, CPU {cpu[name]:.1f} ms a search")


if __name__ == "__main__":
    main(*sys.argv[1:])
