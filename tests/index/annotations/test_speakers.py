"""Voices of a library: matched, named, renamed and forgotten; and the lines that readers see."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import pytest

from kinodex.index.annotations import Speakers, shown_speaker
from kinodex.index.errors import QueryError
from kinodex.index.library import Library
from kinodex.index.rows import Hit, SpokenWord, TranscriptRow
from kinodex.index.search.fusion import fuse
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, write

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
class Line:
    start_s: float
    end_s: float
    text: str
    speaker: str | None
    language: str | None = "en"
    words: tuple[SpokenWord, ...] = field(default=())


@pytest.fixture
def library(tmp_path) -> Library:
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    write(library, made("aaaa", 4, seed=0))
    return library


def heard(library: Library, *lines: Line) -> None:
    library.additions.add_speech({"aaaa": lines}, "whisper")
    assert library.additions.complete("speech", "whisper", {"aaaa": len(lines)}, {}) == ()


def lines_of(library: Library) -> list[TranscriptRow]:
    return [line for line in library.transcript("aaaa") if line.source == "asr"]


def known(speakers: Speakers) -> list[tuple[str, str | None, float]]:
    return [(row.speaker, row.name, row.seconds) for row in speakers.rows()]


def test_a_voice_is_found_again_and_a_new_one_gets_the_next_number(library):
    speakers = library.speakers
    assert speakers.rows() == []
    assert speakers.match([], "m", SAME) == []
    assert speakers.match([Voice(0), Voice(1)], "m", SAME) == ["speaker-1", "speaker-2"]
    assert speakers.match([Voice(2), Voice(1, noise=0.5), Voice(0)], "m", SAME) == [
        "speaker-3",
        "speaker-2",
        "speaker-1",
    ]
    assert speakers.match([Voice(0)], "another encoder", SAME) == ["speaker-4"]


def test_a_run_that_is_repeated_changes_nothing(library):
    voices = [Voice(0, 4.0), Voice(1, 9.0)]
    found = library.speakers.match(voices, "m", SAME)
    state = library.tables.rows("speakers").to_pylist()
    version = library.tables.version("speakers")
    assert library.speakers.match(voices, "m", SAME) == found
    assert library.tables.rows("speakers").to_pylist() == state
    assert library.tables.version("speakers") == version


def test_the_voice_that_was_heard_longest_stands_for_a_speaker(library):
    library.speakers.match([Voice(0, 4.0, 0.5)], "m", SAME)
    library.speakers.match([Voice(0, 60.0)], "m", SAME)
    library.speakers.match([Voice(0, 8.0, 0.4)], "m", SAME)
    ((_, _, seconds),) = known(library.speakers)
    assert seconds == 60.0


def test_videos_that_are_written_at_once_share_their_voices(library):
    """As on Ray, where each actor writes: here each thread has the library open for itself."""

    def write(number: int) -> list[str]:
        own = Library.open(library.uri)
        return own.speakers.match([Voice(0, 1.0 + number), Voice(number % 3 + 1)], "m", SAME)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(write, range(8)))
    assert len(library.speakers.rows()) == 4
    assert len({pair[0] for pair in found}) == 1
    assert [pair[1] for pair in found] == [found[number % 3][1] for number in range(8)]


def test_a_name_shows_in_every_line_at_once(library):
    library.speakers.match([Voice(0), Voice(1)], "m", SAME)
    heard(library, Line(0, 1, "hello", "speaker-1"), Line(1, 2, "hi", "speaker-2"), Line(2, 3, "oh", None))
    assert [line.speaker for line in lines_of(library)] == ["speaker 1", "speaker 2", None]
    library.speakers.name(["speaker-1"], "  Anna   Lee ")
    assert [line.speaker for line in lines_of(library)] == ["Anna Lee", "speaker 2", None]
    library.speakers.name(["speaker-2"], "Anna Lee")
    assert [row.speaker for row in library.speakers.find("anna lee")] == ["speaker-1", "speaker-2"]
    library.speakers.name(["speaker-1", "speaker-2"], None)
    assert library.speakers.names() == {}


def test_a_search_says_who_spoke_and_in_which_language(library):
    library.speakers.match([Voice(0)], "m", SAME)
    heard(library, Line(0, 1, "bonjour kite", "speaker-1", "fr"), Line(5, 6, "hello boat", None, "en"))
    library.speakers.name(["speaker-1"], "Anna")
    (hit,) = library.search.transcript("bonjour")
    assert (hit.speaker, hit.language) == ("Anna", "fr")
    (fused,) = fuse([Hit("aaaa", 0.5, 1.0, 0, 0.9, None, "frame")], [hit])
    assert (fused.text, fused.speaker, fused.language, fused.source) == ("bonjour kite", "Anna", "fr", "both")
    assert (library.search.transcript("boat")[0].speaker, library.speakers.languages()) == (None, {"en": 1, "fr": 1})


def test_a_name_outlives_what_was_heard(library):
    library.speakers.match([Voice(0)], "m", SAME)
    library.speakers.name(["speaker-1"], "Anna")
    heard(library, Line(0, 1, "hello", "speaker-1"))
    library.additions.discard("speech", "whisper", "aaaa")
    library.writer.discard("aaaa")
    assert library.speakers.match([Voice(0, noise=0.3)], "m", SAME) == ["speaker-1"]
    assert library.speakers.names() == {"speaker-1": "Anna"}


def test_a_voice_that_is_forgotten_is_not_found_and_its_number_not_given_again(library):
    library.speakers.match([Voice(0), Voice(1)], "m", SAME)
    library.speakers.name(["speaker-2"], "Anna")
    heard(library, Line(0, 1, "hi", "speaker-2"))
    library.speakers.forget(["speaker-2"])
    assert known(library.speakers) == [("speaker-1", None, 5.0)]
    assert [line.speaker for line in lines_of(library)] == ["speaker 2"]
    stored = library.tables.rows("speakers").to_pylist()[1]
    assert (stored["name"], set(stored["vector"])) == (None, {0.0})
    assert library.speakers.match([Voice(1)], "m", SAME) == ["speaker-3"]


@pytest.mark.parametrize("text", ["speaker-2", "Speaker 2", "2"])
def test_a_speaker_is_found_by_number(library, text):
    library.speakers.match([Voice(0), Voice(1)], "m", SAME)
    assert [row.speaker for row in library.speakers.find(text)] == ["speaker-2"]


def test_nobody_is_found(library):
    with pytest.raises(QueryError, match=r"does not know; it knows nobody: kinodex add speech --speakers"):
        library.speakers.find("Anna")
    library.speakers.match([Voice(0)], "m", SAME)
    library.speakers.name(["speaker-1"], "Bo")
    with pytest.raises(QueryError, match=r"got speaker 'Anna', whom .* it knows speaker-1 \(Bo\)$"):
        library.speakers.find("Anna")


@pytest.mark.parametrize("name", ["علی\u200cرضا", "👩\u200d🚀 Ada", "Zoë O'Neil [bold]"])
def test_a_name_may_have_what_scripts_and_emoji_join_letters_with(library, name):
    library.speakers.match([Voice(0)], "m", SAME)
    library.speakers.name(["speaker-1"], name)
    assert [row.name for row in library.speakers.find(name)] == [name]


@pytest.mark.parametrize(
    "name", ["", "  ", "speaker 4", "7", "a\x00b", "x" * 101, "\u200d", "\u200cAnna", "a\u202eb", "\ud800"]
)
def test_what_is_no_name_is_refused(library, name):
    library.speakers.match([Voice(0)], "m", SAME)
    with pytest.raises(QueryError, match="a name has 1 to 100 printed characters"):
        library.speakers.name(["speaker-1"], name)


def test_speakers_of_other_sources_are_shown_as_they_are():
    names = {"speaker-1": "Anna"}
    assert [shown_speaker(each, names) for each in (None, "Sheldon", "speaker-1", "speaker-12")] == [
        None,
        "Sheldon",
        "Anna",
        "speaker 12",
    ]


def test_words_of_lines_are_kept(library):
    words = (SpokenWord("hello", 0.0, 0.5), SpokenWord("you", 0.5, 1.0))
    heard(library, Line(0, 1, "hello you", None, words=words), Line(1, 2, "hi", None))
    assert [line.words for line in lines_of(library)] == [words, ()]


def test_an_older_library_gets_lines_without_words(library):
    """Its table has no such column, and none is added: lines are the same but for it."""
    library.tables["transcript"].drop_columns(["words"])
    older = Library.open(library.uri)
    heard(older, Line(0, 1, "hello", "speaker-1", words=(SpokenWord("hello", 0.0, 1.0),)))
    (line,) = lines_of(older)
    assert (line.text, line.speaker, line.words) == ("hello", "speaker 1", ())
    assert "words" not in older.tables.schema("transcript").names
