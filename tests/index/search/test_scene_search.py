"""Search of chapters by words: titles and summaries, of the newest model, with and without joined fragments."""

from __future__ import annotations

import pytest

from kinodex.index.errors import QueryError
from kinodex.index.library import Library
from kinodex.index.rows import Scope
from kinodex.index.search.search import EVERYWHERE
from kinodex.index.store.indexes import AFTER_RUN, forget_deleted, optimize, refresh
from tests.index.annotations.test_scenes import scene, summarised
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, write


@pytest.fixture
def library(tmp_path):
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    for number, video_id in enumerate(("aa", "bb")):
        write(library, made(video_id, 8, number))
    return library


@pytest.fixture
def described(library):
    chapters = [
        scene("aa", "chapter", 0, 0.0, 4.0, title="The harbour", text="A boat leaves."),
        scene("aa", "chapter", 1, 4.0, 8.0, title="Supper", text="Onions fry in a pan."),
        scene("aa", "scene", 0, 0.0, 4.0, title="The harbour", text="A boat."),
    ]
    summarised(library, "aa", chapters)
    summarised(library, "bb", [scene("bb", "chapter", 0, 0.0, 8.0, title="", text="A harbour at night.")])
    return library


def found(library, text, scope=EVERYWHERE, k=10):
    return [(hit.video_id, hit.time_s) for hit in library.search.chapters(text, scope, k)]


def test_titles_and_summaries_are_found(described):
    assert set(found(described, "harbour")) == {("aa", 0.0), ("bb", 0.0)}
    assert found(described, "onions") == [("aa", 4.0)]
    assert found(described, "supper pan") == [("aa", 4.0)]
    (hit,) = described.search.chapters("supper")
    assert (hit.text, hit.end_s, hit.source) == ("Supper\nOnions fry in a pan.", 8.0, "chapter")
    assert hit.score == hit.bm25 and hit.bm25 > 0


def test_scopes_and_numbers(described):
    assert found(described, "harbour", Scope(("bb",))) == [("bb", 0.0)]
    assert found(described, "boat supper", Scope(None, 5.0)) == [("aa", 4.0)]
    assert len(found(described, "harbour", k=1)) == 1
    with pytest.raises(QueryError):
        described.search.chapters(" ")


def test_a_library_without_chapters(library):
    assert found(library, "harbour") == []


def test_a_newer_model_takes_the_place_of_an_older_one(described):
    summarised(described, "aa", [scene("aa", "chapter", 0, 0.0, 8.0, "n", title="Lighthouse", text="A tower.")], "n")
    assert found(described, "onions") == []
    assert found(described, "lighthouse tower") == [("aa", 0.0)]


def test_both_columns_are_found_after_maintenance(described):
    for step in (refresh, lambda tables: optimize(tables, "scenes", AFTER_RUN), lambda t: forget_deleted(t, "scenes")):
        step(described.tables)
        reader = Library.open(described.uri)
        assert found(reader, "supper") == found(reader, "onions") == [("aa", 4.0)]
