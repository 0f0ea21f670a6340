"""Moments as an edit: a time line of OpenTimelineIO, written as its own JSON or as an edit decision list.

Times are frames at the rate of the edit. Source times are those that a player shows, or count from the start time code
of the file where it has one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kinodex.index.rows import VideoRow
from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.frame_rate import FrameRate
from kinodex.jobs.export.moments import Moment
from kinodex.redaction import redact_uri

MOST_EVENTS = 999
REEL_CHARACTERS = 8
ONE_HOUR = "01:00:00:00"
"""Time code at which an edit decision list begins to record."""
PICTURES_ALONE = re.compile(r"^(\d{3}  .{8} )V(     C )", re.MULTILINE)
"""The channel of an event as the adapter writes it, which knows tracks of pictures; B cuts the sound with them."""


def otio_text(
    moments: Sequence[Moment], rate: FrameRate, title: str = "kinodex", timecodes: Mapping[str, str] | None = None
) -> str:
    """Write a time line in OpenTimelineIO's own JSON, a clip a moment, in the order given."""
    import opentimelineio as otio

    text: str = otio.adapters.write_to_string(_time_line(moments, rate, title, timecodes or {}), "otio_json", indent=2)
    return text + "\n"


def edl_text(
    moments: Sequence[Moment], rate: FrameRate, title: str = "kinodex", timecodes: Mapping[str, str] | None = None
) -> str:
    """Write an edit decision list (CMX 3600), an event a moment, in the order given, recorded from 01:00:00:00 on.

    Raises UsageError for more than 999 events or times over 24 hours.
    """
    import opentimelineio as otio

    if len(moments) > MOST_EVENTS:
        raise UsageError(f"got {len(moments):,} moments; CMX 3600 numbers {MOST_EVENTS} events: choose fewer, or otio")
    line = _time_line(moments, rate, title, timecodes or {}, count_fps=rate.counted_fps)
    (track,) = line.tracks
    hour = otio.opentime.from_timecode(ONE_HOUR.replace(":", ";") if rate.drop_frame else ONE_HOUR, rate.counted_fps)
    track.insert(0, otio.schema.Gap(duration=hour))
    last = max([track.duration(), *(clip.source_range.end_time_exclusive() for clip in line.find_clips())])
    if last.value > 24 * hour.value:
        raise UsageError(f"got a time of {last.value / hour.value:.1f} hours; timecode ends at 24: use otio or csv")
    text = otio.adapters.write_to_string(line, "cmx_3600", rate=rate.counted_fps)
    head, _, events = text.partition("\n")
    counting = "DROP FRAME" if rate.drop_frame else "NON-DROP FRAME"
    with_sound = PICTURES_ALONE.sub(r"\1B\2", events)
    return f"{head}\nFCM: {counting}\n{with_sound}"


def _time_line(
    moments: Sequence[Moment], rate: FrameRate, title: str, timecodes: Mapping[str, str], count_fps: float | None = None
) -> Any:
    """Make a time line with one track of pictures; its times are counted at `count_fps`, if not at the rate itself."""
    import opentimelineio as otio

    reels = reel_names([each.video for each in moments])
    track = otio.schema.Track("moments", kind=otio.schema.TrackKind.Video)
    for each in moments:
        track.append(_clip(each, rate, timecodes, reels[each.video.video_id], count_fps or rate.fps))
    line = otio.schema.Timeline(_line(title))
    line.tracks.append(track)
    return line


def _clip(moment: Moment, rate: FrameRate, timecodes: Mapping[str, str], reel: str, count_fps: float) -> Any:
    from opentimelineio import schema

    video, label = moment.video, _line(moment.label)
    source = _range(moment, rate, timecodes, count_fps)
    whole = _range(replace(moment, start_s=video.start_s, end_s=video.end_s), rate, timecodes, count_fps)
    url = redact_uri(video.uri) if "://" in video.uri else Path(video.uri).absolute().as_uri()
    score = None if moment.score is None else float(moment.score)
    about = {"video_id": video.video_id, "label": moment.label, "score": score, "source": f"{moment.source}"}
    clip = schema.Clip(
        _line(video.title),
        media_reference=schema.ExternalReference(_line(url), whole),
        source_range=source,
        metadata={"kinodex": about, "cmx_3600": {"reel": reel, "comments": [f"COMMENT: {label}"] if label else []}},
    )
    if label:
        clip.markers.append(schema.Marker(label, source, "GREEN", comment=moment.label))
    return clip


def _range(moment: Moment, rate: FrameRate, timecodes: Mapping[str, str], count_fps: float) -> Any:
    """Return the frames of a moment in its file, counted from its start time code; at least one."""
    from opentimelineio.opentime import RationalTime, TimeRange

    timecode, first, zero_s = timecodes.get(moment.video.video_id), 0, 0.0
    if timecode is not None:
        first, zero_s = rate.number(timecode), moment.video.start_s
    start, end = (first + rate.frame(time_s - zero_s) for time_s in (moment.start_s, moment.end_s))
    return TimeRange(RationalTime(start, count_fps), RationalTime(max(end - start, 1), count_fps))


def _line(text: str) -> str:
    return " ".join(text.split())


def reel_names(videos: Sequence[VideoRow]) -> dict[str, str]:
    """Make a reel name of each video's title, by id: 8 capital letters and digits, each once."""
    names: dict[str, str] = {}
    for video in videos:
        if video.video_id in names:
            continue
        plain = re.sub(r"[^A-Z0-9]", "", video.title.upper())[:REEL_CHARACTERS] or "REEL"
        name, count = plain, 1
        while name in names.values():
            count += 1
            name = plain[: REEL_CHARACTERS - len(str(count))] + str(count)
        names[video.video_id] = name
    return names
