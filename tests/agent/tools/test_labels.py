"""Words for things, matched with the labels that a detector knows; by vectors in a real space, where there is one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kinodex.agent.environment import Environment
from kinodex.agent.tools.detection import Match, match_label
from tests.support.libraries.agent_library import environment_of, film, make_library

KNOWN = ("person", "car", "bus", "boat", "red boat", "dog", "knife")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return environment_of(make_library(tmp_path_factory.mktemp("labels"), {"film": film(1, 5)}))


@pytest.mark.parametrize(
    ("asked", "label"),
    [("Cars", "car"), ("the bus", "bus"), ("buses", "bus"), ("Red  boats", "red boat"), ("knives", "knife")],
)
def test_singular_and_plural_are_one(environment: Environment, asked: str, label: str) -> None:
    assert match_label(environment, asked, KNOWN) == Match(label, loose=False)


@pytest.mark.parametrize(
    ("asked", "label"),
    [("a big black dog", "dog"), ("man", "person"), ("two women", "person"), ("small red boat", "red boat")],
)
def test_kinds_of_a_thing_are_it_loosely(environment: Environment, asked: str, label: str) -> None:
    assert match_label(environment, asked, KNOWN) == Match(label, loose=True)


@pytest.mark.parametrize("asked", ["kite", "red kite", "glass", "   ", "doghouse"])
def test_other_things_are_none_of_the_labels(environment: Environment, asked: str) -> None:
    assert match_label(environment, asked, KNOWN) is None
    assert match_label(environment, asked, ()) is None


def test_likeness_of_words_makes_synonyms(tmp_path: Path) -> None:
    def embed(texts: list[str]) -> np.ndarray:
        """Two synonyms close to each other, all else by chance."""
        vectors = np.stack([np.random.default_rng(sum(map(ord, text))).normal(size=256) for text in texts])
        for at, text in enumerate(texts):
            if text in ("automobile", "car"):
                vectors[at] = np.random.default_rng(1).normal(size=256) + 0.4 * vectors[at]
        units: np.ndarray = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        return units

    library = make_library(tmp_path, {"film": film(1, 5)})
    environment = Environment.of(library, library.videos(), embed)
    assert match_label(environment, "automobiles", KNOWN) == Match("car", loose=True)
    assert match_label(environment, "house", KNOWN) is None
