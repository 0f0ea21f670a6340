"""Words as vectors: what texts share, not what every text holds."""

from __future__ import annotations

import numpy as np
import pytest

from kinodex.pipeline.scenes import DIMENSIONS, word_vectors


def test_texts_of_one_topic_are_nearer_than_others():
    vectors = word_vectors(
        [
            "The boat leaves the harbour",
            "A boat in the harbour sails",
            "The cook cuts the onions",
            "A cook fries the onions",
        ]
    )
    cosines = vectors @ vectors.T
    assert vectors.shape == (4, DIMENSIONS)
    assert cosines[0, 1] > 0.2 > abs(cosines[0, 2])
    assert cosines[2, 3] > 0.2


def test_words_that_every_text_holds_weigh_nothing():
    vectors = word_vectors(["the the and", "and the", "the and"])
    assert not vectors.any()
    assert not word_vectors(["", "...", "to be"]).any()


def test_texts_without_spaces_are_read_by_letters():
    vectors = word_vectors(["船在港口", "港口的船", "厨师切洋葱"])
    assert vectors[0] @ vectors[1] > 0.2
    assert vectors[0] @ vectors[2] == 0.0


def test_unit_length_and_the_same_in_every_process():
    vector = word_vectors(["harbour", "onions"])[0]
    assert np.linalg.norm(vector) == pytest.approx(1.0)
    assert int(np.flatnonzero(vector)[0]) == 77
