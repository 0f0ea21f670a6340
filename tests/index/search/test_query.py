"""Queries that cannot be run are refused, and too few hits are fetched again."""

from __future__ import annotations

import numpy as np
import pytest

from kinodex.index.library import Library
from kinodex.index.search.words import candidates
from tests.support.libraries.random_library import SETTINGS, fingerprint, found, made, numpy_search, unit_vectors, write
from tests.support.libraries.searched_library import make_searched


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Library:
    return make_searched(tmp_path_factory.mktemp("search") / "library")


def test_k_is_reached_however_many_hits_crowd(tmp_path):
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    crowd = np.tile(unit_vectors(1, seed=5), (400, 1))
    rest = unit_vectors(100, seed=6)
    video = made("aaaa", 500, seed=7)
    video.vectors[:] = np.concatenate([crowd, rest])
    write(library, video)
    query = crowd[0].astype(np.float32)
    hits = library.search.frames(query, k=8, min_gap_s=100.0)
    assert found(hits) == numpy_search([video], query, 8, 100.0)
    assert len(library.search.frames(query, k=499, min_gap_s=1.0)) == 499


def test_a_walk_through_a_smaller_graph_keeps_fewer_candidates():
    assert candidates(10, 1 << 20) == candidates(10, 10**9) == 600
    assert candidates(10, 1 << 18) == 300
    assert candidates(10, 0) == candidates(10, 1000) == 100
    assert candidates(100, 1 << 18) == 500  # never fewer than are compared again
    assert candidates(100, 1 << 20) == 1000
