"""Terms: a line and a query meet, however either is written."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

from kinodex import open as open_library
from kinodex.index.terms import fold, line_terms, query_terms
from tests.support.command import Kinodex
from tests.world.drawn_space import DRAWN

FOUND = {
    "The dog's ball isn't here, they're O'Brien's": ["dog", "ball", "dog’s", "isn’t", "isnt", "Brien", "O’Brien"],
    "L’eau de l’étang est froide aujourd’hui": ["eau", "l'eau", "étang", "ETANG", "aujourd'hui"],
    "La luce dell'acqua e l'amore": ["acqua", "amore"],
    "file_name and snake_case": ["file", "snake", "snake_case"],
    "at example.org, v1.2, 1,000 years, 12:30 o'clock": ["example", "v1.2", "1000", "1,000", "12:30", "clock"],
    "Don’t e-mail C++ code, $100 – naïve café": ["don't", "email", "e-mail", "C++", "$100", "naive", "cafe"],
    "İstanbul'da IŞIK söndü": ["istanbul", "İstanbul", "ışık", "IŞIK", "sondu"],
    "Η ΟΔΟΣ ΕΙΝΑΙ ΚΛΕΙΣΤΗ": ["οδός", "οδος", "κλειστή"],
    "Ёлка стоит у окна": ["ёлка", "елка", "Ёлка"],
    "קרא שָׁלוֹם לְכֻלָּם": ["שלום", "לכולם"],
    "قرأتُ كِتَابًا عن أحمد في المدرسة": ["كتابا", "أحمد", "احمد", "المدرسه"],
    "우리는 어제 도서관에서 책을 읽었다": ["도서관", "도서관에서", "책"],
    "ＮＨＫの番組とｶﾒﾗ": ["NHK", "カメラ", "番組"],
    "我们明天去图书馆看书": ["图书馆", "看书", "书"],
    "ผมชอบกินข้าวผัดกับเพื่อน": ["ข้าวผัด", "เพื่อน"],
    "वह किताबें पढ़ रही है": ["किताबें", "पढ़"],
    "Die Straße, Łódź, Phở, ﬁnal": ["strasse", "STRASSE", "lodz", "pho", "final"],
    "party time 🎉🎉 👍🏽 🇫🇷": ["🎉", "👍", "🇫🇷"],
}
"""Lines, and queries of which each has to find its line."""


def test_a_line_has_every_term_of_what_finds_it() -> None:
    for line, queries in FOUND.items():
        for query in (*queries, line):
            for form in ("NFC", "NFD"):
                terms = query_terms(unicodedata.normalize(form, query))
                assert terms and set(terms) <= set(line_terms(line)), (line, query, form)


def test_terms_keep_apart_what_differs() -> None:
    assert line_terms("The dog's ball isn't in snake_case") == ["the", "dog", "ball", "isnt", "in", "snake", "case"]
    assert line_terms("図書館 3.5") == ["図", "図書", "書", "書館", "館", "3.5"]
    assert query_terms("図書館 3.5") == ["図書", "書館", "3.5"]
    assert fold("L’École ＮＨＫ Ёлка") == "l'ecole nhk елка"
    assert "5" not in line_terms("3.5"), "a part of a number is another number"
    assert "किताब" not in line_terms("किताबें"), "a vowel of Devanagari is no mark"
    assert line_terms("... ! \u200b \ufe0f") == query_terms('"') == []


@pytest.fixture
def spoken(kinodex: Kinodex, tmp_path: Path) -> Path:
    """A library of a line in each script, imported as subtitles."""
    subtitles = tmp_path / "subtitles"
    subtitles.mkdir()
    for number, line in enumerate(FOUND):
        text = f"1\n00:00:01,000 --> 00:00:03,000\n{line}\n\n2\n00:00:05,000 --> 00:00:06,000\nthe end\n"
        (subtitles / f"{number}.srt").write_text(text, encoding="utf-8")
    imported = kinodex("import", "speech", subtitles, tmp_path / "library", "--space", DRAWN)
    assert imported.code == 0, imported.err
    return tmp_path / "library"


def test_each_query_finds_its_line_in_speech_and_among_all_words(spoken: Path) -> None:
    library = open_library(str(spoken))
    for line, queries in FOUND.items():
        for query in queries:
            for where in ("speech", "words"):
                texts = [hit.text for hit in library.search(query, k=5, in_=where)]
                assert line in texts, (query, where, texts)


def test_quoted_words_follow_each_other_whatever_stands_beside_them(spoken: Path) -> None:
    library = open_library(str(spoken))

    def lines(query: str) -> list[str | None]:
        return [hit.text for hit in library.search(query, in_="speech")]

    boat, case, china = (list(FOUND)[at] for at in (0, 3, 13))
    assert lines('"DOG’S ball"') == [boat] and lines('"ball dog"') == []
    assert lines('ball "snake case"') == [case], "all that is quoted has to be there"
    assert lines('"图书馆看书"') == [china] and lines('"看图书馆"') == []
    assert boat in lines('a 5" ball'), "one quotation mark alone is none"
