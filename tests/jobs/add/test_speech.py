"""Speech from the sound of sources, also where the first source is gone."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from kinodex.index.library import Library
from tests.support.command import bad, json_of
from tests.support.models.stage_models import library_of, tiny_film

pytestmark = pytest.mark.slow


@pytest.fixture
def own_films(small_films: list[Path], tmp_path: Path) -> list[Path]:
    """Copies of the films, of which the test may move or change the files."""
    folder = tmp_path / "films"
    folder.mkdir()
    return [Path(shutil.copy(film, folder)) for film in small_films]


@pytest.fixture
def own_library(own_films: list[Path], tmp_path: Path) -> Library:
    return library_of(tmp_path / "of-own-films", own_films)


def test_speech_is_heard_where_there_is_sound(kinodex, library, tiny_model):
    made = json_of(
        kinodex, "add", "speech", library.uri, "--model", tiny_model("whisper"), "--language", " DE", "--no-vad"
    )
    assert made["added"] == 3
    assert {each["title"]: each["rows"] > 0 for each in made["outcomes"]} == {
        "film-0": True,
        "film-1": False,
        "film-2": True,
    }
    lines = library.speech(library.video("film-0").video_id)
    assert {(line.source, line.language, line.model) for line in lines} == {("model", "de", str(tiny_model("whisper")))}
    hits = library.search.lines("speech", lines[0].text)
    assert (lines[0].video_id, lines[0].start_s) in [(hit.video_id, hit.time_s) for hit in hits]


def test_a_source_that_is_gone_or_changed_is_a_failure_until_it_is_back(kinodex, own_library, own_films, tiny_model):
    away = own_films[0].rename(own_films[0].with_suffix(".away"))
    was = own_films[2].read_bytes()
    tiny_film(own_films[2], 2, 9)
    command = ("add", "speech", own_library.uri, "--no-vad", "--model", tiny_model("whisper"))
    for attempt in (1, 2):
        ran = kinodex(*command)
        assert ran.code == 3
        assert "film-0.mp4: nothing is there" in ran.out
        assert "film-2.mp4: holds another video by now" in ran.out
        failures = [(row.uri, row.stage, row.error_class, row.attempts) for row in own_library.ingest_log.failures()]
        gone, other = str(own_films[0]), str(own_films[2])
        assert failures == [(name, "speech", "SourceMissing", attempt) for name in (gone, other)]
    away.rename(own_films[0])
    own_films[2].write_bytes(was)
    assert json_of(kinodex, "add", *command[1:])["added"] == 2
    assert own_library.ingest_log.failures() == []


@pytest.mark.skipif(find_spec("resemblyzer") is None, reason="pip install --no-deps resemblyzer")
def test_who_speaks_is_known_through_all_videos_and_by_name(kinodex, library, tiny_model, tmp_path):
    command = ("add", "speech", library.uri, "--model", tiny_model("whisper"), "--no-vad")
    assert json_of(kinodex, *command, "--speakers")["added"] == 3
    voices = library.speakers.rows()
    assert [row.speaker for row in voices] == ["speaker-1"]  # one tone in two films
    spoken = [line for row in library.videos() for line in library.speech(row.video_id)]
    assert {line.speaker for line in spoken} - {None} == {"speaker 1"}
    assert any(line.words for line in spoken)
    bad(kinodex, *command, code=2, says="got --no-speakers, but")
    assert kinodex("speakers", library.uri, "speaker-1", "Anna").code == 0
    assert kinodex("remove", "added", library.uri, "speech", tiny_model("whisper"), "--yes").code == 0
    assert json_of(kinodex, *command, "--speakers")["added"] == 3
    assert [(row.speaker, row.name) for row in library.speakers.rows()] == [("speaker-1", "Anna")]
    assert kinodex("export", "vtt", library.uri, tmp_path / "said.vtt", "--video", "film-0").code == 0
    assert "<v Anna>" in (tmp_path / "said.vtt").read_text()
