"""Edit decision lists, opened again by OpenTimelineIO's adapter for CMX 3600."""

from __future__ import annotations

import opentimelineio as otio
import pytest

from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.texts import FrameRate, edl_text, frame_rate, reel_names
from tests.support.libraries.moments import moments, video

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


def test_reels_are_short_plain_and_each_once() -> None:
    videos = [video(title) for title in ("interview one", "interview two", "映画", "映像", "a")]
    names = reel_names([*videos, videos[0]])
    assert list(names.values()) == ["INTERVIE", "INTERVI2", "REEL", "REEL2", "A"]


def test_more_events_than_the_format_numbers_are_refused() -> None:
    with pytest.raises(UsageError, match="got 1,000 moments; CMX 3600 numbers 999 events"):
        edl_text(moments(*[(1.0, 2.0, "")] * 1000), FrameRate(25.0))


@pytest.mark.parametrize(("fps", "nominal"), [(16.05, 24000 / 1001), (28.05, NTSC), (12.5, 25.0), (7.5, 30.0)])
def test_a_list_at_a_rate_that_readers_lack_is_opened_at_a_standard_one(fps: float, nominal: float) -> None:
    film = video(fps=fps)
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
