"""Scenes and chapters of a video in a library, and what is known of each."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kinodex.agent.protocol import Note
from kinodex.index.library import Library
from kinodex.jobs.add.summaries import Film, FilmPart, _of_scene, read_film, thinned
from tests.support.scenes.chaptered_film import PLACES, make_film


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Library:
    return make_film(tmp_path_factory.mktemp("film") / "library", "aa")


@pytest.fixture(scope="module")
def film(library) -> Film:
    return read_film(library, library.video("film aa"))


def test_scenes_are_the_places_and_cover_the_film(film):
    assert [(scene.start_s, scene.end_s) for scene in film.scenes] == [(60.0 * n, 60.0 * (n + 1)) for n in range(4)]
    assert [(scene.first_segment, scene.segments) for scene in film.scenes] == [(12 * n, 12) for n in range(4)]
    assert [scene.number for scene in film.scenes] == [0, 1, 2, 3]


def test_chapters_are_scenes_in_order(film):
    assert [number for chapter in film.chapters for number in chapter.children] == [0, 1, 2, 3]
    assert film.chapters[0].start_s == 0.0 and film.chapters[-1].end_s == 240.0
    assert all(before.end_s == after.start_s for before, after in pairwise(film.chapters))
    assert film.parts == 4 + len(film.chapters)


def test_notes_are_captions_and_what_is_said_each_once(film):
    for place, notes in zip(PLACES, film.notes, strict=True):
        assert sum(note.source == "caption" for note in notes) == 12
        said = [note.text for note in notes if note.source == "transcript"]
        assert said == [f"We are at the {place} now."]


def test_a_video_without_segments_or_words(tmp_path):
    library = make_film(tmp_path / "library", "bb", described=False)
    film = read_film(library, library.video("film bb"))
    assert len(film.scenes) == 4 and not any(film.notes)


def test_too_many_notes_are_thinned_evenly():
    notes = [Note("v", float(n), n + 1.0, "caption", "x" * 100) for n in range(100)]
    kept = thinned(notes, 1000)
    assert [note.start_s for note in kept] == [5.0 + 10 * n for n in range(10)]
    assert thinned(notes, 1) == (notes[50],)
    assert thinned(notes[:3], 1000) == tuple(notes[:3])


def test_a_line_that_is_said_again_stays_where_it_was_said_first():
    notes = [
        Note("aa", float(at), at + 1.0, "transcript", said) for at, said in enumerate(["one", "two", "one", "three"])
    ]
    scene = FilmPart("scene", 0, 0.0, 4.0, 0, 4, range(0))
    assert [each.text for each in _of_scene(scene, [[each] for each in notes])] == ["one", "two", "three"]
