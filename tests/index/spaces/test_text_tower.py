"""The text tower of a folder: its vectors, several threads, and damage."""

from __future__ import annotations

import json
import math
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from kinodex.index.errors import BadCheckpoint, TowersDamaged
from kinodex.index.spaces.text_tower import TEXT_BATCH, TextTower, TransformerSettings, activate, erf, text_features
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


def test_a_text_has_one_vector_in_whatever_company_and_thread(tower):
    texts = [f"{'dog ' * (number % 11)}{number}" for number in range(2 * TEXT_BATCH + 3)]
    together = tower.embed_text(texts)
    for number in (0, 10, 20, len(texts) - 1):
        np.testing.assert_allclose(tower.embed_text([texts[number]])[0], together[number], atol=1e-5)
    several = [["a red boat", "two dogs"], ["snow on a roof"]] * 8
    with ThreadPoolExecutor(8) as pool:
        for vectors, asked in zip(pool.map(tower.embed_text, several), several, strict=True):
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


# Arithmetic of the numpy transformer that numpy does not have; the whole is tested where towers are exported.

ORIGINALS: dict[str, Any] = {
    "gelu": torch.nn.GELU(),
    "gelu_tanh": torch.nn.GELU("tanh"),
    "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
}


def test_the_error_function_is_right_and_gelu_by_it_to_1e7():
    numbers = np.concatenate([np.linspace(-7, 7, 40_001), [0.0, -0.0, 1e-30, 80.0, -1e30]]).astype(np.float32)
    expected = np.array([math.erf(number) for number in numbers])
    with np.errstate(over="ignore"):
        wrong = np.abs(erf(numbers) - expected)
    assert wrong.max() < 4e-7
    assert (wrong * np.abs(numbers) / 2).max() < 1e-7


@pytest.mark.parametrize("name", ORIGINALS)
def test_activations_are_those_of_torch(name):
    numbers = np.concatenate([np.linspace(-12, 12, 10_001), [-1e4, 1e4]]).astype(np.float32)
    expected = ORIGINALS[name](torch.from_numpy(numbers)).numpy()
    with np.errstate(all="raise", under="ignore"):
        np.testing.assert_allclose(activate(name, numbers), expected, atol=2e-6)


class CountingReader:
    """Reader of weights in memory for one block of width 4, which counts the rows of states that it is asked for."""

    def __init__(self) -> None:
        numbers = np.random.default_rng(1)
        shapes = {"attention.in": (12, 4), "attention.out": (4, 4), "mlp.in": (8, 4), "mlp.out": (4, 8)}
        self.arrays = {f"blocks.0.{name}.weight": numbers.standard_normal(shape) for name, shape in shapes.items()}
        self.arrays |= {f"{name}.weight": np.ones(4) for name in ("blocks.0.norm_1", "blocks.0.norm_2", "final_norm")}
        self.arrays |= {
            "token_embedding": numbers.standard_normal((9, 4)),
            "positions": numbers.standard_normal((6, 4)),
        }
        self.positions: list[int] = []

    def has(self, name: str) -> bool:
        return name in self.arrays

    def shape(self, name: str) -> tuple[int, ...]:
        return self.arrays[name].shape

    def whole(self, name: str) -> np.ndarray:
        return self.arrays[name].astype(np.float32)

    def rows(self, name: str, numbers: np.ndarray) -> np.ndarray:
        if name == "positions":
            self.positions = numbers.tolist()
        found: np.ndarray = self.arrays[name].astype(np.float32)[numbers]
        return found

    def parts(self, name: str):
        yield 0, self.whole(name)


@pytest.mark.parametrize(
    ("changes", "read"),
    [
        ({"causal": True, "pool": "argmax"}, [0, 1, 2]),
        ({"causal": True, "pool": "eos", "eos_id": 5}, [0, 1]),
        ({"causal": True, "pool": "last"}, [0, 1, 2, 3, 4, 5]),
        ({"causal": False, "pool": "last"}, [0, 1, 2, 3, 4, 5]),
        ({"causal": False, "pool": "last", "hides_padding": True}, [0, 1, 2, 5]),
        ({"causal": True, "pool": "first"}, [0]),
    ],
)
def test_positions_without_influence_are_left_out(changes, read):
    facts = {"layers": 1, "heads": 2, "norm_eps": 1e-5, "activation": "gelu"} | changes
    ids = np.array([[3, 5, 8, 0, 0, 0]])
    reader: Any = CountingReader()
    features = text_features(reader, TransformerSettings(**facts), ids)
    assert reader.positions == read
    both = text_features(reader, TransformerSettings(**facts), np.array([[3, 5, 8, 0, 0, 0], [1, 2, 3, 4, 6, 8]]))
    if facts["pool"] != "eos":  # of the second text, which has none, the first position counts
        np.testing.assert_allclose(both[0], features[0], rtol=1e-4)
    assert both.shape == (2, 4)
