"""Scenes and chapters: rows by level and time, of the newest model, shown once they are complete."""

from __future__ import annotations

import pytest

from kinodex.index.errors import UnknownVideo
from kinodex.index.library import Library
from kinodex.index.rows import SceneRow
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, spoken, write


def scene(video_id, level, number, start_s, end_s, model="m", title="A boat", text="A boat leaves the harbour."):
    return SceneRow(video_id, level, number, start_s, end_s, int(start_s), int(end_s - start_s), title, text, model)


def summarised(library, video_id, rows, model="m"):
    library.additions.discard_leftovers("summaries", model)
    library.scenes.add({video_id: rows})
    library.additions.complete("summaries", model, {video_id: len(rows)}, {})


@pytest.fixture
def library(tmp_path):
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    for number, video_id in enumerate(("aa", "bb")):
        write(library, made(video_id, 8, number))
    return library


def test_a_library_without_the_table_has_no_scenes(library):
    assert library.scenes.rows("aa") == []
    assert library.scenes.outdated("m") == []
    with pytest.raises(UnknownVideo):
        library.scenes.rows("zz")


def test_rows_by_time_a_chapter_before_its_scenes(library):
    rows = [
        scene("aa", "scene", 1, 2.0, 4.0),
        scene("aa", "chapter", 0, 0.0, 4.0),
        scene("aa", "scene", 0, 0.0, 2.0),
        scene("aa", "chapter", 1, 4.0, 8.0),
    ]
    summarised(library, "aa", rows)
    reader = Library.open(library.uri)
    assert [(row.level, row.number) for row in reader.scenes.rows("aa")] == [
        ("chapter", 0),
        ("scene", 0),
        ("scene", 1),
        ("chapter", 1),
    ]
    assert reader.scenes.rows("film aa", "chapter") == [rows[1], rows[3]]
    assert reader.scenes.rows("bb") == []


def test_rows_are_shown_once_they_are_complete_and_of_the_newest_model(library):
    library.additions.discard_leftovers("summaries", "m")
    library.scenes.add({"aa": [scene("aa", "chapter", 0, 0.0, 8.0)]})
    assert library.scenes.rows("aa") == []
    library.additions.complete("summaries", "m", {"aa": 1}, {})
    assert [row.model for row in library.scenes.rows("aa")] == ["m"]
    summarised(library, "aa", [scene("aa", "chapter", 0, 0.0, 8.0, "n", title="Newer")], "n")
    assert [row.title for row in library.scenes.rows("aa")] == ["Newer"]
    library.additions.discard("summaries", "n", "aa")
    assert [row.model for row in library.scenes.rows("aa")] == ["m"]


def test_videos_whose_words_are_newer_than_their_summaries(library):
    for video_id in ("aa", "bb"):
        summarised(library, video_id, [scene(video_id, "chapter", 0, 0.0, 8.0)])
    assert library.scenes.outdated("m") == []
    library.additions.add_speech({"bb": [spoken(0, "a boat")]}, "whisper")
    library.additions.complete("speech", "whisper", {"bb": 1}, {})
    assert library.scenes.outdated("m") == ["bb"]
    assert library.scenes.outdated("n") == []
