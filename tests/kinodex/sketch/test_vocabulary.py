"""Plurals and articles of the vocabulary."""

from __future__ import annotations

from kinodex.sketch.scenes import COLOUR_NAMES, PLACE_NAMES, THING_NAMES
from tests.sketch.vocabulary import COLOURS, PLACES, plural, with_article


def test_plurals_and_articles() -> None:
    assert [plural(noun) for noun in ("bus", "fish", "boat", "kitty")] == ["buses", "fish", "boats", "kitties"]
    assert with_article("apple") == "an apple"
    assert with_article("red boat") == "a red boat"
    assert with_article("red scissors") == "red scissors"


def test_names_are_unique_and_have_other_words() -> None:
    for names in (THING_NAMES, COLOUR_NAMES, PLACE_NAMES):
        assert len(set(names)) == len(names)
    assert set(COLOURS) == set(COLOUR_NAMES)
    assert all(PLACES[place] for place in PLACE_NAMES)
