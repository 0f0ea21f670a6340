"""The words of the built-in model are those of the sketch world."""

from __future__ import annotations

from itertools import product

from agent.models.rulebased import vocabulary
from jobs.synthetic.world import vocabulary as world


def test_the_words_are_those_of_the_sketch_world():
    assert vocabulary.THINGS == world.THING_NAMES
    assert vocabulary.COLOURS == world.COLOUR_NAMES
    assert tuple(wordings[0] for wordings in world.PLACES.values()) == vocabulary.PLACES
    assert vocabulary.TITLES == world.TITLE_WORDS
    assert world.NUMBERS[1:] == vocabulary.NUMBERS
    assert (world.DAY[0], world.NIGHT[0]) == vocabulary.HOURS
    for colour, thing in product(vocabulary.COLOURS, vocabulary.THINGS):
        assert vocabulary.counted(1, colour, thing) == world.with_article(f"{colour} {thing}")
        assert vocabulary.counted(3, colour, thing) == f"three {colour} {world.plural(thing)}"
