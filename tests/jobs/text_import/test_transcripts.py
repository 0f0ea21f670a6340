"""Transcript files: subtitles named after their videos."""

from __future__ import annotations

from kinodex.jobs.add.text_files import TextLine, VideoText
from tests.support.libraries.text_files import transcripts, written


def test_subtitles_are_named_after_their_videos(tmp_path):
    srt = "1\n00:00:01,000 --> 00:00:02,500\n<i>Hello</i>\nthere\n"
    written(tmp_path / "__a film.srt", srt)
    written(tmp_path / "deep" / "other.en.vtt", "WEBVTT\n\n00:03.000 --> 00:04.000\n<v Mary>Yes")
    written(tmp_path / "notes.txt", "not mine")
    first, second = transcripts(tmp_path)
    assert first == VideoText("__a film", (TextLine(1.0, 2.5, "Hello there"),))
    assert second == VideoText("other", (TextLine(3.0, 4.0, "Yes", None, "Mary", "en"),), whole_name="other.en")
