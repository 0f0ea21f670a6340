"""Scenes and chapters: by pictures, by words, by silence; a bounded number of them, for films of any length."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from kinodex.pipeline.scenes import FilmStructure, chapter_limits, find_structure, scene_limits


def spans(count, seconds):
    return [(n * seconds, (n + 1) * seconds) for n in range(count)]


def film(scenes, shots, chapters=1, seed=0):
    """Unit vectors of shots: two sides of each scene in turn, scenes of a chapter alike."""
    chance = np.random.default_rng(seed)
    vectors = []
    for number in range(scenes):
        if number % (scenes // chapters) == 0:
            place = chance.normal(size=64)
        sides = [0.6 * place + chance.normal(size=64) for _ in range(2)]
        vectors += [sides[shot % 2] + 0.4 * chance.normal(size=64) for shot in range(shots)]
    return np.array([each / np.linalg.norm(each) for each in vectors])


def test_a_film_of_two_hours():
    found = find_structure(spans(2000, 3.6), film(80, 25, chapters=16))
    assert found.scenes == tuple(range(0, 2000, 25))
    assert found.chapters == tuple(range(0, 80, 5))


def test_a_minute_is_one_chapter_and_nothing_is_nothing():
    assert find_structure(spans(12, 5.0), film(1, 12)) == FilmStructure((0,), (0,))
    assert len(find_structure(spans(12, 5.0), film(4, 3)).chapters) == 1
    assert find_structure([]) == FilmStructure()
    assert find_structure([(0.0, 0.0)]) == FilmStructure((0,), (0,))


def test_words_alone_divide_a_talk_at_its_topics():
    words = [
        ["boat harbour sail", "sail wind boat", "harbour ship wind"],
        ["onion pan oil", "oil salt pan", "onion salt"],
    ]
    texts = [words[n // 12][n % 3] for n in range(24)]
    assert find_structure(spans(24, 5.0), None, texts).scenes == (0, 12)


def test_a_border_lies_in_silence_and_not_inside_a_line():
    """One segment lies between two places; the voice decides to which it belongs."""
    places = np.eye(32)[[0] * 12 + [0] + [1] * 12]
    places[12, 1] = places[12, 0] = 0.5
    vectors = places + 0.2 * np.random.default_rng(1).normal(size=(25, 32))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    talk = [(n * 5.0 + 1, n * 5.0 + 6) for n in range(25)]

    def cut(silent_s):
        lines = [line for line in talk if not line[0] < silent_s < line[1]]
        return find_structure(spans(25, 5.0), vectors, (), lines).scenes

    assert cut(60.0) == (0, 12)
    assert cut(65.0) == (0, 13)


@pytest.mark.parametrize(("film_s", "shot_s"), [(7200.0, 5.0), (7200.0, 45.0), (600.0, 10.0), (86400.0, 60.0)])
def test_numbers_are_bounded_whatever_is_seen(film_s, shot_s):
    count = int(film_s / shot_s)
    noise = np.random.default_rng(0).normal(size=(count, 16))
    found = find_structure(spans(count, shot_s), noise / np.linalg.norm(noise, axis=1, keepdims=True))
    scenes, chapters = scene_limits(film_s, count), chapter_limits(film_s, count)
    assert min(scenes.fewest, count) / 3 <= len(found.scenes) <= scenes.most
    assert chapters.fewest / 3 <= len(found.chapters) <= chapters.most
    assert all(a < b for a, b in pairwise(found.scenes)) and found.chapters[0] == found.scenes[0] == 0


@pytest.mark.parametrize(
    ("film_s", "scenes", "chapters"), [(7200.0, (40, 120), (8, 20)), (60.0, (1, 6), (1, 1)), (600.0, (3, 10), (2, 5))]
)
def test_limits(film_s, scenes, chapters):
    limits = scene_limits(film_s, 1000), chapter_limits(film_s, 1000)
    assert [(each.fewest, each.most) for each in limits] == [scenes, chapters]


def test_a_thousand_cuts_of_a_tenth_of_a_second_are_taken_together():
    found = find_structure(spans(1000, 0.1), film(10, 100))
    assert all(np.diff([*found.scenes, 1000]) >= 10)


def test_as_many_vectors_and_texts_as_segments():
    with pytest.raises(ValueError, match="3 segments, 2 vectors and 3 texts"):
        find_structure(spans(3, 1.0), np.eye(2))
