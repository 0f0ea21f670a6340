"""Transcripts as WebVTT: times of a stream's clock, and text that stays text."""

from __future__ import annotations

from kinodex.index.rows import TranscriptRow
from kinodex.pipeline.subtitles import parse_cues
from kinodex.web.play import captions_vtt


def line(start_s, end_s, text, speaker=None):
    return TranscriptRow("v", start_s, end_s, text, "sidecar", None, speaker)


def test_lines_are_cues_on_the_players_clock():
    lines = [line(1, 2, "gone"), line(9.5, 12, "hello", "Ann"), line(3700.25, 3701, "late")]
    assert captions_vtt(lines, 10.0) == (
        "WEBVTT\n\n00:00:00.000 --> 00:00:02.000\nAnn: hello\n\n01:01:30.250 --> 01:01:31.000\nlate\n"
    )


def test_text_neither_ends_a_cue_nor_begins_one_nor_is_markup():
    hostile = "a\n\n00:00:09.000 --> 00:00:10.000\n<b>NOTE & STYLE</b>\r\n\r\nWEBVTT"
    text = captions_vtt([line(0, 1, hostile), line(2, 3, "  ")], 0.0)
    (cue,) = parse_cues(text)
    assert (cue.start_s, cue.end_s) == (0.0, 1.0)
    assert text.count("-->") == 1 and "<b>" not in text
    assert "NOTE &amp; STYLE" in text
