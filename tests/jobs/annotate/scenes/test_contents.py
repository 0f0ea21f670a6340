"""A table of contents: scenes from what is known of them, chapters from their scenes; parts without a title count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kinodex.agent.errors import ModelRejected
from kinodex.agent.protocol import Usage
from kinodex.agent.requests.describe import SummarizePart
from kinodex.index.library import Library
from kinodex.jobs.add.summaries import Film, Written, added_rows, read_film, write_contents
from tests.support.scenes.chaptered_film import make_film


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Library:
    library = make_film(tmp_path_factory.mktemp("film") / "library", "aa")
    from tests.support.scenes.chaptered_film import add_film

    add_film(library, "bb", 1, described=False, places=3)
    return library


def one_chapter(library: Library, name: str) -> Film:
    film = read_film(library, library.video(name))
    whole = replace(film.chapters[0], end_s=film.chapters[-1].end_s, children=range(len(film.scenes)))
    return replace(film, chapters=(whole,))


class Writer:
    """Numbers what it writes; the parts of some numbers get nothing."""

    def __init__(self, *fails: int, refused: bool = False) -> None:
        self.batches: list[Sequence[SummarizePart]] = []
        self.fails, self.refused = fails, ModelRejected("it will not") if refused else None

    def __call__(self, requests):
        self.batches.append(requests)
        return [self.one(request) for request in requests]

    def one(self, request):
        number, usage = request.part.number, Usage(input_tokens=10)
        if request.level == "scene" and number in self.fails:
            return Written(usage=usage, refused=self.refused)
        return Written(f"{request.level} {number}", "It happens.", usage)


def test_chapters_are_written_from_their_scenes(library):
    film, writer = one_chapter(library, "film aa"), Writer()
    rows = added_rows(write_contents(library, film, writer, 2, 3), "m")
    assert [len(batch) for batch in writer.batches] == [3, 1, 1]
    assert [note.text for note in writer.batches[2][0].notes] == [f"scene {n}. It happens." for n in range(4)]
    assert writer.batches[0][0].frames == ()
    assert [(row.level, row.number, row.title) for row in rows.rows] == [
        *(("scene", n, f"scene {n}") for n in range(4)),
        ("chapter", 0, "chapter 0"),
    ]
    assert rows.count == 5 and rows.problem is None and rows.usage.input_tokens == 50


def test_a_chapter_of_one_scene_is_not_written_again(library):
    film = read_film(library, library.video("film aa"))
    alone = [replace(film.chapters[0], number=n, children=range(n, n + 1)) for n in range(4)]
    writer = Writer()
    contents = write_contents(library, replace(film, chapters=tuple(alone)), writer, 2, 8)
    assert len(writer.batches) == 1
    assert [chapter.title for chapter in contents.chapters] == [f"scene {n}" for n in range(4)]
    assert added_rows(contents, "m").usage.input_tokens == 40


def test_scenes_without_words_are_shown_by_frames(library):
    writer = Writer()
    write_contents(library, one_chapter(library, "film bb"), writer, 2, 8)
    (scenes, _) = writer.batches
    assert [len(request.frames) for request in scenes] == [2, 2, 2]
    assert [frame.time_s for frame in scenes[1].frames] == [75.0, 105.0]


def test_parts_without_a_title_are_counted_and_given_by_their_lines(library):
    writer = Writer(1)
    rows = added_rows(write_contents(library, one_chapter(library, "film aa"), writer, 2, 8), "m")
    assert rows.count == 5
    assert [row.title for row in rows.rows if row.level == "scene"] == ["scene 0", "", "scene 2", "scene 3"]
    assert rows.problem == "1 of 5 scenes and chapters got no title that could be used"
    texts = [note.text for note in writer.batches[-1][0].notes]
    assert texts[0] == "scene 0. It happens." and any("kitchen" in text for text in texts)


def test_refused_requests(library):
    film = one_chapter(library, "film aa")
    rows = added_rows(write_contents(library, film, Writer(2, refused=True), 2, 8), "m")
    assert rows.problem is not None and rows.problem.endswith("requests refused: 1, the last because it will not")
    rows = added_rows(write_contents(library, film, Writer(0, 1, 2, 3, refused=True), 2, 8), "m")
    assert isinstance(rows.failed, ModelRejected) and (rows.count, rows.rows) == (0, ())
    assert rows.usage.input_tokens > 0  # what a video that fails has cost is counted


def test_parts_of_which_a_model_of_words_can_say_nothing_are_counted_as_such(library):
    film = read_film(library, library.video("film bb"))
    rows = added_rows(
        write_contents(library, film, lambda some: [Written(nothing_known=True) for _ in some], 2, 8), "m"
    )
    parts = len(film.scenes) + len(film.chapters)
    assert rows.problem is not None and f"{parts} of {parts} scenes and chapters got no title" in rows.problem
    assert f"of {parts} nothing is known in words, and the model reads no pictures: add captions first" in rows.problem
