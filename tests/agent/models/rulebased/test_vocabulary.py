"""The words of the built-in model are those of the sketch world."""

from __future__ import annotations

from itertools import product

from kinodex.agent.models import rules_words
from kinodex.sketch import scenes as world
from tests.sketch.vocabulary import DAY, NIGHT


def test_the_words_are_those_of_the_sketch_world():
    assert rules_words.THINGS == world.THING_NAMES
    assert rules_words.COLOURS == world.COLOUR_NAMES
    assert tuple(world.WHERE.values()) == rules_words.PLACES
    assert rules_words.TITLES == world.TITLE_WORDS
    assert world.NUMBERS[1:] == rules_words.NUMBERS
    assert (DAY[0], NIGHT[0]) == rules_words.HOURS
    for colour, thing in product(rules_words.COLOURS, rules_words.THINGS):
        assert rules_words.counted(1, colour, thing) == world.with_article(f"{colour} {thing}")
        assert rules_words.counted(3, colour, thing) == f"three {colour} {world.plural(thing)}"
