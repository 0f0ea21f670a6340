"""Stored captions: in the library, of one model; in memory for a question by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinodex.agent.tools.captions import as_note, store_captions, stored_captions, stored_clips
from kinodex.index.library import Library
from kinodex.index.rows import ClipRow, part_name
from tests.support.libraries.agent_library import environment_of, film, make_library
from tests.support.libraries.text_library import text_video_id


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return make_library(tmp_path / "library", {"film": film(1, 20)})


def row(library: Library, start_s: float, text: str, model: str = "one") -> ClipRow:
    return ClipRow(library.video("film").video_id, model, start_s, start_s + 4.0, text, 0.5, 4)


def test_captions_are_found_again_by_their_part_and_model(library: Library) -> None:
    environment, video_id = environment_of(library), library.video("film").video_id
    first, second = row(library, 0.0, "a boat"), row(library, 4.0, "a kite", "two")
    assert store_captions(environment, [first, second]) == ""
    assert stored_clips(environment_of(library), video_id, "one") == {part_name(0.0, 4.0): as_note(first)}
    assert stored_clips(environment, video_id, "two") == {part_name(4.0, 8.0): as_note(second)}
    assert environment.unsaved_captions == {}


def test_a_question_by_itself_reads_and_stores_in_memory_alone(library: Library) -> None:
    shared, video_id = environment_of(library), library.video("film").video_id
    store_captions(shared, [row(library, 0.0, "a boat")])
    alone = shared.without_shared_captions()
    assert stored_clips(alone, video_id, "one") == {}
    assert store_captions(alone, [row(library, 8.0, "a dog")]) == ""
    assert [note.text for note in stored_clips(alone, video_id, "one").values() if note] == ["a dog"]
    assert list(stored_clips(shared, video_id, "one")) == [part_name(0.0, 4.0)]


def test_captions_of_kinodex_add_count_for_every_model(words_library: Library) -> None:
    found = stored_captions(environment_of(words_library, "told"), text_video_id("told"), "any model")
    note = found[part_name(40.0, 41.0)]
    assert note is not None
    assert note.text == "red kite desert"
