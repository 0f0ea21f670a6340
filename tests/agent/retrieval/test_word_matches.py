"""Matches of words: rare ones stand out, common ones are nothing, and a long question is not found everywhere."""

from __future__ import annotations

import numpy as np
import pytest

from kinodex.agent.matches import NO_MATCH, calibrate, word_deviations, words_of
from tests.support.scripts import SCRIPTS, Script

PLACES = 16
TALK = [f"we went on to the next house and the {n}th door" for n in range(300)]


def similarities(query: str, lines: list[str]) -> np.ndarray:
    return calibrate(word_deviations(query, lines, lines, PLACES))


def test_a_line_with_rare_words_of_a_query_stands_out() -> None:
    lines = [*TALK, "a captain hides the silver compass"]
    found = similarities("the captain hides a compass", lines)
    assert int(found.argmax()) == 300
    assert found[300] > 0.45
    assert found[:300].max() == 0.0


def test_a_lone_common_word_is_nothing_and_a_lone_rare_one_little() -> None:
    lines = [*TALK, "look, a zeppelin"]
    assert similarities("the house of the rising sun", lines).max() == 0.0
    rare = similarities("zeppelin", lines)
    assert 0.25 < rare[300] < 0.35
    assert (rare[:300] == 0).all()


def test_a_line_that_many_lines_repeat_is_worth_less_than_one_of_a_kind() -> None:
    refrain = "we come back to this place in the morning"
    once, often = [*TALK, refrain], [*TALK, *[refrain] * 60]
    query = "come back in the morning"
    assert similarities(query, often).max() < similarities(query, once).max() - 0.1


def test_more_words_of_the_query_are_worth_more() -> None:
    lines = [*TALK, "a captain hides the silver compass", "a captain sleeps"]
    found = similarities("the captain hides a compass", lines)
    assert found[300] > found[301] > 0


def test_one_word_of_a_long_question_is_not_worth_what_it_is_alone() -> None:
    things = ["kite", "boat", "tree", "fish", "dog", "clock", "bird", "hat", "drum", "lamp"]
    lines = [*TALK, *[f"here comes a {thing}" for thing in things]]
    alone = similarities("a kite", lines)
    question = similarities(" ".join(things), lines)
    assert question[300] < alone[300]


def test_the_lines_of_other_videos_say_which_words_are_common() -> None:
    here = ["mind the captain", "a kite", "a boat"]
    elsewhere = ["the captain speaks"] * 200
    assert (
        word_deviations("captain", here, here, PLACES)[0]
        > word_deviations("captain", here, [*here, *elsewhere], PLACES)[0]
    )


def test_no_lines_and_no_words_match_nothing() -> None:
    assert len(word_deviations("kite", [], [], PLACES)) == 0
    assert np.isneginf(word_deviations("?!", TALK, TALK, PLACES)).all()


def test_words_are_in_lower_case_and_scripts_without_spaces_have_pairs() -> None:
    assert words_of("Snake_case, 42nd STREET") == {"snake", "case", "42nd", "street"}
    assert words_of("红色风筝 kite") == {"红色", "色风", "风筝", "kite"}
    assert words_of("风") == {"风"}


@pytest.mark.parametrize("script", [each for each in SCRIPTS if each.name != "Japanese"], ids=str)
def test_a_word_matches_its_own_line_in_every_script(script: Script) -> None:
    lines = [*script.lines, *(f"{line} {line}" for line in script.lines[1:] * 3)]
    found = word_deviations(script.word, lines, lines, PLACES)
    assert [at for at, each in enumerate(found) if each > NO_MATCH] == [0]
