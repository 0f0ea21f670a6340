"""The likeness of texts that have nothing in common, and from where on a line is found."""

from __future__ import annotations

import numpy as np
import pytest

from kinodex.index.spaces.sentence_model import LINES, QUERIES, Likeness, measure_likeness
from tests.support.libraries.random_library import fingerprint


class Cone:
    """A model whose vectors lie in a cone: each has this cosine to its axis, and directions of chance around it."""

    def __init__(self, cosine: float) -> None:
        self.space = fingerprint("cone", dim=401)
        self._cosine = cosine

    def embed_texts(self, texts):
        around = np.random.default_rng(len(texts)).standard_normal((len(texts), 400))
        around *= np.sqrt(1 - self._cosine**2) / np.linalg.norm(around, axis=1, keepdims=True)
        return np.hstack([np.full((len(texts), 1), self._cosine), around]).astype(np.float32)

    embed_lines = embed_texts


@pytest.mark.parametrize("cosine", [0.0, 0.9])
def test_the_limit_follows_the_model(cosine):
    found = measure_likeness(Cone(cosine))
    assert found.mean == pytest.approx(cosine**2, abs=0.01)
    assert found.mean < found.least < found.mean + 0.25 * (1 - cosine**2) + 0.01
    assert Likeness(**found.as_json()) == found


def test_a_limit_is_never_above_the_greatest_cosine():
    assert Likeness(0.9, 0.2).least == 1.0


def test_queries_and_lines_share_no_telling_word():
    words = {text: {word for word in text.lower().split() if len(word) > 4} for text in (*QUERIES, *LINES)}
    assert not {(q, line) for q in QUERIES for line in LINES if words[q] & words[line]}
