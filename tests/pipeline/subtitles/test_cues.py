"""Markup, entities and voices of one cue."""

from __future__ import annotations

from pipeline.subtitles.cues import split_voices


def test_text_of_a_cue() -> None:
    assert list(split_voices("a < b and c > d")) == [(None, "a < b and c > d")]
    assert list(split_voices("<font color='red'>  red </font>\n\n")) == [(None, "red")]
    assert list(split_voices("<b></b>&nbsp;")) == []
