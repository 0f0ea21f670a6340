"""Text on screen as rows: of the newest model, by time, and none where no model read any."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kinodex.index.errors import UnknownVideo
from kinodex.index.library import Library
from kinodex.index.maintain import remove_added
from kinodex.index.rows import ScreenTextRow
from kinodex.index.store.indexes import refresh
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, write
from tests.support.screen_text.lines import CORNER, Line, add_screen_text


@pytest.fixture
def library(tmp_path) -> Library:
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    for number, video_id in enumerate(("aaaa", "bbbb")):
        write(library, made(video_id, 20, seed=number))
    return library


def test_a_library_without_the_table_has_no_text_on_screen(library):
    assert not library.tables.has("screen_text")
    assert library.screen_text.rows("aaaa") == []
    assert library.search.screen_text("anything") == []
    assert not library.tables.has("screen_text")


def test_rows_by_time_and_from_top_to_bottom(library):
    above, below = (0.1, 0.1, 0.5, 0.2), (0.1, 0.6, 0.5, 0.7)
    lines = [Line(8.0, 9.0, "later"), Line(2.0, 6.0, "second", box=below), Line(2.0, 5.0, "first", box=above)]
    add_screen_text(library, "aaaa", lines)
    assert [row.text for row in library.screen_text.rows("aaaa")] == ["first", "second", "later"]
    last = library.screen_text.rows("aaaa")[2]
    assert last.box == pytest.approx(CORNER)
    expected = ScreenTextRow("aaaa", 8.0, 9.0, "later", 0.875, CORNER, 1, None, "reader")
    assert replace(last, box=CORNER) == expected
    assert [row.text for row in library.screen_text.rows("aaaa", 5.0, 8.0)] == ["second"]
    assert library.screen_text.rows("bbbb") == []
    with pytest.raises(UnknownVideo):
        library.screen_text.rows("cccc")


def test_the_newest_model_is_shown_and_its_removal_shows_the_one_before(library):
    add_screen_text(library, "aaaa", [Line(0.0, 3.0, "MORNlNG")], "first")
    add_screen_text(library, "aaaa", [Line(0.0, 3.0, "MORNING")], "second")
    assert [row.text for row in library.screen_text.rows("aaaa")] == ["MORNING"]
    refresh(library.tables)
    assert [hit.text for hit in library.search.screen_text("MORNlNG")] == ["MORNING"]  # by a letter, not the old row
    remove_added(library, "text", "second", "aaaa")
    assert [row.text for row in library.screen_text.rows("aaaa")] == ["MORNlNG"]


def test_rows_that_are_not_complete_are_not_shown_and_are_deleted(library):
    library.additions.discard_leftovers("text", "reader")
    library.screen_text.add({"aaaa": [Line(0.0, 3.0, "MORNING")]}, "reader")
    assert library.screen_text.rows("aaaa") == library.search.screen_text("morning") == []
    assert library.additions.discard_leftovers("text", "reader") == 1
    assert library.tables.count("screen_text") == 0
