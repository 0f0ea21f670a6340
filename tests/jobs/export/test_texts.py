"""Texts of moments, read again by webvtt-py, OpenTimelineIO and our own readers."""

from __future__ import annotations

import io
from pathlib import Path

import opentimelineio as otio
import pytest
import webvtt
from opentimelineio.opentime import RationalTime, to_timecode

from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.moments import Moment
from kinodex.jobs.export.texts import (
    FrameRate,
    distinct,
    edl_text,
    file_stem,
    frame_rate,
    otio_text,
    reel_names,
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


def test_ranges_count_from_the_start_time_code_of_the_file() -> None:
    film = video()
    text = otio_text(moments((2.0, 3.0, ""), of=film), FrameRate(25.0), timecodes={film.video_id: "10:00:00:00"})
    (clip,) = otio.adapters.read_from_string(text, "otio_json").find_clips()
    assert clip.source_range.start_time.to_timecode(25.0) == "10:00:02:00"
    assert clip.media_reference.available_range.start_time.to_timecode(25.0) == "10:00:00:00"


def test_the_rate_is_that_of_the_videos() -> None:
    assert frame_rate([video(fps=24.0)], None, None) == FrameRate(24.0)
    assert frame_rate([video(fps=29.97), video(fps=29.9701)], None, None) == FrameRate(NTSC_30, drop_frame=True)
    assert frame_rate([video(fps=29.97)], None, drop_frame=False) == FrameRate(NTSC_30)
    assert frame_rate([video(fps=23.976)], None, None) == FrameRate(24000 / 1001)
    assert frame_rate([video(fps=None)], None, None) == FrameRate(25.0)
    assert frame_rate([video(fps=25.0), video(fps=50.0)], 50.0, None) == FrameRate(50.0)


def test_rates_that_cannot_be_are_refused() -> None:
    for rates, fps, drop, says in (
        ((25.0, 30.0), None, None, r"several frame rates \(25, 30\); give the one of the edit with --fps"),
        ((25.0,), None, True, "got --drop-frame with 25 frames"),
        ((30.0,), None, True, "got --drop-frame with 30 frames"),
        ((25.0,), 0.0, None, "got 0 frames a second"),
        ((25.0,), float("nan"), None, "got nan frames a second"),
    ):
        with pytest.raises(UsageError, match=says):
            frame_rate([video(fps=each) for each in rates], fps, drop)
    with pytest.raises(UsageError, match="timecode ends at 24"):
        FrameRate(25.0).timecode(25 * 86_400)


def test_a_rate_that_no_timecode_has_is_counted_at_a_standard_one() -> None:
    for fps, counted, after_an_hour in (
        (12.5, 25.0, "01:00:00:00"),
        (7.5, 30.0, "01:00:00:00"),
        (15.0, 30.0, "01:00:00:00"),
        (29.53, NTSC_30, "01:00:00;00"),
        (28.05, NTSC_30, "01:00:00;00"),
        (16.05, 24000 / 1001, "00:59:56:10"),
    ):
        rate = frame_rate([video(fps=fps)], None, None, standard=True)
        assert (rate.fps, rate.in_place_of) == (counted, fps)
        assert rate.timecode(rate.frame(3600.0)) == after_an_hour


@pytest.mark.parametrize("rate", [FrameRate(25.0), FrameRate(NTSC_30), FrameRate(NTSC_30, drop_frame=True)])
def test_a_start_time_code_is_read_as_it_is_written(rate: FrameRate) -> None:
    for frame in (0, 1799, 1800, 17_982, 107_892, 1_079_999):
        assert rate.number(rate.timecode(frame)) == frame
    assert rate.number("no timecode") == 0
    assert FrameRate(30.0).number("10:00:00:0") == 10 * 3600 * 30  # as FFmpeg writes it for ten frames a second


def test_reels_are_short_plain_and_each_once() -> None:
    videos = [video(title) for title in ("interview one", "interview two", "映画", "映像", "a")]
    names = reel_names([*videos, videos[0]])
    assert list(names.values()) == ["INTERVIE", "INTERVI2", "REEL", "REEL2", "A"]


def test_more_events_than_the_format_numbers_are_refused() -> None:
    with pytest.raises(UsageError, match="got 1,000 moments; CMX 3600 numbers 999 events"):
        edl_text(moments(*[(1.0, 2.0, "")] * 1000), FrameRate(25.0))


def test_a_list_at_a_rate_that_readers_lack_is_opened_at_a_standard_one() -> None:
    film, nominal = video(fps=28.05), NTSC
    text = edl_text(moments((62.0, 63.0, "a gull"), of=film), frame_rate([film], None, None, standard=True))
    timeline = otio.adapters.read_from_string(text, "cmx_3600", rate=nominal)
    (clip,) = timeline.video_tracks()[0].find_clips()
    assert clip.source_range.start_time.to_seconds() == pytest.approx(62.0, abs=1 / nominal)
    assert clip.source_range.duration.to_seconds() == pytest.approx(1.0, abs=1 / nominal)


def test_source_times_count_from_the_start_time_code_of_the_file() -> None:
    film, other = video(), video("other")
    cuts = [*moments((2.0, 3.0, ""), of=film), *moments((2.0, 3.0, ""), of=other)]
    text = edl_text(cuts, FrameRate(25.0), timecodes={film.video_id: "10:00:00:00"})
    assert "10:00:02:00 10:00:03:00 01:00:00:00" in text
    assert "00:00:02:00 00:00:03:00 01:00:01:00" in text
