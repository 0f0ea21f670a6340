"""Words and characters of thirteen scripts: none is split at its marks, none is cut to nothing."""

from __future__ import annotations

import unicodedata
from typing import Literal

import pytest
import regex

from kinodex.index.search.fusion import plain_words
from kinodex.index.text import beginning, end, words
from tests.support.scripts import SCRIPTS, Script

UNSPACED = ("Thai", "Chinese", "Japanese")


@pytest.mark.parametrize("script", SCRIPTS, ids=str)
def test_words_are_those_between_spaces(script: Script) -> None:
    for line in script.lines:
        if script.name in UNSPACED:
            letters = [each for each in regex.findall(r"\X", line) if each[0].isalpha()]
            assert words(line) == ["".join(letters[at : at + 2]) for at in range(len(letters) - 1)]
        else:
            assert words(line) == regex.sub(r"\p{P}", " ", line).split()


@pytest.mark.parametrize("script", SCRIPTS, ids=str)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_word_is_shared_with_its_own_line_alone(script: Script, form: Literal["NFC", "NFD"]) -> None:
    first, *others = script.lines
    word = plain_words(unicodedata.normalize(form, script.word))
    if script.name != "Japanese":  # 象 is one character, and no pair
        assert word <= plain_words(first)
    assert not any(word & plain_words(line) for line in others)


@pytest.mark.parametrize("script", SCRIPTS, ids=str)
@pytest.mark.parametrize("most", [1, 7, 60, 200, 900])
def test_a_cut_text_keeps_what_fits(script: Script, most: int) -> None:
    text = (" " if script.name not in UNSPACED else "").join(script.lines * 9)
    head, tail = beginning(text, most), end(text, most)
    assert text.startswith(head) and text.endswith(tail)
    assert most - 40 <= len(head) <= most or len(text) <= most
    assert most - 40 <= len(tail) <= most or len(text) <= most
    characters = regex.findall(r"\X", text)
    for part in (head, tail):
        assert set(regex.findall(r"\X", part)) <= set(characters), "a character was cut apart"


def test_a_text_of_one_endless_word_with_a_space_far_off_is_not_cut_to_nothing() -> None:
    text = "题目 " + "大象在河边走" * 900
    assert len(beginning(text, 5000)) == 5000
    assert len(end(text + " 完", 5000)) == 5000
