"""Edits of moments, read again by OpenTimelineIO: time lines and edit decision lists."""

from __future__ import annotations

import opentimelineio as otio
import pytest

from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.edits import edl_text, otio_text, reel_names
from kinodex.jobs.export.frame_rate import FrameRate, frame_rate
from tests.support.libraries.moments import moments, video

NTSC = 30000 / 1001


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


def test_times_after_a_day_are_refused() -> None:
    film = video()
    with pytest.raises(UsageError, match="timecode ends at 24: use otio or csv"):
        edl_text(moments((2.0, 3.0, ""), of=film), FrameRate(25.0), timecodes={film.video_id: "23:59:58:00"})


def test_an_event_cuts_picture_and_sound_and_says_how_frames_are_counted() -> None:
    for rate, counting, times in (
        (FrameRate(25.0), "NON-DROP FRAME", "00:01:02:00 00:01:03:00 01:00:00:00 01:00:01:00"),
        (FrameRate(NTSC, drop_frame=True), "DROP FRAME", "00:01:02;00 00:01:03;00 01:00:00;00 01:00:01;00"),
        (FrameRate(NTSC), "NON-DROP FRAME", "00:01:01:28 00:01:02:28 01:00:00:00 01:00:01:00"),
    ):
        lines = edl_text(moments((62.0, 63.0, "a\ngull")), rate, "My\nedit").splitlines()
        assert lines[:3] == ["TITLE: My edit", f"FCM: {counting}", ""]
        assert lines[3] == f"001  KSTEMWEN B     C        {times}"
        assert "* COMMENT: a gull" in lines


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


def test_ranges_count_from_the_start_time_code_of_the_file() -> None:
    film = video()
    text = otio_text(moments((2.0, 3.0, ""), of=film), FrameRate(25.0), timecodes={film.video_id: "10:00:00:00"})
    (clip,) = otio.adapters.read_from_string(text, "otio_json").find_clips()
    assert clip.source_range.start_time.to_timecode(25.0) == "10:00:02:00"
    assert clip.media_reference.available_range.start_time.to_timecode(25.0) == "10:00:00:00"


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
