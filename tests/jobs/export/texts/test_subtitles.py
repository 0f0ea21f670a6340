"""WebVTT and SubRip, read again by webvtt-py and by the reader of our own ingest."""

from __future__ import annotations

import io

import pytest
import webvtt

from kinodex.jobs.export.moments import Moment
from kinodex.jobs.export.texts import srt_text, vtt_text
from kinodex.pipeline.subtitles import parse_cues
from tests.support.libraries.moments import moments, video

HOSTILE = "1 < 2 & 3 --> 4\n\n\n  <b>next</b> line\r\n00:00:01.000 --> 00:00:02.000"


def test_webvtt_is_read_again_by_others() -> None:
    text = vtt_text(moments((61.5, 63.25, HOSTILE), (3.0, 4.0, "first")))
    first, second = webvtt.from_string(text).captions
    assert (first.start, first.end, first.text) == ("00:00:03.000", "00:00:04.000", "first")
    assert (second.start, second.end) == ("00:01:01.500", "00:01:03.250")
    cues = list(parse_cues(text))
    assert [(cue.start_s, cue.end_s) for cue in cues] == [(3.0, 4.0), (61.5, 63.25)]
    assert cues[1].text.splitlines()[0] == "1 < 2 & 3 --> 4"


def test_subrip_is_read_again_by_others() -> None:
    text = srt_text(moments((3661.5, 3663.25, HOSTILE), (3.0, 4.0, "first")))
    first, second = webvtt.from_buffer(io.StringIO(text), format="srt").captions
    assert (first.text, second.start, second.end) == ("first", "01:01:01.500", "01:01:03.250")
    assert len(list(parse_cues(text))) == 2


def test_speakers_are_voices() -> None:
    said = [Moment(video(), 1.0, 2.0, "Hello <you>", speaker="Ann > Bo")]
    (caption,) = webvtt.from_string(vtt_text(said)).captions
    assert caption.voice == "Ann  Bo"
    assert [cue.text for cue in parse_cues(vtt_text(said))] == ["Hello <you>"]
    assert "Ann > Bo: Hello <you>" in srt_text(said)


def test_times_are_those_that_a_player_shows() -> None:
    broadcast = video(zero_s=1000.0, uri="/films/a.ts")
    text = vtt_text(moments((3.0, 4.0, "three seconds in"), (-10.0, -9.5, "before"), of=broadcast))
    assert [cue.start for cue in webvtt.from_string(text).captions] == ["00:00:03.000"]


@pytest.mark.parametrize("text", [vtt_text, srt_text])
def test_a_moment_without_length_or_label_is_shown_all_the_same(text) -> None:
    (cue,) = parse_cues(text(moments((5.0, 5.0, "  "))))
    assert (cue.start_s, cue.end_s, cue.text) == (5.0, 5.001, "range")
