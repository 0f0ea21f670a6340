"""Search of all text, by words and by meaning: what is fused, and what is not found."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest

from kinodex.index.errors import QueryError, UnknownVideo
from kinodex.index.kinds import LINE_KINDS
from kinodex.index.library import Library
from kinodex.index.rows import Scope
from kinodex.index.search.typos import forgiving_query
from kinodex.index.store.indexes import refresh
from tests.support.libraries.random_library import (
    SETTINGS,
    add_stage,
    caption,
    fingerprint,
    made,
    spoken,
    unit_vectors,
    voice,
    write,
)
from tests.support.libraries.sentence_lines import ConceptModel, add_sentences
from tests.support.screen_text.lines import Line, add_screen_text
from tests.support.scripts import SCRIPTS

MODEL = ConceptModel()
PASSED = "an automobile passed"
SAID = ((1.0, 2.0, "we drove the car home"), (5.0, 6.0, "it was raining"), (9.0, 10.0, PASSED))


@pytest.fixture(scope="module")
def worded(tmp_path_factory) -> Library:
    library = Library.create(str(tmp_path_factory.mktemp("words") / "library"), SETTINGS, fingerprint())
    write(library, made("aaaa", 20, 1, lines=SAID))
    write(library, made("bbbb", 20, 2, lines=((3.0, 4.0, "the hound ran into the snow"),)))
    for model, text in (("old", "a ship"), ("new", "a puppy in a car")):
        add_stage(library, "captions", model, {"bbbb": [caption(0, text)]})
        add_sentences(library, MODEL)
    add_screen_text(library, "aaaa", [Line(12.0, 14.0, "CAR WASH"), Line(15.0, 16.0, "OPEN")])
    add_sentences(library, MODEL)
    return library


def texts(hits) -> list[str | None]:
    return [hit.text for hit in hits]


@pytest.mark.slow
def test_by_words_alone_all_three_kinds_of_text_come_in_one_order(worded):
    hits = worded.search.words("car")
    assert {(hit.found_in, hit.text) for hit in hits} == {
        ("speech", "we drove the car home"),
        ("screen_text", "CAR WASH"),
        ("captions", "a puppy in a car"),
    }
    assert [hit.score for hit in hits] == sorted((hit.bm25 for hit in hits), reverse=True)
    assert worded.search.words("the zebra and the lion") == []  # "the" alone is no match
    for meaning in (None, MODEL.meaning("car")):
        some = worded.search.words("car", meaning=meaning, sources=("screen_text", "captions"))
        assert {hit.text for hit in some} == {"CAR WASH", "a puppy in a car"}


def test_lines_are_found_by_meaning_and_what_both_find_comes_first(worded):
    def search(text, *limits, **rest):
        return worded.search.words(text, *limits, meaning=MODEL.meaning(text), **rest)

    assert worded.search.words("vessel blizzard") == []
    (hit,) = search("blizzard")
    assert (hit.text, hit.found_in, hit.bm25) == ("the hound ran into the snow", "speech", None)
    assert hit.cosine > 0.5
    hits = search("car")
    assert texts(hits)[-1] == "an automobile passed" and len(hits) == 4
    assert all(hit.bm25 and hit.cosine for hit in hits[:3]) and hits[3].bm25 is None
    assert len(search("car", k=1)) == 1
    assert texts(search("car", Scope(("bbbb",)))) == ["a puppy in a car"]
    assert len(search("car", Scope(("aaaa",)), min_gap_s=9.0)) == 2
    assert search("vessel") == [], "of an older model"
    with pytest.raises(QueryError, match="empty query"):
        worded.search.words(" ", meaning=MODEL.meaning("car"))
    with pytest.raises(UnknownVideo):
        search("car", Scope(("nobody",)))


def test_the_search_of_everything_takes_meaning_in(worded):
    vector = unit_vectors(1, 9)[0].astype(np.float32)
    places = ("frames", "clips", *LINE_KINDS)
    found = dict(zip(places, worded.search.by_each("hound", vector, meaning=MODEL.meaning("hound"), k=5), strict=True))
    assert texts(found["speech"]) == ["the hound ran into the snow"]
    assert texts(found["captions"]) == ["a puppy in a car"]
    assert (len(found["frames"]), found["screen_text"]) == (5, [])
    by_words = dict(zip(places, worded.search.by_each("hound", vector, k=5), strict=True))
    assert by_words["captions"] == []
    hits = worded.search.hybrid("automobile", vector, k=40, meaning=MODEL.meaning("automobile"))
    assert {"we drove the car home", "CAR WASH", "a puppy in a car"} <= set(texts(hits))


# Text on screen searched by words, with letters wrong in the query or in what was read.

SIGNS = [
    Line(0.0, 3.0, "Copyright © 2013 Brandon Castellano"),
    Line(4.0, 6.0, "WELCOME TO THE HARBOUR"),
    Line(8.0, 9.0, "WELCOMF back"),
    Line(12.0, 15.0, "北京大学"),
    Line(21.0, 23.0, "EXIT"),
    Line(21.0, 23.0, "EXIT", box=(0.5, 0.1, 0.6, 0.2)),
    Line(25.0, 26.0, "In the refrigerator"),
    Line(28.0, 29.0, "The résumé"),
    Line(29.0, 30.0, "Exit through the gift shop, exit here"),
]


@pytest.fixture(scope="module")
def signs(tmp_path_factory) -> Library:
    library = Library.create(str(tmp_path_factory.mktemp("signs") / "library"), SETTINGS, fingerprint())
    said = ((4.0, 6.0, "the harbour is here"), (21.0, 22.0, "cafe\u0301 au lait"), (23.0, 24.0, "le café noir"))
    write(library, made("aaaa", 40, seed=1, lines=said))
    write(library, made("bbbb", 20, seed=2))
    add_screen_text(library, "aaaa", SIGNS)
    add_screen_text(library, "bbbb", [Line(1.0, 2.0, "Platform 13")])
    add_sentences(library, MODEL)
    refresh(library.tables)
    return library


@pytest.mark.slow
def test_lines_are_found_in_spite_of_typos(signs):
    for query, expected in {
        "harbour": ["WELCOME TO THE HARBOUR"],
        "Harbor": ["WELCOME TO THE HARBOUR"],  # one letter short
        "Castelano branden": ["Copyright © 2013 Brandon Castellano"],  # each word wrong by one
        "welcome": ["WELCOME TO THE HARBOUR", "WELCOMF back"],  # as read, then as misread
        '"welcome to"': ["WELCOME TO THE HARBOUR"],  # quoted words are meant as they are
        "harbour castle": ["WELCOME TO THE HARBOUR"],  # by one word; with typos all words are needed
        "2014": [],  # a digit makes another number
        "platform 14": ["Platform 13"],  # by the word
        "大学": ["北京大学"],
        "zebra": [],
        "...": [],
        "exit": ["EXIT", "Exit through the gift shop, exit here"],  # two signs that read the same
        "résumés": ["The résumé"],  # the accent is no typo
        **{"refridgerator " + "a" * letters: [] for letters in (100, 101, 300, 10_000)},
        "é" * 10_000: [],
    }.items():
        assert texts(signs.search.lines("screen_text", query)) == expected, query[:40]
    for short in ("to be", '"welcome"', ""):
        assert forgiving_query(short) is None
    (hit,) = signs.search.lines("screen_text", "copyright")
    assert (hit.video_id, hit.time_s, hit.end_s, hit.found_in, hit.frame_no) == ("aaaa", 0.0, 3.0, "screen_text", None)
    assert hit.score == hit.bm25 > 0


def test_a_word_finds_its_line_in_every_script(library):
    said = [line for script in SCRIPTS for line in script.lines]
    write(library, made("aaaa", 80, seed=3, lines=tuple((at + 1.0, at + 2.0, each) for at, each in enumerate(said))))
    add_screen_text(library, "aaaa", [Line(at + 1.0, at + 2.0, each) for at, each in enumerate(said)])
    refresh(library.tables)
    for script in SCRIPTS:
        for form in ("NFC", "NFD"):
            word = unicodedata.normalize(form, script.word)
            assert texts(library.search.lines("speech", word)) == [script.lines[0]], (script, form)
            assert texts(library.search.lines("screen_text", word)) == [script.lines[0]], (script, form)


# Lines found by their meaning alone say who speaks, as lines found by their words do.


@pytest.fixture
def spoken_films(library: Library) -> Library:
    """A subtitle and, at the same time and later, lines of two speech models, of which the newer tells voices apart."""
    write(library, made("aaaa", 20, 1, lines=((0.0, 2.0, PASSED),)))
    assert library.speakers.match([voice(0)], "tester", 0.8) == ["speaker-1"]
    for model, who in (("older", "Nobody"), ("newer", "speaker-1")):
        add_stage(library, "speech", model, {"aaaa": [spoken(n, PASSED, who, "de") for n in (3, 5)]})
    add_sentences(library, MODEL)
    return library


def who(hits) -> set[tuple[float, str | None, str | None]]:
    return {(hit.time_s, hit.speaker, hit.language) for hit in hits}


def test_a_line_found_by_meaning_alone_says_who_speaks_by_the_name_of_today(spoken_films):
    meaning = MODEL.meaning("car")
    found = spoken_films.search.words("car", meaning=meaning)
    assert {hit.bm25 for hit in found} == {None}
    assert who(found) == {(0.0, None, "en"), (6.0, "speaker 1", "de"), (10.0, "speaker 1", "de")}
    spoken_films.speakers.name(["speaker-1"], "Anna")
    named = {(0.0, None, "en"), (6.0, "Anna", "de"), (10.0, "Anna", "de")}
    assert who(spoken_films.search.words("car", meaning=meaning)) == named
    fused = spoken_films.search.hybrid("car", unit_vectors(1, 9)[0].astype(np.float32), meaning=meaning, k=40)
    assert {(hit.speaker, hit.language) for hit in fused if hit.text} == {(None, "en"), ("Anna", "de")}
    add_stage(spoken_films, "speech", "newest", {"aaaa": [spoken(0, PASSED, "speaker-1", "de")]})
    add_sentences(spoken_films, MODEL)
    assert who(spoken_films.search.words("car", meaning=meaning)) == {(0.0, "Anna", "de")}, "not the equal subtitle"
