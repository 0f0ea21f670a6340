"""Texts of moments, read again by webvtt-py, OpenTimelineIO and our own readers."""

from __future__ import annotations

import io
from pathlib import Path

import opentimelineio as otio
import pytest
import webvtt
from opentimelineio.opentime import RationalTime, to_timecode

from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.texts import (
    FrameRate,
    distinct,
    edl_text,
    file_stem,
    otio_text,
    srt_text,
    time_stem,
    vtt_text,
    write_text,
)
from kinodex.pipeline.subtitles import parse_cues
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


def test_a_time_line_is_opened_by_opentimelineio() -> None:
    film = video(zero_s=1000.0, uri="/films/a b.ts")
    cuts = [*moments((62.0, 63.0, "a gull"), of=film), *moments((5.0, 5.0, ""))]
    timeline = otio.adapters.read_from_string(otio_text(cuts, FrameRate(25.0), "My edit"), "otio_json")
    assert (timeline.name, timeline.duration().value) == ("My edit", 26.0)
    first, second = timeline.find_clips()
    assert (first.source_range.start_time.value, first.source_range.duration.value) == (62.0 * 25, 25.0)
    assert first.media_reference.target_url == "file:///films/a%20b.ts"
    assert first.media_reference.available_range.start_time.value == 0.0
    assert [marker.name for marker in first.markers] == ["a gull"]
    assert first.metadata["kinodex"]["video_id"] == film.video_id
    assert second.source_range.duration.value == 1.0
    assert not second.markers
    assert otio.adapters.write_to_string(timeline, "otio_json")


def test_an_address_goes_without_its_secrets() -> None:
    film = video(uri="https://user:word@films.example/a.mp4?token=abc")
    (clip,) = otio.adapters.read_from_string(
        otio_text(moments((1.0, 2.0, ""), of=film), FrameRate(25.0)), "otio_json"
    ).find_clips()
    assert clip.media_reference.target_url == "https://films.example/a.mp4"


NTSC_30, NTSC_60 = 30000 / 1001, 60000 / 1001


def test_numbers_are_those_of_opentimelineio() -> None:
    for fps, drop in ((24.0, False), (25.0, False), (NTSC_30, True), (NTSC_60, True), (NTSC_30, False)):
        rate = FrameRate(fps, drop)
        around = [k * n for k in (60, 600, 3600) for n in (rate.nominal, round(fps))]
        for frame in sorted({0, 1, *(each + step for each in around for step in range(-8, 9)), 107_892, 2_000_000}):
            assert rate.timecode(frame) == to_timecode(RationalTime(frame, fps), fps, drop), (fps, drop, frame)


def test_drop_frame_keeps_to_the_clock() -> None:
    rate = FrameRate(NTSC_30, drop_frame=True)
    assert rate.timecode(rate.frame(3600.0)) == "01:00:00;00"
    assert FrameRate(NTSC_30).timecode(rate.frame(3600.0)) == "00:59:56:12"


NTSC = 30000 / 1001


@pytest.mark.parametrize("rate", [FrameRate(25.0), FrameRate(NTSC, drop_frame=True), FrameRate(NTSC)])
def test_cuts_come_back(rate: FrameRate) -> None:
    film, other = video(), video("second film")
    cuts = [*moments((62.0, 63.0, "a\ngull"), of=film), *moments((5.0, 7.5, ""), (1.0, 1.0, "blink"), of=other)]
    timeline = otio.adapters.read_from_string(edl_text(cuts, rate, "My edit"), "cmx_3600", rate=rate.fps)
    assert timeline.name == "My edit"
    clips = list(timeline.video_tracks()[0].find_clips())
    assert [clip.name for clip in clips] == [film.title, other.title, other.title]
    got = [(round(clip.source_range.start_time.value), round(clip.source_range.duration.value)) for clip in clips]
    frames = [(rate.frame(62.0), rate.frame(63.0)), (rate.frame(5.0), rate.frame(7.5)), (rate.frame(1.0), 0)]
    assert got == [(start, max(end - start, 1)) for start, end in frames]
    assert clips[0].metadata["cmx_3600"]["reel"] == "KSTEMWEN"
