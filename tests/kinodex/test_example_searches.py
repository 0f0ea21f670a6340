"""Examples are scenes that a library shows, each in other frames, in words that the space was trained on."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinodex.example_searches import SCENES, example_searches
from kinodex.index.library import Library
from kinodex.jobs.open import load_text_tower
from tests.support.libraries.photograph_library import photograph_library


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library.open(str(photograph_library(tmp_path_factory.mktemp("photographs"))))


def test_examples_are_what_is_seen_each_in_other_frames(photographs: Library) -> None:
    tower = load_text_tower(photographs, None)
    two = example_searches(photographs, tower, 2)
    assert [each.scene for each in two] == ["mountains", "a cat"]
    assert {each.video_id for each in two} == {row.video_id for row in photographs.videos()}
    assert all(len(each.unlike) == 3 and each.scene not in each.unlike for each in two)
    assert len(example_searches(photographs, tower, 9)) <= 3


def test_examples_are_in_words_that_the_space_was_trained_on(library: Path) -> None:
    drawn = Library.open(str(library))
    trained = drawn.sigmoid(drawn.space(), "")
    assert trained is not None
    chosen = example_searches(drawn, load_text_tower(drawn, None), 9)
    assert all(trained.reads(each.scene) for each in chosen)
    assert not trained.reads("a waterfall")


def test_scenes_are_short_and_each_is_there_once() -> None:
    scenes = SCENES.read_text().splitlines()
    assert len(scenes) == len(set(scenes)) > 100
    assert all(0 < len(each) <= 32 and each == each.strip() for each in scenes)
