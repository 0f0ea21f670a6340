"""Languages, their scripts, and letters of them."""

from __future__ import annotations

import pytest

from kinodex.pipeline.errors import WrongModel
from kinodex.pipeline.models.screen_text import LANGUAGES, check_languages, keep_scripts, script_of, scripts_of

LATIN = "abcdefghijklmnopqrstuvwxyz"
RUSSIAN = "абвгдежзийклмнопрст"


def test_letters_know_their_script_and_signs_have_none():
    assert [script_of(each) for each in "aßдあア大ｱ한Ωก7 ."] == [
        *("LATIN", "LATIN", "CYRILLIC", "HIRAGANA", "KATAKANA", "CJK", "HALFWIDTH", "HANGUL", "GREEK", "THAI"),
        *("", "", ""),
    ]


def test_letters_of_other_scripts_are_left_out_and_signs_stay():
    assert keep_scripts("ab大c 12.5€", scripts_of(["en"])) == "abc 12.5€"
    assert keep_scripts("ab大c", scripts_of(["zh"])) == "ab大c"  # Latin letters are everywhere
    assert keep_scripts("ab大c", scripts_of([])) == "ab大c"


def test_a_language_whose_letters_a_model_lacks_is_refused_with_those_it_reads():
    check_languages(["en", "ru"], LATIN + RUSSIAN, "m")
    check_languages([], "", "m")
    with pytest.raises(
        WrongModel, match=r"got language 'ko', whose letters m does not read; it reads .*en.*ru.*--model"
    ):
        check_languages(["en", "ko"], LATIN + RUSSIAN + "한", "m")


def test_an_unknown_language_is_refused_with_those_that_are_known():
    with pytest.raises(WrongModel, match="got language 'english'; give codes of two letters, of af, ar"):
        check_languages(["english"], LATIN, "m")
    assert all(len(code) == 2 for code in LANGUAGES)
