"""Made-up sentences: lines that share words with a query are like it, and each video gets them once."""

from __future__ import annotations

import numpy as np
import pytest

from kinodex.bench.search import Size, make_library
from kinodex.index.rows import Scope
from kinodex.index.search.words import lines_like
from tests.bench.sentences import LEAST_COSINE, SPACE, add_sentences, meaning_of, sentence_times, text_vectors

SIZE = Size(videos=3, frames=4, lines=5, dim=16, jpeg_bytes=10)


def test_texts_are_alike_as_far_as_they_share_words():
    query, same, half, other = text_vectors(["ba be", "be ba", "ba bi", "do du"])
    assert np.linalg.norm(query) == pytest.approx(1.0, abs=1e-5)
    assert query @ same == pytest.approx(1.0, abs=1e-5)
    assert query @ half > LEAST_COSINE > abs(query @ other)


def test_lines_are_found_by_their_words_meaning_and_added_once(tmp_path):
    library, _ = make_library(str(tmp_path / "library"), SIZE, lambda done: None)
    add_sentences(library)
    (facts,) = [each for each in library.additions.facts() if each.stage == "sentences"]
    assert facts.rows == 2 * SIZE.videos * SIZE.lines
    add_sentences(library)
    assert [each.rows for each in library.additions.facts() if each.stage == "sentences"] == [facts.rows]
    line = library.transcript(library.videos()[0].video_id)[2]
    best = lines_like(library.tables, library.visible, meaning_of(line.text), Scope(), 1)[0]
    assert best.text == line.text and best.cosine == pytest.approx(1.0, abs=1e-2)
    assert library.sentences.space() == SPACE
    times = sentence_times(library, [line.text])
    assert len(times.cpu_ms) == 3 and times.ratio == pytest.approx(times.cpu_ms[2] / times.cpu_ms[0])
