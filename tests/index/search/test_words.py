"""Search of all text, by words and by meaning: what is fused, and what is not found."""

from __future__ import annotations

import numpy as np
import pytest

from kinodex.index.errors import QueryError, UnknownVideo
from kinodex.index.library import Library
from kinodex.index.rows import Scope
from kinodex.index.search.words import lines_like
from tests.support.libraries.random_library import SETTINGS, caption, fingerprint, made, unit_vectors, write
from tests.support.libraries.sentence_lines import ConceptModel, add_sentences
from tests.support.screen_text.lines import Line, add_screen_text

MODEL = ConceptModel()
SAID = ((1.0, 2.0, "we drove the car home"), (5.0, 6.0, "it was raining"), (9.0, 10.0, "an automobile passed"))


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Library:
    library = Library.create(str(tmp_path_factory.mktemp("words") / "library"), SETTINGS, fingerprint())
    write(library, made("aaaa", 20, 1, lines=SAID))
    write(library, made("bbbb", 20, 2, lines=((3.0, 4.0, "the hound ran into the snow"),)))
    for model, text in (("old", "a ship"), ("new", "a puppy in a car")):
        library.additions.add_captions({"bbbb": [caption(0, text)]}, model)
        assert library.additions.complete("captions", model, {"bbbb": 1}, {}) == ()
        add_sentences(library, MODEL)
    add_screen_text(library, "aaaa", [Line(12.0, 14.0, "CAR WASH"), Line(15.0, 16.0, "OPEN")])
    add_sentences(library, MODEL)
    return library


def texts(hits) -> list[str | None]:
    return [hit.text for hit in hits]


def test_by_words_alone_all_three_kinds_of_text_come_in_one_order(library):
    hits = library.search.words("car")
    assert {(hit.source, hit.text) for hit in hits} == {
        ("transcript", "we drove the car home"),
        ("text", "CAR WASH"),
        ("caption", "a puppy in a car"),
    }
    assert [hit.score for hit in hits] == sorted((hit.bm25 for hit in hits), reverse=True)
    assert texts(library.search.words("the zebra and the lion")) == []  # "the" alone is no match


def test_a_line_without_a_common_word_is_found_by_meaning(library):
    assert texts(library.search.words("vessel blizzard")) == []
    hits = library.search.words("blizzard", meaning=MODEL.meaning("blizzard"))
    assert texts(hits) == ["the hound ran into the snow"]
    assert hits[0].source == "transcript" and hits[0].bm25 is None and hits[0].cosine > 0.5


def test_what_both_find_comes_first(library):
    hits = library.search.words("car", meaning=MODEL.meaning("car"))
    assert texts(hits)[-1] == "an automobile passed" and len(hits) == 4
    assert all(hit.bm25 and hit.cosine for hit in hits[:3]) and hits[3].bm25 is None
    assert len(library.search.words("car", k=1, meaning=MODEL.meaning("car"))) == 1
    in_video = library.search.words("car", Scope(("bbbb",)), meaning=MODEL.meaning("car"))
    assert texts(in_video) == ["a puppy in a car"]
    apart = library.search.words("car", Scope(("aaaa",)), min_gap_s=9.0, meaning=MODEL.meaning("car"))
    assert len(apart) == 2


def test_only_some_kinds_of_text(library):
    for meaning in (None, MODEL.meaning("car")):
        hits = library.search.words("car", meaning=meaning, sources=("text", "caption"))
        assert {hit.text for hit in hits} == {"CAR WASH", "a puppy in a car"}


def test_of_two_lines_of_equal_rank_the_one_of_like_meaning_comes_first(library):
    hits = library.search.words("raining puppies", meaning=MODEL.meaning("puppy"))
    assert hits[0].text == "the hound ran into the snow" and hits[0].bm25 is None  # of a later video
    assert hits[1].text == "it was raining" and hits[1].cosine is None
    assert hits[0].score == hits[1].score > hits[2].score


def test_lines_that_chance_has_as_near_are_not_found(library):
    nothing = MODEL.meaning("zebra")
    assert library.search.words("zebra", meaning=nothing) == []
    all_lines = lines_like(library.tables, library.visible, MODEL.meaning("zebra", -1.0), Scope(), 20)
    cosines = [hit.cosine for hit in all_lines if hit.cosine is not None]
    assert len(all_lines) == len(cosines) == 7 and max(cosines) < 0.5


def test_text_of_an_older_model_is_not_found(library):
    assert texts(library.search.words("vessel", meaning=MODEL.meaning("vessel"))) == []


def test_the_search_of_everything_takes_meaning_in(library):
    vector = unit_vectors(1, 9)[0].astype(np.float32)
    frames, said, captions, shown = library.search.by_each("hound", vector, meaning=MODEL.meaning("hound"), k=5)
    assert (texts(said), texts(captions)) == (["the hound ran into the snow"], ["a puppy in a car"])
    assert (len(frames), shown) == (5, [])
    assert texts(library.search.by_each("hound", vector, k=5)[2]) == []
    hits = library.search.hybrid("automobile", vector, k=40, meaning=MODEL.meaning("automobile"))
    assert {"we drove the car home", "CAR WASH", "a puppy in a car"} <= set(texts(hits))


def test_impossible_searches(library):
    with pytest.raises(QueryError, match="empty query"):
        library.search.words(" ", meaning=MODEL.meaning("car"))
    with pytest.raises(UnknownVideo):
        library.search.words("car", Scope(("nobody",)), meaning=MODEL.meaning("car"))
