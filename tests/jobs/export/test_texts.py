"""Texts of moments, read again by webvtt-py and our own readers."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import webvtt

from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.file_names import distinct, file_stem, time_stem
from kinodex.jobs.export.moments import Moment
from kinodex.jobs.export.subtitles import srt_text, vtt_text
from kinodex.jobs.export.text_files import write_text
from kinodex.pipeline.subtitles.cues import parse_cues
from tests.support.libraries.moments import moments, video

HOSTILE = "1 < 2 & 3 --> 4\n\n\n  <b>next</b> line\r\n00:00:01.000 --> 00:00:02.000"


def test_webvtt_is_read_again_by_others() -> None:
    broadcast = video(zero_s=1000.0, uri="/films/a.ts")  # times are those that a player shows
    text = vtt_text(moments((61.5, 63.25, HOSTILE), (3.0, 4.0, "first"), (-10.0, -9.5, "before"), of=broadcast))
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


def test_nothing_is_overwritten_unasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.vtt"
    write_text(str(path), "one\r\n")
    assert path.read_bytes() == b"one\r\n"
    with pytest.raises(UsageError, match="which is there already; give another file, or --overwrite"):
        write_text(str(path), "two")
    write_text(str(path), "two", overwrite=True)
    assert path.read_text() == "two"
    for place, says in ((tmp_path, "which is a folder"), (tmp_path / "no" / "a.vtt", "cannot write")):
        with pytest.raises(UsageError, match=says):
            write_text(str(place), "three")
    assert [each.name for each in tmp_path.iterdir()] == ["a.vtt"]
    write_text("-", "four")
    assert capsys.readouterr().out == "four"


def test_names_are_safe_and_each_once() -> None:
    assert file_stem("../../etc/passwd") == "passwd"
    assert file_stem("Küste: Möwen & mehr?.mp4") == "Küste__Möwen___mehr_.mp4"
    assert file_stem("...") == "video"
    assert file_stem("-rf *") == "rf"
    assert len(file_stem("映" * 200).encode()) <= 80
    assert distinct(["a", "A", "b", "a"]) == ["a", "A_2", "b", "a_3"]
    assert time_stem(3723.4567) == "01h02m03.457s"
    assert time_stem(-1.0) == "00h00m00.000s"
    hours = [time_stem(3600.0 * each) for each in (1, 2, 9, 10, 11)]
    assert sorted(hours) == hours


def test_speakers_are_voices() -> None:
    said = [Moment(video(), 1.0, 2.0, "Hello <you>", speaker="Ann > Bo")]
    (caption,) = webvtt.from_string(vtt_text(said)).captions
    assert caption.voice == "Ann  Bo"
    assert [cue.text for cue in parse_cues(vtt_text(said))] == ["Hello <you>"]
    assert "Ann > Bo: Hello <you>" in srt_text(said)


def test_a_moment_without_length_or_label_is_shown_all_the_same() -> None:
    for write in (vtt_text, srt_text):
        (cue,) = parse_cues(write(moments((5.0, 5.0, "  "))))
        assert (cue.start_s, cue.end_s, cue.text) == (5.0, 5.001, "range")
