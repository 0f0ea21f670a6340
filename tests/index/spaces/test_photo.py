"""The space `photo`, which kinodex brings: its towers, and what it finds in real films."""

from __future__ import annotations

import numpy as np
import pytest

from kinodex.index.errors import DeviceMissing
from kinodex.index.spaces.image_tower import ImageTower
from kinodex.index.spaces.load import load_image_tower, load_text_tower
from kinodex.index.spaces.text_tower import TextTower
from kinodex.index.spaces.towers import SHIPPED, check_content, read_towers

MOST_BYTES = 16_000_000


@pytest.fixture(scope="module")
def words() -> TextTower:
    return TextTower.open(SHIPPED["photo"])


def test_its_files_are_those_that_were_written_and_small() -> None:
    towers = read_towers(SHIPPED["photo"])
    assert towers is not None and towers.card is not None
    check_content(SHIPPED["photo"], towers.files, "photo")
    assert sum(file.stat().st_size for file in SHIPPED["photo"].iterdir()) <= MOST_BYTES


def test_a_text_is_the_mean_of_its_words_in_any_case_and_with_any_accent(words: TextTower) -> None:
    alike = words.embed_text(["A dog at a café", "a DOG, at a cafe!", "  dog's a at... a Café "])
    assert np.ptp(alike, axis=0).max() < 1e-6
    dog, puppy, car = words.embed_text(["a dog", "a puppy", "a car"])
    assert dog @ puppy > dog @ car
    assert np.allclose(np.linalg.norm(words.embed_text(["dog", "a " + "x" * 500, "a b " * 99]), axis=1), 1, atol=1e-5)


def test_texts_without_a_word_that_it_knows_have_no_direction(words: TextTower) -> None:
    assert not words.embed_text(["", "!?", "кот", "猫", "xqzjv", "asdfgh qwrtzp", "x" * 500]).any()
    known = words.embed_text(["кот cat", "xqzjv 7", "snowboarding", "giraffe", "tv"])  # pieces of words tell something
    assert np.linalg.norm(known, axis=1) == pytest.approx(1, abs=1e-5)


def test_a_picture_has_one_vector_in_batches_of_any_size() -> None:
    tower = ImageTower.open(SHIPPED["photo"])
    pictures = np.random.default_rng(3).integers(0, 256, (5, 90, 160, 3), dtype=np.uint8)
    batch = np.stack([tower.prepare(rgb) for rgb in pictures])
    assert batch.shape == (5, 3, 260, 260)
    together = tower.embed(batch)
    np.testing.assert_array_equal(together, np.concatenate([tower.embed(each[None]) for each in batch]))
    assert np.allclose(np.linalg.norm(together.astype(np.float32), axis=1), 1, atol=1e-3)


def test_it_is_computed_on_the_cpu_alone() -> None:
    assert load_text_tower("photo").name == load_image_tower("photo", "auto").name == "photo"
    with pytest.raises(DeviceMissing, match=r"got device 'cuda', and the space photo is computed on the CPU"):
        load_image_tower("photo", "cuda")
