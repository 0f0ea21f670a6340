"""Text on screen searched by words, with letters wrong in the query or in what was read."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest

from kinodex.index.library import Library
from kinodex.index.rows import Scope
from kinodex.index.search.words import forgiving_query
from kinodex.index.store.indexes import refresh
from tests.support.libraries.random_library import DIM, SETTINGS, fingerprint, made, write
from tests.support.libraries.sentence_lines import ConceptModel, add_sentences
from tests.support.screen_text.lines import Line, add_screen_text
from tests.support.scripts import SCRIPTS, Script

MODEL = ConceptModel()
LINES = [
    Line(0.0, 3.0, "Copyright © 2013 Brandon Castellano"),
    Line(4.0, 6.0, "WELCOME TO THE HARBOUR"),
    Line(8.0, 9.0, "WELCOMF back"),
    Line(12.0, 15.0, "北京大学"),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Library:
    library = Library.create(str(tmp_path_factory.mktemp("typos") / "library"), SETTINGS, fingerprint())
    write(library, made("aaaa", 20, seed=1, lines=((4.0, 6.0, "the harbour is here"),)))
    write(library, made("bbbb", 20, seed=2))
    add_screen_text(library, "aaaa", LINES)
    add_screen_text(library, "bbbb", [Line(1.0, 2.0, "Platform 13")])
    refresh(library.tables)
    return library


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("harbour", ["WELCOME TO THE HARBOUR"]),
        ("Harbor", ["WELCOME TO THE HARBOUR"]),  # one letter short
        ("Castelano branden", ["Copyright © 2013 Brandon Castellano"]),  # each word wrong by one
        ("welcome", ["WELCOME TO THE HARBOUR", "WELCOMF back"]),  # as read, then as misread
        ('"welcome to"', ["WELCOME TO THE HARBOUR"]),  # quoted words are meant as they are
        ("harbour castle", ["WELCOME TO THE HARBOUR"]),  # by one word; with typos all words are needed
        ("2014", []),  # a digit makes another number
        ("platform 14", ["Platform 13"]),  # by the word
        ("大学", ["北京大学"]),
        ("zebra", []),
        ("...", []),
    ],
)
def test_lines_are_found_in_spite_of_typos(library, query, expected):
    assert [hit.text for hit in library.search.screen_text(query)] == expected


def test_without_typos_only_whole_words_match(library):
    assert library.search.screen_text("harbor", typos=False) == []
    assert [hit.text for hit in library.search.screen_text("welcome", typos=False)] == ["WELCOME TO THE HARBOUR"]


def test_scope_number_and_gap_hold_for_lines_with_typos_too(library):
    search = library.search.screen_text
    assert [hit.text for hit in search("welcome", Scope(None, 7.0, 10.0))] == ["WELCOMF back"]
    assert search("welcome", Scope(("bbbb",))) == []
    assert len(search("welcome", k=1)) == 1
    assert [hit.time_s for hit in search("welcome", min_gap_s=5.0)] == [4.0]


def test_a_hit_is_the_line_with_its_times(library):
    (hit,) = library.search.screen_text("copyright")
    assert (hit.video_id, hit.time_s, hit.end_s, hit.source, hit.frame_no) == ("aaaa", 0.0, 3.0, "text", None)
    assert hit.score == hit.bm25 > 0


def test_what_is_shown_and_said_at_one_moment_is_one_hit_of_the_fused_search(library):
    vector = np.eye(1, DIM, dtype=np.float32)[0]
    _, lines, captions, shown = library.search.by_each("harbour", vector, k=5)
    assert [hit.text for hit in shown] == ["WELCOME TO THE HARBOUR"]
    assert [hit.text for hit in lines] == ["the harbour is here"]
    assert captions == []
    best = library.search.hybrid("harbour", vector, k=5)
    assert {"frame", "both"} >= {hit.source for hit in best}
    assert [hit.text for hit in best if hit.text] == ["the harbour is here"]


def test_words_that_are_too_short_or_quoted_make_no_forgiving_query():
    assert forgiving_query("to be") is None
    assert forgiving_query('"welcome"') is None
    assert forgiving_query("") is None


SIGNS = [
    Line(1.0, 3.0, "EXIT"),
    Line(1.0, 3.0, "EXIT", box=(0.5, 0.1, 0.6, 0.2)),
    Line(5.0, 6.0, "In the refrigerator"),
    Line(8.0, 9.0, "The résumé"),
    Line(9.0, 10.0, "Exit through the gift shop, exit here"),
]


@pytest.fixture(scope="module")
def signs(tmp_path_factory) -> Library:
    library = Library.create(str(tmp_path_factory.mktemp("signs") / "library"), SETTINGS, fingerprint())
    write(library, made("aaaa", 20, seed=1, lines=((1.0, 2.0, "cafe\u0301 au lait"), (3.0, 4.0, "le café noir"))))
    add_screen_text(library, "aaaa", SIGNS)
    add_sentences(library, MODEL)
    refresh(library.tables)
    return library


def said(hits) -> list[str | None]:
    return [hit.text for hit in hits]


@pytest.mark.parametrize("letters", [100, 101, 300, 10_000])
def test_a_word_of_any_length_is_looked_for(signs, letters):
    assert signs.search.screen_text("refridgerator " + "a" * letters) == []
    assert signs.search.screen_text("é" * letters) == []


def test_a_line_of_two_signs_that_read_the_same_is_found_once_and_ranks_once(signs):
    assert said(signs.search.screen_text("exit")) == ["EXIT", "Exit through the gift shop, exit here"]
    hits = signs.search.words("exit", meaning=MODEL.meaning("exit", -1.0))
    of_both = [hit for hit in hits if hit.bm25 and hit.cosine]
    assert sorted(map(str, said(of_both))) == ["EXIT", "Exit through the gift shop, exit here"]
    assert all(hit.score <= 2 / 61 for hit in hits)  # the first place of both searches, and no more


def test_a_line_with_typos_is_found_though_it_shares_small_words_as_well(signs):
    query = "in the refridgeratar"
    assert said(signs.search.words(query)) == ["In the refrigerator"]
    vector = np.ones(DIM, np.float32) / DIM**0.5
    assert said(signs.search.by_each(query, vector)[3]) == ["In the refrigerator"]
    assert signs.search.words("in the zebra at the oasis") == []


def test_accents_do_not_count_in_either_form(signs):
    for query in ("café", "cafe\u0301", "CAFÉ"):
        assert sorted(map(str, said(signs.search.transcript(query)))) == ["cafe\u0301 au lait", "le café noir"], query
    assert said(signs.search.transcript('"cafe\u0301 noir"')) == ["le café noir"]
    assert said(signs.search.words("looking at the résumé of documents")) == ["The résumé"]
    assert said(signs.search.words("looking at the resume of documents")) == ["The résumé"]
    assert said(signs.search.screen_text("résumés")) == ["The résumé"]  # the accent is no typo


def test_lines_of_the_last_run_are_found_with_typos(library):
    add_screen_text(library, "bbbb", [Line(3.0, 4.0, "Departures")], "other reader")
    assert [hit.text for hit in library.search.screen_text("departures")] == ["Departures"]
    assert library.search.screen_text("departurs") == []  # its index of words does not know the line yet
    refresh(library.tables)
    assert [hit.text for hit in library.search.screen_text("departurs")] == ["Departures"]
    library.additions.discard("text", "other reader", "bbbb")


@pytest.fixture(scope="module")
def of_the_world(tmp_path_factory) -> Library:
    """A library of lines in thirteen scripts, each with its index of words."""
    library = Library.create(str(tmp_path_factory.mktemp("world") / "library"), SETTINGS, fingerprint())
    said = [line for script in SCRIPTS for line in script.lines]
    write(library, made("aaaa", 80, seed=3, lines=tuple((at + 1.0, at + 2.0, each) for at, each in enumerate(said))))
    add_screen_text(library, "aaaa", [Line(at + 1.0, at + 2.0, each) for at, each in enumerate(said)])
    refresh(library.tables)
    return library


@pytest.mark.parametrize("script", SCRIPTS, ids=str)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_word_finds_its_line_in_every_script(of_the_world, script: Script, form):
    word = unicodedata.normalize(form, script.word)
    assert [hit.text for hit in of_the_world.search.transcript(word)] == [script.lines[0]]
    assert [hit.text for hit in of_the_world.search.screen_text(word)] == [script.lines[0]]
