"""Scenes and chapters: by pictures, by words, by silence; and their titles and summaries by local models."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from kinodex.pipeline.errors import ModelMissing, WrongModel
from kinodex.pipeline.scenes.structure import FilmStructure, chapter_limits, find_structure, scene_limits
from kinodex.pipeline.scenes.word_vectors import DIMENSIONS, word_vectors
from kinodex.pipeline.scenes.writer import PartLines, load_writer
from tests.pipeline.models.test_captioner import pictures
from tests.support.models import stage_models as stage_kit


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


def test_a_film_has_scenes_and_chapters_of_its_shots_and_a_minute_one_chapter():
    found = find_structure(spans(2000, 3.6), film(80, 25, chapters=16))
    assert found.scenes == tuple(range(0, 2000, 25))
    assert found.chapters == tuple(range(0, 80, 5))
    assert find_structure(spans(12, 5.0), film(1, 12)) == FilmStructure((0,), (0,))
    assert len(find_structure(spans(12, 5.0), film(4, 3)).chapters) == 1
    assert find_structure([]) == FilmStructure()
    assert find_structure([(0.0, 0.0)]) == FilmStructure((0,), (0,))
    short = find_structure(spans(1000, 0.1), film(10, 100))
    assert all(np.diff([*short.scenes, 1000]) >= 10), "a thousand cuts of a tenth of a second are taken together"
    with pytest.raises(ValueError, match="3 segments, 2 vectors and 3 texts"):
        find_structure(spans(3, 1.0), np.eye(2))


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


def test_numbers_are_bounded_whatever_is_seen():
    for film_s, shot_s in ((7200.0, 5.0), (7200.0, 45.0), (600.0, 10.0), (86400.0, 60.0)):
        count = int(film_s / shot_s)
        noise = np.random.default_rng(0).normal(size=(count, 16))
        found = find_structure(spans(count, shot_s), noise / np.linalg.norm(noise, axis=1, keepdims=True))
        scenes, chapters = scene_limits(film_s, count), chapter_limits(film_s, count)
        assert min(scenes.fewest, count) / 3 <= len(found.scenes) <= scenes.most, (film_s, shot_s)
        assert chapters.fewest / 3 <= len(found.chapters) <= chapters.most, (film_s, shot_s)
        assert all(a < b for a, b in pairwise(found.scenes)) and found.chapters[0] == found.scenes[0] == 0
    for film_s, expected in {
        7200.0: [(40, 120), (8, 20)], 60.0: [(1, 6), (1, 1)], 600.0: [(3, 10), (2, 5)],
    }.items():  # fmt: skip
        limits = scene_limits(film_s, 1000), chapter_limits(film_s, 1000)
        assert [(each.fewest, each.most) for each in limits] == expected


DIM = 32


def places(*sizes, seed=0, noise=0.3):
    """Items of places that differ, with noise."""
    chance = np.random.default_rng(seed)
    means = chance.normal(size=(len(sizes), DIM))
    return np.vstack([mean + noise * chance.normal(size=(size, DIM)) for mean, size in zip(means, sizes, strict=True)])


def test_texts_of_one_topic_are_nearer_than_others():
    said = [
        "The boat leaves the harbour",
        "A boat in the harbour sails",
        "The cook cuts the onions",
        "A cook fries the onions",
    ]
    vectors = word_vectors(said)
    cosines = vectors @ vectors.T
    assert vectors.shape == (4, DIMENSIONS)
    assert cosines[0, 1] > 0.2 > abs(cosines[0, 2]) and cosines[2, 3] > 0.2
    assert not word_vectors(["the the and", "and the", "the and"]).any(), "words of every text weigh nothing"
    assert not word_vectors(["", "...", "to be"]).any()
    without_spaces = word_vectors(["船在港口", "港口的船", "厨师切洋葱"])
    assert without_spaces[0] @ without_spaces[1] > 0.2 and without_spaces[0] @ without_spaces[2] == 0.0
    vector = word_vectors(["harbour", "onions"])[0]
    assert np.linalg.norm(vector) == pytest.approx(1.0)
    assert int(np.flatnonzero(vector)[0]) == 77, "the same in every process"


PARTS = [PartLines(("a red kite", "two boats"), (), 30.0), PartLines(("a cat at night",), (), 4.0)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["llama", "llava"])
def test_a_batch_says_what_each_part_alone_says_and_lines_that_do_not_fit_are_thinned(tiny_model, name):
    writer = load_writer(str(tiny_model(name)), "cpu", max_new_tokens=8)
    together = writer.write(PARTS)
    assert together == [writer.write([part])[0] for part in PARTS]
    for each in together:
        assert each is not None and each.text and set(each.text.split()) <= set(stage_kit.WORDS.split())
        assert not each.is_whole  # these models never end
    assert writer.write([]) == []
    many = PartLines(tuple(f"a red kite over the sea number {n}" for n in range(400)), (), 30.0)
    [thinned] = writer.write([many])
    assert thinned is not None and thinned.text
    assert len(writer._fitting(many, 200)) < len(writer._fitting(many, 2000))
    assert "number 0" in writer._fitting(many, 10)


def test_words_that_end_are_whole_and_pictures_are_for_models_that_read_them(tiny_model, tmp_path):
    llama, llava = (load_writer(str(tiny_model(name)), "cpu", 8) for name in ("llama", "llava"))
    shown, nothing = PartLines((), pictures(2, 1), 30.0), PartLines((), (), 30.0)
    assert not llama.sees and llava.sees
    nothing_seen, of_words = llama.write([shown, PARTS[0]])
    assert nothing_seen is None and of_words is not None and of_words.text
    seen, none = llava.write([shown, nothing])
    assert seen is not None and seen.text and none is None
    [endless] = llama.write(PARTS[1:])
    assert endless is not None
    word = llama._tokenizer(endless.text)["input_ids"][2]
    for ends in (word, [5000, word]):  # its third word ends a reply from now on
        llama._settings.eos_token_id = ends
        [reply] = llama.write(PARTS[1:])
        assert reply is not None and reply.is_whole and len(reply.text.split()) <= 3
    with pytest.raises(ModelMissing):
        load_writer(str(tmp_path / "nothing"), "cpu")
    with pytest.raises(WrongModel):
        load_writer(str(tiny_model("rt_detr")), "cpu")
