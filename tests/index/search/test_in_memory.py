"""A search in memory finds what the library finds."""

from __future__ import annotations

import numpy as np
import pytest

from kinodex.index.errors import QueryError
from kinodex.index.library import Library
from kinodex.index.rows import FrameVectors, Scope
from kinodex.index.search.in_memory import InMemory, top_positions
from tests.support.libraries.random_library import DIM, unit_vectors
from tests.support.libraries.searched_library import make_searched

QUERIES = unit_vectors(5, seed=77).astype(np.float32)


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Library:
    return make_searched(tmp_path_factory.mktemp("search") / "library")


@pytest.mark.parametrize("min_gap_s", [0.0, 2.5])
def test_in_memory_as_in_the_library(library, min_gap_s):
    in_memory = library.in_memory("bbbb")
    for query in QUERIES:
        near = in_memory.search(3 * query, k=12, min_gap_s=min_gap_s)
        hits = library.search.frames(query, Scope(("bbbb",)), k=12, min_gap_s=min_gap_s)
        assert [(n.frame_no, n.time_s) for n in near] == [(hit.frame_no, hit.time_s) for hit in hits]
        np.testing.assert_allclose([n.cosine for n in near], [hit.score for hit in hits], atol=1e-5)
    assert len(in_memory.search(QUERIES[0], k=999)) == 200
    assert in_memory.search(QUERIES[0], k=1)[0].at == in_memory.search(QUERIES[0], k=999)[0].at
    with pytest.raises(QueryError, match="zeros"):
        in_memory.search(np.zeros(DIM, np.float32), k=1)


@pytest.mark.parametrize("dim", [37, 256, 1152])
def test_equal_frames_have_equal_cosines_and_the_earliest_is_found(dim):
    numbers = np.random.default_rng(5)
    frame = numbers.standard_normal(dim)
    vectors = np.tile(frame / np.linalg.norm(frame), (30, 1)).astype(np.float16)
    in_memory = InMemory.of(FrameVectors(np.arange(30, dtype=np.int32), np.arange(30.0), vectors))
    for query in numbers.standard_normal((20, dim)).astype(np.float32):
        assert len(set(in_memory.cosines(query).tolist())) == 1
        assert [near.at for near in in_memory.search(query, k=3, min_gap_s=1)] == [0, 1, 2]


def test_of_equal_scores_the_earliest_come_first() -> None:
    scores = np.tile(np.array([0.5, 0.25], np.float32), 20)
    scores[31] = 0.75
    expected = [31, *range(0, 40, 2), *(each for each in range(1, 40, 2) if each != 31)]
    for k in (1, 2, 3, 7, 50):
        for min_gap_s in (0.0, 1.0):
            assert top_positions(scores, np.arange(40.0), k, min_gap_s).tolist() == expected[:k], (k, min_gap_s)
