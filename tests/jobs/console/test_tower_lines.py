"""The towers of a library as `kinodex info` lists them: carried, refused, unknown or damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinodex.index.library import Library
from kinodex.index.store.carried_towers import keep_towers
from kinodex.jobs.towers import tower_states
from tests.support.libraries.made_towers import made_towers
from tests.support.libraries.random_library import SETTINGS, fingerprint

SPACE = fingerprint()


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """A library of no videos, of the space of `made_towers`."""
    return Library.open_or_create(str(tmp_path / "library"), SETTINGS, SPACE)


def states(library: Library) -> list[tuple[str, str]]:
    found = tower_states(library)
    assert {(each["space"], each["digest"]) for each in found} == {(SPACE.name, SPACE.digest)}
    return [(each["tower"], each["state"]) for each in found]


def test_an_image_tower_is_listed_where_something_is_known_of_it(library, tmp_path):
    assert states(library) == [("text", "not carried")]
    keep_towers(library.uri, made_towers(tmp_path / "a", "text"))
    carried = "carried, 0.0 MB, least cosine 0.999950 of 3"
    assert states(library) == [("text", carried)]
    keep_towers(library.uri, made_towers(tmp_path / "b", image="too odd"))
    assert states(library) == [("text", carried), ("image", "not carried: too odd")]
    keep_towers(library.uri, made_towers(tmp_path / "c", "image"))
    assert states(library) == [("text", carried), ("image", carried)]


def test_damage_is_a_state_and_no_error(library, tmp_path):
    keep_towers(library.uri, made_towers(tmp_path / "a", "text", "image"))
    (tmp_path / "library" / "towers" / SPACE.digest / "image.bin").unlink()
    ((tower, state),) = states(library)
    assert tower == "text"
    assert "image.bin is missing" in state and "kinodex add text-tower" in state


def test_each_space_has_its_own(library, tmp_path):
    other = fingerprint(weights="b" * 64)
    library.additions.add_space(other)
    keep_towers(library.uri, made_towers(tmp_path / "a", "text"))
    by_digest = {each["digest"]: each["state"] for each in tower_states(library)}
    assert by_digest[other.digest] == "not carried"
    assert by_digest[SPACE.digest].startswith("carried, ")
