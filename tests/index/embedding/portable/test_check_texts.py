"""The texts of the check are as many and as different as they should be."""

from __future__ import annotations

import unicodedata

from kinodex.index.spaces.export_text import CHECK_TEXTS

SCRIPTS = {"LATIN", "GREEK", "CYRILLIC", "ARABIC", "HEBREW", "DEVANAGARI", "THAI", "CJK", "HIRAGANA", "HANGUL"}


def test_there_are_200_different_texts_of_many_scripts():
    assert len(set(CHECK_TEXTS)) == len(CHECK_TEXTS) == 200
    kinds = {unicodedata.name(letter, "").split(" ")[0] for text in CHECK_TEXTS for letter in text}
    assert not {*SCRIPTS, "KATAKANA", "COMBINING"} - kinds
    categories = {unicodedata.category(letter) for text in CHECK_TEXTS for letter in text}
    assert not {"Cc", "Cf", "Co", "So", "Nd", "No", "Lu", "Zs"} - categories
    assert {"", " "} < set(CHECK_TEXTS)
    assert max(map(len, CHECK_TEXTS)) > 1000
