"""Texts that are no UTF-8 are refused wherever a query comes in."""

from __future__ import annotations

import pytest

from kinodex.index.errors import QueryError, checked_text
from kinodex.index.search.words import check_words
from kinodex.index.spaces.sentence_model import ModelFacts
from kinodex.index.spaces.tokenizer import clean

HALVES = ["\ud800", "caf\udcc3\udca9"]
"""As JSON may hold it, and as an argument arrives where the locale is not UTF-8."""


@pytest.mark.parametrize("text", HALVES)
def test_a_text_that_is_not_utf8_is_refused_with_a_reason(text):
    facts = ModelFacts("mean", 64, "", "", "[PAD]")
    for read in (checked_text, check_words, facts.query, facts.line, lambda text: clean(text, "none"), clean_all):
        with pytest.raises(QueryError, match="is not UTF-8; type it where the locale is UTF-8"):
            read(text)


def clean_all(text: str) -> str:
    return clean(text, "lower")


def test_any_other_text_stays():
    assert checked_text("😀 مرحبا \x00") == "😀 مرحبا \x00"
