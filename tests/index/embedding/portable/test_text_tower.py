"""The text tower of a folder: its vectors, several threads, and damage."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from kinodex.index.errors import BadCheckpoint, TowersDamaged
from kinodex.index.spaces.text_tower import TEXT_BATCH, TextTower
from kinodex.index.spaces.towers import BUILTIN_TOWERS, TOWER_JSON


@pytest.fixture(scope="module")
def tower() -> TextTower:
    return TextTower.open(BUILTIN_TOWERS)


@pytest.fixture
def copied(tmp_path) -> Path:
    return Path(shutil.copytree(BUILTIN_TOWERS, tmp_path / "towers"))


def test_vectors_are_units_of_the_spaces_kind(tower):
    vectors = tower.embed_text(["a red boat", "", "snow"])
    assert (vectors.shape, vectors.dtype.name) == ((3, 256), "float32")
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert (tower.name, tower.dim) == ("builtin", 256)
    assert tower.embed_text([]).shape == (0, 256)


def test_a_text_has_one_vector_in_whatever_company(tower):
    texts = [f"{'dog ' * (number % 11)}{number}" for number in range(2 * TEXT_BATCH + 3)]
    together = tower.embed_text(texts)
    for number in (0, 10, 20, len(texts) - 1):
        np.testing.assert_allclose(tower.embed_text([texts[number]])[0], together[number], atol=1e-5)


def test_several_threads_embed_at_once(tower):
    texts = [["a red boat", "two dogs"], ["snow on a roof"]] * 8
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(tower.embed_text, texts))
    for vectors, asked in zip(found, texts, strict=True):
        np.testing.assert_array_equal(vectors, tower.embed_text(asked))


def test_a_folder_without_a_text_tower(tmp_path, copied):
    with pytest.raises(TowersDamaged, match="holds no text tower"):
        TextTower.open(tmp_path)
    facts = json.loads((copied / TOWER_JSON).read_text())
    (copied / TOWER_JSON).write_text(json.dumps(facts | {"text": None}))
    with pytest.raises(TowersDamaged, match="holds no text tower"):
        TextTower.open(copied)


@pytest.mark.parametrize("name", ["text.safetensors", "tokenizer.json", "vocabulary.safetensors"])
def test_damaged_files_are_refused(copied, name):
    content = (copied / name).read_bytes()
    (copied / name).write_bytes(content[:-3])
    with pytest.raises(TowersDamaged, match=name.replace(".", r"\.")):
        TextTower.open(copied)
    (copied / name).write_bytes(bytes(len(content)))
    with pytest.raises(BadCheckpoint, match="make the text tower again"):
        TextTower.open(copied)


def test_settings_of_a_later_kinodex_are_refused(copied):
    facts = json.loads((copied / TOWER_JSON).read_text())
    facts["text"]["settings"]["transformer"]["rotary"] = True
    (copied / TOWER_JSON).write_text(json.dumps(facts))
    with pytest.raises(TowersDamaged, match=r"the settings of the text tower .* are not known here: .*rotary"):
        TextTower.open(copied)
