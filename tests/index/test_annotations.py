"""Captions that agents keep: one a part and model, in a table made when first needed, gone with their video."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest

from kinodex.index.annotations.notes import MANY_FRAGMENTS
from kinodex.index.annotations.speakers import shown_speaker
from kinodex.index.errors import QueryError, UnknownVideo
from kinodex.index.library import Library
from kinodex.index.remove import remove_added
from kinodex.index.rows import ChapterRow, Hit, NoteRow, ScreenTextRow, SpeechRow
from kinodex.index.search.fusion import fuse
from kinodex.index.store.database import Tables
from kinodex.index.store.indexes import Thresholds, refresh, small_fragments
from kinodex.index.sweep import audit, sweep
from tests.support.libraries.random_library import (
    SETTINGS,
    add_stage,
    empty_library,
    fingerprint,
    made,
    run_together,
    spoken,
    voice,
    write,
    write_all,
)
from tests.support.screen_text.lines import CORNER, Line, add_screen_text

OFTEN = Thresholds(scalar_rows=5, vector_rows=30, stale_rows=5, stale_lines=5, fragments=2, vector_fragments=2)
WRITERS = 2


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two videos of 8 s."""
    library = empty_library(tmp_path_factory.mktemp("original") / "library", SETTINGS, fingerprint())
    write_all(library, [made(video_id, 8, seed=number) for number, video_id in enumerate(("aaaa", "bbbb"))])
    return Path(library.uri)


@pytest.fixture
def films(original: Path, tmp_path: Path) -> Library:
    return Library.open(str(shutil.copytree(original, tmp_path / "library")))


def texts(rows) -> list[str]:
    return [row.text for row in rows]


def clip(video_id: str, number: int, model: str = "m", text: str = "said") -> NoteRow:
    return NoteRow(video_id, model, 4.0 * number, 4.0 * number + 4, f"{text} {number}", 0.5, 4)


def test_clips_come_back_by_video_and_model_in_order_of_time_and_are_no_captions(films):
    films.notes.add([])
    refresh(films.tables, OFTEN)
    assert (sweep(films), films.notes.read("aaaa", "m"), "notes" in Tables(films.uri).names()) == (0, [], False)
    Path(films.uri, "notes.lance").mkdir()  # a making of the table that was interrupted
    assert films.notes.read("aaaa", "m") == [] and films.info().stored_bytes > 0
    refresh(films.tables, OFTEN)
    rows = [clip("aaaa", 1), clip("aaaa", 0), clip("bbbb", 0), clip("aaaa", 0, "other")]
    films.notes.add(rows)
    longer = replace(rows[1], end_s=8.0)  # the first of a part stays
    films.notes.add([replace(rows[1], text="later"), replace(rows[1], end_s=4.0 + 1e-9, text="later"), longer])
    again = Library.open(films.uri)
    assert again.notes.read("aaaa", "m") == [rows[1], longer, rows[0]]
    assert (again.notes.read("aaaa", "other"), again.notes.read("bbbb", "other")) == ([rows[3]], [])
    assert (again.captions("aaaa"), again.search.captions("said")) == ([], [])
    assert len(films.additions.pending("captions", "m")) == 2
    assert films.additions.discard_leftovers("captions", "m") == 0
    assert len(films.notes.read("aaaa", "m")) == 3


@pytest.mark.slow
def test_many_small_writes_are_joined_without_a_refresh(films):
    for number in range(MANY_FRAGMENTS + 2):
        films.notes.add([clip("aaaa", number)])
    assert small_fragments(Tables(films.uri), "notes") < 5
    assert len(films.notes.read("aaaa", "m")) == MANY_FRAGMENTS + 2


def keep(uri: str, number: int, start: Barrier) -> None:
    """Parts that overlap with the other writers', some of them of a model of its own."""
    library = Library.open(uri)
    start.wait()
    for first in range(0, 24, 4):
        library.notes.add([clip("aaaa", n, text=f"by {number}") for n in range(first, first + 8)])
        library.notes.add([clip("aaaa", n, f"own {number}") for n in range(first, first + 4)])


def ingest(uri: str, number: int, start: Barrier) -> None:
    """Videos come and go, and maintenance runs, meanwhile."""
    library = Library.open(uri)
    start.wait()
    for n in range(3):
        video = made(f"v{number}{n}", 6, seed=n)
        write(library, video)
        library.notes.add([clip(video.video_id, 0)])
        refresh(library.tables, OFTEN)
        library.writer.discard(video.video_id)


@pytest.mark.slow
def test_several_processes_keep_at_once_beside_an_ingest(films):
    spawn = get_context("spawn")
    start = spawn.Barrier(WRITERS + 1)
    writers = [spawn.Process(target=keep, args=(films.uri, number, start)) for number in range(WRITERS)]
    run_together(writers, meanwhile=lambda: ingest(films.uri, WRITERS, start))
    assert [row.start_s for row in films.notes.read("aaaa", "m")] == [4.0 * n for n in range(28)]
    for number in range(WRITERS):
        assert len(films.notes.read("aaaa", f"own {number}")) == 24
    assert Tables(films.uri).count("notes") == 28 + WRITERS * 24
    assert audit(films).problems == ()


# Detections, scenes, chapters and text on screen.


def scene(video_id, level, number, start_s, end_s, model="m", title="A boat", text="A boat leaves the harbour."):
    return ChapterRow(video_id, level, number, start_s, end_s, int(start_s), int(end_s - start_s), title, text, model)


def summarised(library, video_id, rows, model="m"):
    library.additions.discard_leftovers("chapters", model)
    library.chapters.add({video_id: rows})
    library.additions.complete("chapters", model, {video_id: len(rows)}, {})


def test_scenes_by_time_a_chapter_before_its_scenes_of_the_newest_model_that_is_complete(films):
    assert films.chapters.rows("aaaa") == films.chapters.outdated("m") == []
    with pytest.raises(UnknownVideo):
        films.chapters.rows("zz")
    spans = [("scene", 1, 2.0, 4.0), ("chapter", 0, 0.0, 4.0), ("scene", 0, 0.0, 2.0), ("chapter", 1, 4.0, 8.0)]
    rows = [scene("aaaa", *span) for span in spans]
    films.additions.discard_leftovers("chapters", "m")
    films.chapters.add({"aaaa": rows})
    assert films.chapters.rows("aaaa") == []
    films.additions.complete("chapters", "m", {"aaaa": 4}, {})
    reader = Library.open(films.uri)
    assert reader.chapters.rows("aaaa") == [rows[1], rows[2], rows[0], rows[3]]
    assert (reader.chapters.rows("film aaaa", "chapter"), reader.chapters.rows("bbbb")) == ([rows[1], rows[3]], [])
    summarised(films, "aaaa", [scene("aaaa", "chapter", 0, 0.0, 8.0, "n", title="Newer")], "n")
    assert [row.title for row in films.chapters.rows("aaaa")] == ["Newer"]
    films.additions.discard("chapters", "n", "aaaa")
    assert {row.model for row in films.chapters.rows("aaaa")} == {"m"}


def test_text_on_screen_by_time_and_from_top_to_bottom(films):
    assert films.screen_text("aaaa") == films.search.lines("screen_text", "anything") == []
    assert not films.tables.has("screen_text")
    above, below = (0.1, 0.1, 0.5, 0.2), (0.1, 0.6, 0.5, 0.7)
    lines = [Line(8.0, 9.0, "later"), Line(2.0, 6.0, "second", box=below), Line(2.0, 5.0, "first", box=above)]
    add_screen_text(films, "aaaa", lines)
    assert texts(films.screen_text("aaaa")) == ["first", "second", "later"]
    last = films.screen_text("aaaa")[2]
    assert last.box == pytest.approx(CORNER)
    expected = ScreenTextRow("aaaa", 8.0, 9.0, "later", 0.875, CORNER, 1, None, "reader")
    assert replace(last, box=CORNER) == expected
    assert texts(films.screen_text("aaaa", 5.0, 8.0)) == ["second"]
    assert films.screen_text("bbbb") == []
    with pytest.raises(UnknownVideo):
        films.screen_text("cccc")


def test_text_of_the_newest_model_that_is_complete_is_shown(films):
    films.additions.discard_leftovers("screen_text", "first")
    films.lines.add("screen_text", {"aaaa": [Line(0.0, 3.0, "MORNlNG")]}, "first")
    assert films.screen_text("aaaa") == films.search.lines("screen_text", "morning") == []
    assert films.additions.discard_leftovers("screen_text", "first") == 1
    assert films.tables.count("screen_text") == 0
    add_screen_text(films, "aaaa", [Line(0.0, 3.0, "MORNlNG")], "first")
    add_screen_text(films, "aaaa", [Line(0.0, 3.0, "MORNING")], "second")
    assert texts(films.screen_text("aaaa")) == ["MORNING"]
    refresh(films.tables)
    assert texts(films.search.lines("screen_text", "MORNlNG")) == ["MORNING"]  # by a letter, not the old row
    remove_added(films, "screen_text", "second", "aaaa")
    assert texts(films.screen_text("aaaa")) == ["MORNlNG"]


# Voices of a library: matched, named, renamed and forgotten; and the lines that readers see.

SAME = 0.8


def heard(library: Library, *lines: Any) -> None:
    add_stage(library, "speech", "whisper", {"aaaa": lines})


def lines_of(library: Library) -> list[SpeechRow]:
    return [line for line in library.speech("aaaa") if line.source == "model"]


def test_a_voice_is_found_again_and_a_new_one_gets_the_next_number(films):
    speakers = films.speakers
    assert speakers.rows() == speakers.match([], "m", SAME) == []
    assert speakers.match([voice(0), voice(1)], "m", SAME) == ["speaker-1", "speaker-2"]
    state, version = films.tables.rows("speakers").to_pylist(), films.tables.version("speakers")
    assert speakers.match([voice(0), voice(1)], "m", SAME) == ["speaker-1", "speaker-2"]
    assert (films.tables.rows("speakers").to_pylist(), films.tables.version("speakers")) == (state, version)
    found = speakers.match([voice(2), voice(1, noise=0.5), voice(0)], "m", SAME)
    assert found == ["speaker-3", "speaker-2", "speaker-1"]
    assert speakers.match([voice(0)], "another encoder", SAME) == ["speaker-4"]


def test_the_voice_that_was_heard_longest_stands_for_a_speaker(films):
    for each in (voice(0, 4.0, 0.5), voice(0, 60.0), voice(0, 8.0, 0.4)):
        films.speakers.match([each], "m", SAME)
    assert [row.seconds for row in films.speakers.rows()] == [60.0]


@pytest.mark.slow
def test_videos_that_are_written_at_once_share_their_voices(films):
    """As on Ray, where each actor writes: here each thread has the library open for itself."""

    def match(number: int) -> list[str]:
        own = Library.open(films.uri)
        return own.speakers.match([voice(0, 1.0 + number), voice(number % 3 + 1)], "m", SAME)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(match, range(8)))
    assert len(films.speakers.rows()) == 4
    assert len({pair[0] for pair in found}) == 1
    assert [pair[1] for pair in found] == [found[number % 3][1] for number in range(8)]


def test_a_name_shows_in_every_line_at_once_and_in_searches(films):
    speakers = films.speakers
    speakers.match([voice(0), voice(1)], "m", SAME)
    said = [spoken(0, "bonjour kite", "speaker-1", "fr"), spoken(1, "hi", "speaker-2")]
    heard(films, *said, spoken(3, "hello boat"))
    assert [line.speaker for line in lines_of(films)] == ["speaker 1", "speaker 2", None]
    speakers.name(["speaker-1"], "  Anna   Lee ")
    assert [line.speaker for line in lines_of(films)] == ["Anna Lee", "speaker 2", None]
    (hit,) = films.search.lines("speech", "bonjour")
    assert (hit.speaker, hit.language) == ("Anna Lee", "fr")
    (fused,) = fuse([Hit("aaaa", 0.5, 1.0, 0, 0.9, None, "frames")], [hit])
    assert (fused.text, fused.speaker, fused.language, fused.found_in) == ("bonjour kite", "Anna Lee", "fr", "several")
    assert (films.search.lines("speech", "boat")[0].speaker, speakers.languages()) == (None, {"en": 2, "fr": 1})
    speakers.name(["speaker-2"], "Anna Lee")
    assert [row.speaker for row in speakers.find("anna lee")] == ["speaker-1", "speaker-2"]
    speakers.name(["speaker-1", "speaker-2"], None)
    assert speakers.names() == {}
    shown = [shown_speaker(each, {"speaker-1": "Anna"}) for each in (None, "Sheldon", "speaker-1", "speaker-12")]
    assert shown == [None, "Sheldon", "Anna", "speaker 12"]


def test_a_name_outlives_what_was_heard_until_it_is_forgotten(films):
    films.speakers.match([voice(0), voice(1)], "m", SAME)
    films.speakers.name(["speaker-2"], "Anna")
    heard(films, spoken(0, "hi", "speaker-2"))
    films.additions.discard("speech", "whisper", "aaaa")
    films.writer.discard("bbbb")
    assert films.speakers.match([voice(1, noise=0.3)], "m", SAME) == ["speaker-2"]
    assert films.speakers.names() == {"speaker-2": "Anna"}
    heard(films, spoken(0, "hi", "speaker-2"))
    films.speakers.forget(["speaker-2"])
    assert [(row.speaker, row.name, row.seconds) for row in films.speakers.rows()] == [("speaker-1", None, 5.0)]
    assert [line.speaker for line in lines_of(films)] == ["speaker 2"]
    stored = films.tables.rows("speakers").to_pylist()[1]
    assert (stored["name"], set(stored["vector"])) == (None, {0.0})
    assert films.speakers.match([voice(1)], "m", SAME) == ["speaker-3"], "a number is not given again"


def test_a_speaker_is_found_by_number_or_name_or_nobody_is(films):
    speakers = films.speakers
    with pytest.raises(QueryError, match=r"does not know; it knows nobody: kinodex add speech --speakers"):
        speakers.find("Anna")
    speakers.match([voice(0), voice(1)], "m", SAME)
    for text in ("speaker-2", "Speaker 2", "2"):
        assert [row.speaker for row in speakers.find(text)] == ["speaker-2"], text
    for name in ("علی\u200cرضا", "👩\u200d🚀 Ada", "Zoë O'Neil [bold]", "Bo"):
        speakers.name(["speaker-1"], name)
        assert [row.name for row in speakers.find(name)] == [name]
    with pytest.raises(QueryError, match=r"got speaker 'Anna', whom .* it knows speaker-1 \(Bo\), speaker-2$"):
        speakers.find("Anna")
    for name in ("", "  ", "speaker 4", "7", "a\x00b", "x" * 101, "\u200d", "\u200cAnna", "a\u202eb", "\ud800"):
        with pytest.raises(QueryError, match="a name has 1 to 100 printed characters"):
            speakers.name(["speaker-1"], name)
