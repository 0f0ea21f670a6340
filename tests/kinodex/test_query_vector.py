"""A query's vector: of a text, a picture or a vector; a tower is loaded only for what needs it."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from index.embedding.space import load_space
from jobs.errors import UsageError
from kinodex.query_vector import query_vector


def no_tower():
    raise AssertionError("nothing here needs a tower")


def test_a_vector_is_normalised_without_a_tower():
    found = query_vector(np.array([3.0, 4.0]), no_tower, no_tower)
    assert found.tolist() == pytest.approx([0.6, 0.8])


@pytest.mark.parametrize(
    ("query", "says"),
    [
        (np.zeros(4), "length 0"),
        (np.array([1.0, np.inf]), "infinity"),
        (np.zeros((4, 4), np.uint8), "uint8"),
        (np.zeros((4, 4, 3)), "float64"),
    ],
)
def test_what_is_no_query_is_refused(query, says):
    with pytest.raises(UsageError, match=says):
        query_vector(query, no_tower, no_tower)


def test_a_text_and_a_picture_are_unit_vectors_of_one_space():
    space = load_space("builtin", device="cpu")
    text = query_vector("a red boat", lambda: space, no_tower)
    picture = Image.new("RGB", (64, 36), (200, 30, 30))
    seen = query_vector(picture, no_tower, lambda: space)
    assert text.shape == seen.shape
    assert np.linalg.norm(text) == pytest.approx(1.0, abs=1e-4)
    np.testing.assert_allclose(seen, query_vector(np.asarray(picture), no_tower, lambda: space), atol=1e-5)
