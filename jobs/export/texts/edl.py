"""Moments as an edit decision list, CMX 3600: cuts of picture and sound, one after another, for editing programs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from index.rows import VideoRow
from jobs.errors import UsageError
from jobs.export.moments.moment import Moment
from jobs.export.texts.timecode import FrameRate

MOST_EVENTS = 999
REEL_CHARACTERS = 8


def edl_text(
    moments: Sequence[Moment], rate: FrameRate, title: str = "kinodex", timecodes: Mapping[str, str] | None = None
) -> str:
    """Write an event a moment, in the order given, recorded from 01:00:00:00 on.

    Reels are names of 8 letters and digits made of titles; the whole title is in FROM CLIP NAME, the label a comment.
    Source times are those that a player shows, or count from the file's own start time code where `timecodes` has one,
    by video id. Raises UsageError for more than 999 events or times over 24 hours.
    """
    if len(moments) > MOST_EVENTS:
        raise UsageError(f"got {len(moments):,} moments; CMX 3600 numbers {MOST_EVENTS} events: choose fewer, or otio")
    reels = reel_names([each.video for each in moments])
    counting = "DROP FRAME" if rate.drop_frame else "NON-DROP FRAME"
    lines = [f"TITLE: {_line(title)}", f"FCM: {counting}", ""]
    record = _first_hour(rate)
    for number, each in enumerate(moments, start=1):
        start, end = source_frames(each, rate, timecodes or {})
        length = max(end - start, 1)
        frames = (start, start + length, record, record + length)
        times = " ".join(rate.timecode(frame) for frame in frames)
        lines.append(f"{number:03}  {reels[each.video.video_id]:<8} B     C        {times}")
        lines.append(f"* FROM CLIP NAME: {_line(each.video.title)}")
        if each.label:
            lines.append(f"* COMMENT: {_line(each.label)}")
        record += length
    return "\n".join(lines) + "\n"


def source_frames(moment: Moment, rate: FrameRate, timecodes: Mapping[str, str]) -> tuple[int, int]:
    """Numbers of the frames at which a moment begins and ends in its file, counted from its start time code."""
    timecode = timecodes.get(moment.video.video_id)
    if timecode is None:
        return rate.frame(moment.start_s), rate.frame(moment.end_s)
    first, zero_s = rate.number(timecode), moment.video.start_s
    return first + rate.frame(moment.start_s - zero_s), first + rate.frame(moment.end_s - zero_s)


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


def _first_hour(rate: FrameRate) -> int:
    """Number of the frame whose timecode is 01:00:00:00."""
    dropped = 54 * (rate.nominal // 15) if rate.drop_frame else 0  # in every minute but each tenth
    return 3600 * rate.nominal - dropped


def _line(text: str) -> str:
    return " ".join(text.split())
