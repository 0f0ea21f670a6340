"""Search of all text, by words and by meaning: what is fused, and what is not found."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest

from kinodex.index.errors import QueryError, UnknownVideo
from kinodex.index.library import Library
from kinodex.index.rows import Scope
from kinodex.index.search.words import forgiving_query, lines_like
from kinodex.index.store.indexes import refresh
from tests.support.libraries.random_library import (
    DIM,
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


def test_by_words_alone_all_three_kinds_of_text_come_in_one_order(worded):
    hits = worded.search.words("car")
    assert {(hit.source, hit.text) for hit in hits} == {
        ("transcript", "we drove the car home"),
        ("text", "CAR WASH"),
        ("caption", "a puppy in a car"),
    }
    assert [hit.score for hit in hits] == sorted((hit.bm25 for hit in hits), reverse=True)
    assert worded.search.words("the zebra and the lion") == []  # "the" alone is no match
    for meaning in (None, MODEL.meaning("car")):
        some = worded.search.words("car", meaning=meaning, sources=("text", "caption"))
        assert {hit.text for hit in some} == {"CAR WASH", "a puppy in a car"}


def test_lines_are_found_by_meaning_and_what_both_find_comes_first(worded):
    def search(text, *limits, **rest):
        return worded.search.words(text, *limits, meaning=MODEL.meaning(text), **rest)

    assert worded.search.words("vessel blizzard") == []
    (hit,) = search("blizzard")
    assert (hit.text, hit.source, hit.bm25) == ("the hound ran into the snow", "transcript", None)
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


def test_of_two_lines_of_equal_rank_the_one_of_like_meaning_comes_first(worded):
    hits = worded.search.words("raining puppies", meaning=MODEL.meaning("puppy"))
    assert hits[0].text == "the hound ran into the snow" and hits[0].bm25 is None  # of a later video
    assert hits[1].text == "it was raining" and hits[1].cosine is None
    assert hits[0].score == hits[1].score > hits[2].score


def test_lines_that_chance_has_as_near_are_not_found(worded):
    assert worded.search.words("zebra", meaning=MODEL.meaning("zebra")) == []
    all_lines = lines_like(worded.tables, worded.visible, MODEL.meaning("zebra", -1.0), Scope(), 20)
    cosines = [hit.cosine for hit in all_lines if hit.cosine is not None]
    assert len(all_lines) == len(cosines) == 7 and max(cosines) < 0.5


def test_the_search_of_everything_takes_meaning_in(worded):
    vector = unit_vectors(1, 9)[0].astype(np.float32)
    frames, said, captions, shown = worded.search.by_each("hound", vector, meaning=MODEL.meaning("hound"), k=5)
    assert (texts(said), texts(captions)) == (["the hound ran into the snow"], ["a puppy in a car"])
    assert (len(frames), shown) == (5, [])
    assert worded.search.by_each("hound", vector, k=5)[2] == []
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
        assert texts(signs.search.screen_text(query)) == expected, query[:40]
    for short in ("to be", '"welcome"', ""):
        assert forgiving_query(short) is None
    (hit,) = signs.search.screen_text("copyright")
    assert (hit.video_id, hit.time_s, hit.end_s, hit.source, hit.frame_no) == ("aaaa", 0.0, 3.0, "text", None)
    assert hit.score == hit.bm25 > 0


def test_scope_number_and_gap_hold_for_lines_with_typos_too(signs):
    search = signs.search.screen_text
    assert search("welcome", Scope(("bbbb",))) == []
    assert texts(search("welcome", Scope(None, 7.0, 10.0))) == ["WELCOMF back"]
    assert len(search("welcome", k=1)) == 1
    assert [hit.time_s for hit in search("welcome", min_gap_s=5.0)] == [4.0]


def test_what_is_shown_and_said_at_one_moment_is_one_hit_of_the_fused_search(signs):
    vector = np.eye(1, DIM, dtype=np.float32)[0]
    _, lines, captions, shown = signs.search.by_each("harbour", vector, k=5)
    assert (texts(shown), texts(lines), captions) == (["WELCOME TO THE HARBOUR"], ["the harbour is here"], [])
    best = signs.search.hybrid("harbour", vector, k=5)
    assert {"frame", "both"} >= {hit.source for hit in best}
    assert [hit.text for hit in best if hit.text] == ["the harbour is here"]


def test_a_line_of_two_signs_that_read_the_same_ranks_once(signs):
    hits = signs.search.words("exit", meaning=MODEL.meaning("exit", -1.0))
    of_both = [hit for hit in hits if hit.bm25 and hit.cosine]
    assert sorted(map(str, texts(of_both))) == ["EXIT", "Exit through the gift shop, exit here"]
    assert all(hit.score <= 2 / 61 for hit in hits)  # the first place of both searches, and no more


def test_a_line_with_typos_is_found_though_it_shares_small_words_as_well(signs):
    query = "in the refridgeratar"
    assert texts(signs.search.words(query)) == ["In the refrigerator"]
    vector = np.ones(DIM, np.float32) / DIM**0.5
    assert texts(signs.search.by_each(query, vector)[3]) == ["In the refrigerator"]
    assert signs.search.words("in the zebra at the oasis") == []


def test_accents_do_not_count_in_either_form(signs):
    for query in ("café", "cafe\u0301", "CAFÉ"):
        assert sorted(map(str, texts(signs.search.transcript(query)))) == ["cafe\u0301 au lait", "le café noir"], query
    assert texts(signs.search.transcript('"cafe\u0301 noir"')) == ["le café noir"]
    for query in ("looking at the résumé of documents", "looking at the resume of documents"):
        assert texts(signs.search.words(query)) == ["The résumé"], query


def test_lines_of_the_last_run_are_found_with_typos(signs):
    add_screen_text(signs, "bbbb", [Line(3.0, 4.0, "Departures")], "other reader")
    assert texts(signs.search.screen_text("departures")) == ["Departures"]
    assert signs.search.screen_text("departurs") == []  # its index of words does not know the line yet
    refresh(signs.tables)
    assert texts(signs.search.screen_text("departurs")) == ["Departures"]
    signs.additions.discard("text", "other reader", "bbbb")


def test_a_word_finds_its_line_in_every_script(library):
    said = [line for script in SCRIPTS for line in script.lines]
    write(library, made("aaaa", 80, seed=3, lines=tuple((at + 1.0, at + 2.0, each) for at, each in enumerate(said))))
    add_screen_text(library, "aaaa", [Line(at + 1.0, at + 2.0, each) for at, each in enumerate(said)])
    refresh(library.tables)
    for script in SCRIPTS:
        for form in ("NFC", "NFD"):
            word = unicodedata.normalize(form, script.word)
            assert texts(library.search.transcript(word)) == [script.lines[0]], (script, form)
            assert texts(library.search.screen_text(word)) == [script.lines[0]], (script, form)


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
