"""Captions that agents keep: one a part and model, in a table made when first needed, gone with their video."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np
import pytest

from kinodex.index.annotations import MANY_FRAGMENTS, Speakers, shown_speaker
from kinodex.index.errors import QueryError, UnknownVideo
from kinodex.index.library import Library
from kinodex.index.maintain import remove_added
from kinodex.index.rows import ClipRow, Hit, SceneRow, ScreenTextRow, SpokenWord, TranscriptRow
from kinodex.index.search.fusion import fuse
from kinodex.index.store.database import Tables
from kinodex.index.store.indexes import Thresholds, refresh, small_fragments
from kinodex.index.sweep import audit, sweep
from tests.support.libraries.random_library import SETTINGS, detection, fingerprint, made, run_together, spoken, write
from tests.support.screen_text.lines import CORNER, Line, add_screen_text

OFTEN = Thresholds(scalar_rows=5, vector_rows=30, stale_rows=5, stale_lines=5, fragments=2, vector_fragments=2)


WRITERS = 2


@pytest.fixture
def clip_films(tmp_path) -> Library:
    clip_films = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    for number, video_id in enumerate(("aaaa", "bbbb")):
        write(clip_films, made(video_id, 6, seed=number))
    return clip_films


def clip(video_id: str, number: int, model: str = "m", text: str = "said") -> ClipRow:
    return ClipRow(video_id, model, 4.0 * number, 4.0 * number + 4, f"{text} {number}", 0.5, 4)


def tables_of(clip_films: Library) -> Tables:
    return Tables(clip_films.uri)


def test_a_library_without_the_table_is_read_and_kept_as_before(clip_films):
    assert clip_films.clips.read("aaaa", "m") == []
    clip_films.clips.add([])
    refresh(clip_films.tables, OFTEN)
    assert sweep(clip_films) == 0
    clip_films.writer.discard("bbbb")
    assert "clips" not in tables_of(clip_films).names()


def test_clips_come_back_by_video_and_model_in_order_of_time(clip_films):
    rows = [clip("aaaa", 1), clip("aaaa", 0), clip("bbbb", 0), clip("aaaa", 0, "other")]
    clip_films.clips.add(rows)
    again = Library.open(clip_films.uri)
    assert again.clips.read("aaaa", "m") == [rows[1], rows[0]]
    assert again.clips.read("aaaa", "other") == [rows[3]]
    assert again.clips.read("bbbb", "other") == []
    assert again.info().videos == 2


def test_the_first_of_a_part_stays_and_others_of_other_lengths_stand_beside_it(clip_films):
    first = clip("aaaa", 0)
    clip_films.clips.add([first])
    longer = replace(first, end_s=8.0)
    clip_films.clips.add([replace(first, text="later"), replace(first, end_s=4.0 + 1e-9, text="later"), longer])
    assert clip_films.clips.read("aaaa", "m") == [first, longer]


def test_clips_are_neither_captions_nor_searched(clip_films):
    clip_films.clips.add([clip("aaaa", 0)])
    assert clip_films.captions("aaaa") == []
    assert clip_films.search.captions("said") == []
    assert len(clip_films.additions.pending("captions", "m")) == 2
    assert clip_films.additions.discard_leftovers("captions", "m") == 0
    assert len(clip_films.clips.read("aaaa", "m")) == 1


def test_clips_go_with_their_video_and_are_not_taken_of_others(clip_films):
    clip_films.clips.add([clip("aaaa", 0), clip("bbbb", 0), clip("cccc", 0)])
    assert tables_of(clip_films).count("clips") == 2
    clip_films.writer.discard("aaaa")
    clip_films.clips.add([clip("aaaa", 1)])
    assert tables_of(clip_films).count("clips") == 1
    assert audit(clip_films).problems == ()


def test_a_sweep_finds_clips_that_were_written_while_their_video_went(clip_films):
    clip_films.clips.add([clip("aaaa", 0), clip("bbbb", 0)])
    tables = tables_of(clip_films)
    tables.append(
        "clips", [dict(zip(tables["clips"].schema.names, ("dddd", "m", "0-4", 0, 4, "x", 1, 4), strict=True))]
    )
    assert audit(clip_films).orphans == ("dddd",)
    assert sweep(clip_films) == 1
    assert audit(clip_films).orphans == ()
    assert len(clip_films.clips.read("aaaa", "m")) == 1


def test_a_table_whose_making_was_interrupted_is_made_again(clip_films):
    Path(clip_films.uri, "clips.lance").mkdir()
    assert clip_films.clips.read("aaaa", "m") == []
    assert clip_films.info().stored_bytes > 0
    refresh(clip_films.tables, OFTEN)
    clip_films.clips.add([clip("aaaa", 0)])
    assert clip_films.clips.read("aaaa", "m") == [clip("aaaa", 0)]


def test_many_small_writes_are_joined_without_a_refresh(clip_films):
    for number in range(MANY_FRAGMENTS + 2):
        clip_films.clips.add([clip("aaaa", number)])
    assert small_fragments(tables_of(clip_films), "clips") < 5
    assert len(clip_films.clips.read("aaaa", "m")) == MANY_FRAGMENTS + 2


def keep(uri: str, number: int, start: Barrier) -> None:
    """Parts that overlap with the other writers', some of them of a model of its own."""
    clip_films = Library.open(uri)
    start.wait()
    for first in range(0, 24, 4):
        clip_films.clips.add([clip("aaaa", n, text=f"by {number}") for n in range(first, first + 8)])
        clip_films.clips.add([clip("aaaa", n, f"own {number}") for n in range(first, first + 4)])


def ingest(uri: str, number: int, start: Barrier) -> None:
    """Videos come and go, and maintenance runs, meanwhile."""
    clip_films = Library.open(uri)
    start.wait()
    for n in range(3):
        video = made(f"v{number}{n}", 6, seed=n)
        write(clip_films, video)
        clip_films.clips.add([clip(video.video_id, 0)])
        refresh(clip_films.tables, OFTEN)
        clip_films.writer.discard(video.video_id)


@pytest.mark.slow
def test_several_processes_keep_at_once_beside_an_ingest(clip_films):
    spawn = get_context("spawn")
    start = spawn.Barrier(WRITERS + 1)
    works = [*(keep for _ in range(WRITERS)), ingest]
    run_together([spawn.Process(target=work, args=(clip_films.uri, n, start)) for n, work in enumerate(works)])
    assert [row.start_s for row in clip_films.clips.read("aaaa", "m")] == [4.0 * n for n in range(28)]
    for number in range(WRITERS):
        assert len(clip_films.clips.read("aaaa", f"own {number}")) == 24
    assert tables_of(clip_films).count("clips") == 28 + WRITERS * 24
    assert audit(clip_films).problems == ()


# Detections of a video: in order, by label, and the frames and labels without them.


def test_labels_of_detections_are_listed_the_most_frequent_first(library):
    write(library, made("aaaa", 18, seed=1))
    video_id = library.videos()[0].video_id
    assert library.detection_labels(video_id) == []
    rows = [detection(number, label, 0.5) for number, label in enumerate(["cat", "Big  Dog", "big dog", "ant"])]
    library.additions.add_detections({video_id: rows}, "m")
    assert library.detection_labels(video_id) == []  # not complete yet
    library.additions.complete("detections", "m", {video_id: len(rows)}, {})
    assert library.detection_labels(video_id) == ["big dog", "ant", "cat"]


def test_detections_are_read_by_time_label_and_score_and_frames_by_label(library):
    write(library, made("aaaa", 18, seed=1))
    rows = [
        detection(number, label, score) for number, label, score in ((3, "cat", 0.9), (1, "dog", 0.4), (5, "cat", 0.5))
    ]
    assert library.detections("aaaa") == [] and library.detected_frames("aaaa") == {}
    library.additions.add_detections({"aaaa": rows}, "m")
    library.additions.complete("detections", "m", {"aaaa": len(rows)}, {})
    assert [(each.frame_no, each.label) for each in library.detections("aaaa")] == [(1, "dog"), (3, "cat"), (5, "cat")]
    assert [each.frame_no for each in library.detections("aaaa", 3.0, 5.0)] == [3]
    assert [each.frame_no for each in library.detections("aaaa", label="Cat", min_score=0.6)] == [3]
    assert {label: frames.tolist() for label, frames in library.detected_frames("aaaa").items()} == {
        "cat": [3, 5],
        "dog": [1],
    }


# Scenes and chapters: rows by level and time, of the newest model, shown once they are complete.


def scene(video_id, level, number, start_s, end_s, model="m", title="A boat", text="A boat leaves the harbour."):
    return SceneRow(video_id, level, number, start_s, end_s, int(start_s), int(end_s - start_s), title, text, model)


def summarised(scene_films, video_id, rows, model="m"):
    scene_films.additions.discard_leftovers("summaries", model)
    scene_films.scenes.add({video_id: rows})
    scene_films.additions.complete("summaries", model, {video_id: len(rows)}, {})


@pytest.fixture
def scene_films(tmp_path):
    scene_films = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    for number, video_id in enumerate(("aa", "bb")):
        write(scene_films, made(video_id, 8, number))
    return scene_films


def test_a_library_without_the_table_has_no_scenes(scene_films):
    assert scene_films.scenes.rows("aa") == []
    assert scene_films.scenes.outdated("m") == []
    with pytest.raises(UnknownVideo):
        scene_films.scenes.rows("zz")


def test_rows_by_time_a_chapter_before_its_scenes(scene_films):
    rows = [
        scene("aa", "scene", 1, 2.0, 4.0),
        scene("aa", "chapter", 0, 0.0, 4.0),
        scene("aa", "scene", 0, 0.0, 2.0),
        scene("aa", "chapter", 1, 4.0, 8.0),
    ]
    summarised(scene_films, "aa", rows)
    reader = Library.open(scene_films.uri)
    assert [(row.level, row.number) for row in reader.scenes.rows("aa")] == [
        ("chapter", 0),
        ("scene", 0),
        ("scene", 1),
        ("chapter", 1),
    ]
    assert reader.scenes.rows("film aa", "chapter") == [rows[1], rows[3]]
    assert reader.scenes.rows("bb") == []


def test_rows_are_shown_once_they_are_complete_and_of_the_newest_model(scene_films):
    scene_films.additions.discard_leftovers("summaries", "m")
    scene_films.scenes.add({"aa": [scene("aa", "chapter", 0, 0.0, 8.0)]})
    assert scene_films.scenes.rows("aa") == []
    scene_films.additions.complete("summaries", "m", {"aa": 1}, {})
    assert [row.model for row in scene_films.scenes.rows("aa")] == ["m"]
    summarised(scene_films, "aa", [scene("aa", "chapter", 0, 0.0, 8.0, "n", title="Newer")], "n")
    assert [row.title for row in scene_films.scenes.rows("aa")] == ["Newer"]
    scene_films.additions.discard("summaries", "n", "aa")
    assert [row.model for row in scene_films.scenes.rows("aa")] == ["m"]


def test_videos_whose_words_are_newer_than_their_summaries(scene_films):
    for video_id in ("aa", "bb"):
        summarised(scene_films, video_id, [scene(video_id, "chapter", 0, 0.0, 8.0)])
    assert scene_films.scenes.outdated("m") == []
    scene_films.additions.add_speech({"bb": [spoken(0, "a boat")]}, "whisper")
    scene_films.additions.complete("speech", "whisper", {"bb": 1}, {})
    assert scene_films.scenes.outdated("m") == ["bb"]
    assert scene_films.scenes.outdated("n") == []


# Text on screen as rows: of the newest model, by time, and none where no model read any.


@pytest.fixture
def sign_films(tmp_path) -> Library:
    sign_films = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    for number, video_id in enumerate(("aaaa", "bbbb")):
        write(sign_films, made(video_id, 20, seed=number))
    return sign_films


def test_a_library_without_the_table_has_no_text_on_screen(sign_films):
    assert not sign_films.tables.has("screen_text")
    assert sign_films.screen_text.rows("aaaa") == []
    assert sign_films.search.screen_text("anything") == []
    assert not sign_films.tables.has("screen_text")


def test_rows_by_time_and_from_top_to_bottom(sign_films):
    above, below = (0.1, 0.1, 0.5, 0.2), (0.1, 0.6, 0.5, 0.7)
    lines = [Line(8.0, 9.0, "later"), Line(2.0, 6.0, "second", box=below), Line(2.0, 5.0, "first", box=above)]
    add_screen_text(sign_films, "aaaa", lines)
    assert [row.text for row in sign_films.screen_text.rows("aaaa")] == ["first", "second", "later"]
    last = sign_films.screen_text.rows("aaaa")[2]
    assert last.box == pytest.approx(CORNER)
    expected = ScreenTextRow("aaaa", 8.0, 9.0, "later", 0.875, CORNER, 1, None, "reader")
    assert replace(last, box=CORNER) == expected
    assert [row.text for row in sign_films.screen_text.rows("aaaa", 5.0, 8.0)] == ["second"]
    assert sign_films.screen_text.rows("bbbb") == []
    with pytest.raises(UnknownVideo):
        sign_films.screen_text.rows("cccc")


def test_the_newest_model_is_shown_and_its_removal_shows_the_one_before(sign_films):
    add_screen_text(sign_films, "aaaa", [Line(0.0, 3.0, "MORNlNG")], "first")
    add_screen_text(sign_films, "aaaa", [Line(0.0, 3.0, "MORNING")], "second")
    assert [row.text for row in sign_films.screen_text.rows("aaaa")] == ["MORNING"]
    refresh(sign_films.tables)
    assert [hit.text for hit in sign_films.search.screen_text("MORNlNG")] == ["MORNING"]  # by a letter, not the old row
    remove_added(sign_films, "text", "second", "aaaa")
    assert [row.text for row in sign_films.screen_text.rows("aaaa")] == ["MORNlNG"]


def test_rows_that_are_not_complete_are_not_shown_and_are_deleted(sign_films):
    sign_films.additions.discard_leftovers("text", "reader")
    sign_films.screen_text.add({"aaaa": [Line(0.0, 3.0, "MORNING")]}, "reader")
    assert sign_films.screen_text.rows("aaaa") == sign_films.search.screen_text("morning") == []
    assert sign_films.additions.discard_leftovers("text", "reader") == 1
    assert sign_films.tables.count("screen_text") == 0


# Voices of a library: matched, named, renamed and forgotten; and the lines that readers see.

SAME = 0.8


@dataclass(frozen=True)
class Voice:
    axis: int
    seconds: float = 5.0
    noise: float = 0.0

    @property
    def vector(self) -> np.ndarray:
        vector = np.zeros(256, np.float32)
        vector[self.axis], vector[-1] = np.sqrt(1 - self.noise**2), self.noise
        return vector


@dataclass(frozen=True)
class SaidLine:
    start_s: float
    end_s: float
    text: str
    speaker: str | None
    language: str | None = "en"
    words: tuple[SpokenWord, ...] = field(default=())


@pytest.fixture
def voice_films(tmp_path) -> Library:
    voice_films = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    write(voice_films, made("aaaa", 4, seed=0))
    return voice_films


def heard(voice_films: Library, *lines: SaidLine) -> None:
    voice_films.additions.add_speech({"aaaa": lines}, "whisper")
    assert voice_films.additions.complete("speech", "whisper", {"aaaa": len(lines)}, {}) == ()


def lines_of(voice_films: Library) -> list[TranscriptRow]:
    return [line for line in voice_films.transcript("aaaa") if line.source == "asr"]


def known(speakers: Speakers) -> list[tuple[str, str | None, float]]:
    return [(row.speaker, row.name, row.seconds) for row in speakers.rows()]


def test_a_voice_is_found_again_and_a_new_one_gets_the_next_number(voice_films):
    speakers = voice_films.speakers
    assert speakers.rows() == []
    assert speakers.match([], "m", SAME) == []
    assert speakers.match([Voice(0), Voice(1)], "m", SAME) == ["speaker-1", "speaker-2"]
    assert speakers.match([Voice(2), Voice(1, noise=0.5), Voice(0)], "m", SAME) == [
        "speaker-3",
        "speaker-2",
        "speaker-1",
    ]
    assert speakers.match([Voice(0)], "another encoder", SAME) == ["speaker-4"]


def test_a_run_that_is_repeated_changes_nothing(voice_films):
    voices = [Voice(0, 4.0), Voice(1, 9.0)]
    found = voice_films.speakers.match(voices, "m", SAME)
    state = voice_films.tables.rows("speakers").to_pylist()
    version = voice_films.tables.version("speakers")
    assert voice_films.speakers.match(voices, "m", SAME) == found
    assert voice_films.tables.rows("speakers").to_pylist() == state
    assert voice_films.tables.version("speakers") == version


def test_the_voice_that_was_heard_longest_stands_for_a_speaker(voice_films):
    voice_films.speakers.match([Voice(0, 4.0, 0.5)], "m", SAME)
    voice_films.speakers.match([Voice(0, 60.0)], "m", SAME)
    voice_films.speakers.match([Voice(0, 8.0, 0.4)], "m", SAME)
    ((_, _, seconds),) = known(voice_films.speakers)
    assert seconds == 60.0


def test_videos_that_are_written_at_once_share_their_voices(voice_films):
    """As on Ray, where each actor writes: here each thread has the library open for itself."""

    def write(number: int) -> list[str]:
        own = Library.open(voice_films.uri)
        return own.speakers.match([Voice(0, 1.0 + number), Voice(number % 3 + 1)], "m", SAME)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(write, range(8)))
    assert len(voice_films.speakers.rows()) == 4
    assert len({pair[0] for pair in found}) == 1
    assert [pair[1] for pair in found] == [found[number % 3][1] for number in range(8)]


def test_a_name_shows_in_every_line_at_once(voice_films):
    voice_films.speakers.match([Voice(0), Voice(1)], "m", SAME)
    heard(
        voice_films, SaidLine(0, 1, "hello", "speaker-1"), SaidLine(1, 2, "hi", "speaker-2"), SaidLine(2, 3, "oh", None)
    )
    assert [line.speaker for line in lines_of(voice_films)] == ["speaker 1", "speaker 2", None]
    voice_films.speakers.name(["speaker-1"], "  Anna   Lee ")
    assert [line.speaker for line in lines_of(voice_films)] == ["Anna Lee", "speaker 2", None]
    voice_films.speakers.name(["speaker-2"], "Anna Lee")
    assert [row.speaker for row in voice_films.speakers.find("anna lee")] == ["speaker-1", "speaker-2"]
    voice_films.speakers.name(["speaker-1", "speaker-2"], None)
    assert voice_films.speakers.names() == {}


def test_a_search_says_who_spoke_and_in_which_language(voice_films):
    voice_films.speakers.match([Voice(0)], "m", SAME)
    heard(voice_films, SaidLine(0, 1, "bonjour kite", "speaker-1", "fr"), SaidLine(5, 6, "hello boat", None, "en"))
    voice_films.speakers.name(["speaker-1"], "Anna")
    (hit,) = voice_films.search.transcript("bonjour")
    assert (hit.speaker, hit.language) == ("Anna", "fr")
    (fused,) = fuse([Hit("aaaa", 0.5, 1.0, 0, 0.9, None, "frame")], [hit])
    assert (fused.text, fused.speaker, fused.language, fused.source) == ("bonjour kite", "Anna", "fr", "both")
    assert (voice_films.search.transcript("boat")[0].speaker, voice_films.speakers.languages()) == (
        None,
        {"en": 1, "fr": 1},
    )


def test_a_name_outlives_what_was_heard(voice_films):
    voice_films.speakers.match([Voice(0)], "m", SAME)
    voice_films.speakers.name(["speaker-1"], "Anna")
    heard(voice_films, SaidLine(0, 1, "hello", "speaker-1"))
    voice_films.additions.discard("speech", "whisper", "aaaa")
    voice_films.writer.discard("aaaa")
    assert voice_films.speakers.match([Voice(0, noise=0.3)], "m", SAME) == ["speaker-1"]
    assert voice_films.speakers.names() == {"speaker-1": "Anna"}


def test_a_voice_that_is_forgotten_is_not_found_and_its_number_not_given_again(voice_films):
    voice_films.speakers.match([Voice(0), Voice(1)], "m", SAME)
    voice_films.speakers.name(["speaker-2"], "Anna")
    heard(voice_films, SaidLine(0, 1, "hi", "speaker-2"))
    voice_films.speakers.forget(["speaker-2"])
    assert known(voice_films.speakers) == [("speaker-1", None, 5.0)]
    assert [line.speaker for line in lines_of(voice_films)] == ["speaker 2"]
    stored = voice_films.tables.rows("speakers").to_pylist()[1]
    assert (stored["name"], set(stored["vector"])) == (None, {0.0})
    assert voice_films.speakers.match([Voice(1)], "m", SAME) == ["speaker-3"]


@pytest.mark.parametrize("text", ["speaker-2", "Speaker 2", "2"])
def test_a_speaker_is_found_by_number(voice_films, text):
    voice_films.speakers.match([Voice(0), Voice(1)], "m", SAME)
    assert [row.speaker for row in voice_films.speakers.find(text)] == ["speaker-2"]


def test_nobody_is_found(voice_films):
    with pytest.raises(QueryError, match=r"does not know; it knows nobody: kinodex add speech --speakers"):
        voice_films.speakers.find("Anna")
    voice_films.speakers.match([Voice(0)], "m", SAME)
    voice_films.speakers.name(["speaker-1"], "Bo")
    with pytest.raises(QueryError, match=r"got speaker 'Anna', whom .* it knows speaker-1 \(Bo\)$"):
        voice_films.speakers.find("Anna")


@pytest.mark.parametrize("name", ["علی\u200cرضا", "👩\u200d🚀 Ada", "Zoë O'Neil [bold]"])
def test_a_name_may_have_what_scripts_and_emoji_join_letters_with(voice_films, name):
    voice_films.speakers.match([Voice(0)], "m", SAME)
    voice_films.speakers.name(["speaker-1"], name)
    assert [row.name for row in voice_films.speakers.find(name)] == [name]


@pytest.mark.parametrize(
    "name", ["", "  ", "speaker 4", "7", "a\x00b", "x" * 101, "\u200d", "\u200cAnna", "a\u202eb", "\ud800"]
)
def test_what_is_no_name_is_refused(voice_films, name):
    voice_films.speakers.match([Voice(0)], "m", SAME)
    with pytest.raises(QueryError, match="a name has 1 to 100 printed characters"):
        voice_films.speakers.name(["speaker-1"], name)


def test_speakers_of_other_sources_are_shown_as_they_are():
    names = {"speaker-1": "Anna"}
    assert [shown_speaker(each, names) for each in (None, "Sheldon", "speaker-1", "speaker-12")] == [
        None,
        "Sheldon",
        "Anna",
        "speaker 12",
    ]


def test_words_of_lines_are_kept(voice_films):
    words = (SpokenWord("hello", 0.0, 0.5), SpokenWord("you", 0.5, 1.0))
    heard(voice_films, SaidLine(0, 1, "hello you", None, words=words), SaidLine(1, 2, "hi", None))
    assert [line.words for line in lines_of(voice_films)] == [words, ()]


def test_an_older_library_gets_lines_without_words(voice_films):
    """Its table has no such column, and none is added: lines are the same but for it."""
    voice_films.tables["transcript"].drop_columns(["words"])
    older = Library.open(voice_films.uri)
    heard(older, SaidLine(0, 1, "hello", "speaker-1", words=(SpokenWord("hello", 0.0, 1.0),)))
    (line,) = lines_of(older)
    assert (line.text, line.speaker, line.words) == ("hello", "speaker 1", ())
    assert "words" not in older.tables.schema("transcript").names
