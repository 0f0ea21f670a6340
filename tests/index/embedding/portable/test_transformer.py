"""Arithmetic of the numpy transformer that numpy does not have; the whole is tested where towers are exported."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from kinodex.index.spaces.text_tower import TransformerSettings, activate, erf, text_features

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
