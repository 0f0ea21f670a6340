"""Time lines, opened again by OpenTimelineIO."""

from __future__ import annotations

import opentimelineio as otio

from kinodex.jobs.export.texts import FrameRate, otio_text
from tests.support.libraries.moments import moments, video


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


def test_ranges_count_from_the_start_time_code_of_the_file() -> None:
    film = video()
    text = otio_text(moments((2.0, 3.0, ""), of=film), FrameRate(25.0), timecodes={film.video_id: "10:00:00:00"})
    (clip,) = otio.adapters.read_from_string(text, "otio_json").find_clips()
    assert clip.source_range.start_time.to_timecode(25.0) == "10:00:02:00"
    assert clip.media_reference.available_range.start_time.to_timecode(25.0) == "10:00:00:00"
