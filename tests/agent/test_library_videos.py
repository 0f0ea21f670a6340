"""Videos of a library as an environment reads them: words in the place of frames, the nearest videos, no subtitles."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from kinodex.agent.errors import NeedsPictures
from kinodex.agent.variants.longvideoagent.clips import tagged_clips
from kinodex.agent.videos.library_videos import LibraryVideos
from kinodex.index.library import Library
from kinodex.index.rows import SpeechRow
from kinodex.index.spaces.sentence_model import load_sentence_model
from tests.support.libraries.agent_library import embed_words, environment_of, film, make_library
from tests.support.libraries.sentence_lines import add_sentences
from tests.support.libraries.text_library import text_video_id
from tests.support.models.sentence_models import small_bert
from tests.support.scenes.chapters import add_chapters
from tests.support.screen_text.lines import Line, add_screen_text

SAID = "mind the wind"


def test_a_caption_stands_in_a_frames_place(words_library):
    told, video_id = environment_of(words_library, "told"), text_video_id("told")
    assert not told.pictured(video_id)
    assert list(told.times(video_id)) == [float(at) for at in range(60)]
    assert told.shown_until(video_id, 59.0) == 60.0
    best = told.search(["red kite desert"], video_id, 3, 4.0)[0]
    assert 40.0 <= best.time_s < 45.0
    assert best.similarity > 0.5
    assert told.times_between(video_id, 40.0, 44.0, 2) == (41.0, 43.0)
    assert told.words(video_id, 44.0, 46.0)[0].text == "red kite desert"
    with pytest.raises(NeedsPictures, match="no frames of 'told'"):
        told.frames(video_id, [3.0])
    talk, video_id = environment_of(words_library, "talk"), text_video_id("talk")
    assert list(talk.times(video_id)) == [5.0 * at for at in range(12)], "lines, where there are no captions"
    assert [match.time_s for match in talk.search(["red kite"], video_id, 1, 4.0)] == [5.0]
    assert {note.source for note in talk.words(video_id)} == {"speech"}


def test_what_was_heard_says_by_whom(tmp_path):
    library = make_library(tmp_path / "library", {"film": ["a red kite"] * 4})
    (video,) = library.videos()
    library.speakers.match([SimpleNamespace(vector=np.eye(256, dtype=np.float32)[0], seconds=9.0)], "m", 0.8)
    lines = [SimpleNamespace(start_s=0.0, end_s=2.0, text="hello", language="en", speaker="speaker-1")]
    library.additions.add_speech({video.video_id: lines}, "whisper")
    assert library.additions.complete("speech", "whisper", {video.video_id: 1}, {}) == ()
    for name, says in ((None, "speaker 1: hello"), ("Anna", "Anna: hello")):
        library.speakers.name(["speaker-1"], name)
        assert [note.text for note in environment_of(library).quoted(video.video_id, 0.0, 4.0)] == [says]
        assert [clip.text for clip in tagged_clips(environment_of(library)) if clip.text] == [says]


def test_a_hidden_transcript_is_hidden_everywhere(words_library):
    hidden = environment_of(words_library, "told", "talk", "dinner", speech=False)
    assert hidden.search_words("wind", 5) == []
    assert hidden.lines(text_video_id("told"), ["speech"]) == ()
    assert hidden.nearest(["hello"], 2).search_words("wind", 5) == []
    clips = list(tagged_clips(hidden))
    assert not any(clip.text for clip in clips)
    with pytest.raises(NeedsPictures, match="neither frames nor captions of 'talk', and its transcript is not to be"):
        hidden.times(text_video_id("talk"))
    assert environment_of(words_library, "told").search_words("wind", 5)


def test_vectors_are_read_and_texts_embedded_once(tmp_path):
    library = make_library(tmp_path / "library", {"film": film(2, 60)})
    embedded: list[list[str]] = []

    def embed(texts: list[str]) -> NDArray[np.float32]:
        embedded.append(texts)
        return embed_words(texts)

    videos = LibraryVideos(library, library.videos(), embed)
    video_id = videos.videos[0].video_id
    assert videos.in_memory(video_id) is videos.in_memory(video_id)
    videos.embed_texts(["a kite", "a boat", "a kite"])
    videos.embed_texts(["a boat", "the sea"])
    assert embedded == [["a kite", "a boat"], ["the sea"]]
    assert videos.cosines("a kite", video_id) is videos.cosines("a kite", video_id)


@pytest.fixture(scope="module")
def signposted(tmp_path_factory):
    """A film with a title card and a sign, and with a line spoken meanwhile."""
    library = make_library(tmp_path_factory.mktemp("signposted"), {"film": film(1, 60), "other": film(2, 60)})
    row = library.video("film")
    library.writer.add_speech({row.video_id: [SpeechRow(row.video_id, 20.0, 22.0, "mind the sign", "sidecar")]})
    add_screen_text(library, row.video_id, [Line(10.0, 13.0, "QUIET  HARBOUR"), Line(18.0, 40.0, "LIBRARY 40")])
    add_chapters(library, row.video_id, 60.0)
    return library


def test_text_on_screen_is_among_the_lines_of_a_video_as_notes(signposted):
    environment = environment_of(signposted)
    video_id = signposted.video("film").video_id
    quoted = [(note.start_s, note.end_s, note.source, note.text) for note in environment.quoted(video_id, 12.0, 22.0)]
    assert quoted == [
        (10.0, 13.0, "screen_text", "QUIET HARBOUR"),
        (18.0, 40.0, "screen_text", "LIBRARY 40"),
        (20.0, 22.0, "speech", "mind the sign"),
    ]
    assert [row.text for row in environment.lines(video_id, ["screen_text"], 30.0, 31.0)] == ["LIBRARY 40"]
    assert [hit.text for hit in environment.search_words("harbour", 5)] == ["QUIET  HARBOUR"]
    assert environment.nearest(["quiet harbour"], 1).videos[0].title == "film"


def test_hidden_text_on_screen_and_titles_written_from_hidden_words_are_hidden_everywhere(signposted):
    rows, video_id = signposted.videos(), signposted.video("film").video_id
    hidden = LibraryVideos(signposted, rows, embed_words, hide=["screen_text"])
    untold = LibraryVideos(signposted, rows, embed_words, hide=["speech"])
    for videos in (hidden, hidden.only([video_id])):
        assert videos.search_words("harbour", 5) == []
        assert [line.source for line in videos.lines(video_id)] == ["speech"]
    for videos in (hidden, untold, hidden.only([video_id]), untold.only([video_id])):
        assert videos.chapters(video_id) == []


def test_lines_have_the_cosines_of_the_librarys_sentence_model(tmp_path):
    library = make_library(tmp_path / "library", {"film": film(1, 60), "other": film(2, 60)})
    video_id = library.video("film").video_id
    said = [SpeechRow(video_id, 5.0 * at, 5.0 * at + 3.0, f"line  {at}", "sidecar") for at in range(10)]
    library.writer.add_speech({video_id: said})
    assert LibraryVideos(library, library.videos(), embed_words).line_cosines("line 4", video_id) is None
    model = load_sentence_model(f"{small_bert(tmp_path / 'bert')}")
    add_sentences(library, model)
    videos = LibraryVideos(Library.open(library.uri), library.videos(), embed_words)
    cosines = videos.line_cosines("line 4", video_id)
    assert cosines is not None
    expected = model.embed_lines([line.text for line in said]) @ model.embed_texts(["line 4"])[0]
    np.testing.assert_allclose(cosines, expected, atol=2e-3)
    of_other = videos.line_cosines("line 4", library.video("other").video_id)
    assert of_other is not None and len(of_other) == 0
    add_screen_text(library, video_id, [Line(12.0, 13.0, "ECHO")])
    outdated = LibraryVideos(Library.open(library.uri), library.videos(), embed_words).line_cosines("line 4", video_id)
    assert outdated is not None and np.isnan(outdated).sum() == 1
