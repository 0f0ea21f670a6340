"""Parts and words are handed out once."""

from __future__ import annotations

from random import Random

from kinodex.sketch import story
from kinodex.sketch.scenes import COLOUR_NAMES, PLACE_NAMES, THING_NAMES, TITLE_WORDS
from kinodex.sketch.story import Pool


def test_things_and_words_are_handed_out_once() -> None:
    pool = Pool(Random(1))
    found = [pool.prop(("key", "hat")) for _ in range(2 * len(COLOUR_NAMES))]
    assert None not in found and len(set(found)) == len(found)
    assert pool.prop(("key", "hat")) is None
    words = [pool.word(("one", "two")) for _ in range(3)]
    assert sorted(words[:2], key=str) == ["one", "two"] and words[2] is None


def test_every_part_is_a_thing_of_the_world_that_plays_no_other() -> None:
    landmarks, passers = (
        {each for place in parts.values() for each in place} for parts in (story.LANDMARKS, story.PASSERS)
    )
    parts = [set(story.ACTORS), set(story.ITEMS), passers, landmarks]
    assert all(part <= set(THING_NAMES) for part in parts)
    assert sum(map(len, parts)) == len(set[str]().union(*parts))
    assert set(story.LANDMARKS) == set(story.PASSERS) == set(PLACE_NAMES)


def test_words_on_signs_are_on_no_title_card() -> None:
    assert not set(story.SIGN_WORDS) & set(TITLE_WORDS)
    assert not set(story.CODE_WORDS) & {word.lower() for word in TITLE_WORDS}
