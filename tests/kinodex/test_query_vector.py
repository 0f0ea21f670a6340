"""A query's vector: of a text, a picture or a vector; a tower is loaded only for what needs it."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from PIL import Image

from kinodex.cli.search import _read_image
from kinodex.index.spaces.space import load_space
from kinodex.jobs.errors import UsageError
from kinodex.library import query_vector
from kinodex.web.openai_chat import read_picture

ORIENTATION = 0x0112


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


def test_a_photograph_is_turned_as_its_camera_was_held(tmp_path):
    """By the command line, by the chat and here: the page does so too, and all are to find the same."""
    turned = Image.fromarray(np.random.default_rng(3).integers(0, 256, (32, 64, 3), np.uint8))
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    path = tmp_path / "photograph.png"
    turned.save(path, exif=exif)
    upright = np.asarray(turned.transpose(Image.Transpose.ROTATE_270))
    assert (_read_image(path) == upright).all()
    url = f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"
    assert (read_picture(url) == upright).all()
    space = load_space("builtin", device="cpu")
    with Image.open(path) as photograph:
        found = query_vector(photograph, no_tower, lambda: space)
    assert found.tolist() == query_vector(upright, no_tower, lambda: space).tolist()
