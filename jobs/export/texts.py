"""Moments as one text each: subtitles, edit lists, time lines and tables.

Each format is one function from moments to a text.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from kinodex.index.rows import VideoRow
from kinodex.index.terminal_text import visible_lines
from kinodex.index.times import cue_clock
from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.moments import Moment, in_time_order, plain_cell
from kinodex.redaction import redact_uri

# Moments as an edit decision list, CMX 3600: cuts of picture and sound, one after another, for editing programs.

MOST_EVENTS = 999
REEL_CHARACTERS = 8


def edl_text(
    moments: Sequence[Moment], rate: FrameRate, title: str = "kinodex", timecodes: Mapping[str, str] | None = None
) -> str:
    """Write an event a moment, in the order given, recorded from 01:00:00:00 on.

    Source times are those that a player shows, or count from the file's own start time code where `timecodes` has one,
    by video id. Raises UsageError for more than 999 events or times over 24 hours.
    """
    if len(moments) > MOST_EVENTS:
        raise UsageError(f"got {len(moments):,} moments; CMX 3600 numbers {MOST_EVENTS} events: choose fewer, or otio")
    reels = reel_names([each.video for each in moments])
    counting = "DROP FRAME" if rate.drop_frame else "NON-DROP FRAME"
    lines = [f"TITLE: {_line(title)}", f"FCM: {counting}", ""]
    dropped = 54 * (rate.nominal // 15) if rate.drop_frame else 0  # in every minute but each tenth
    record = 3600 * rate.nominal - dropped  # 01:00:00:00
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


def _line(text: str) -> str:
    return " ".join(text.split())


# Names of files: of a video's title and times, without what a file system or a shell would trip over.

MOST_CHARACTERS = 80


def file_stem(title: str) -> str:
    """Make a name of a title: letters, digits and a few signs of any language; "video" if nothing is left."""
    last = re.split(r"[/\\]", title)[-1]
    kept = re.sub(r"[^\w.\- ]+", "_", last).strip(" ._-")
    while len(kept.encode()) > MOST_CHARACTERS:
        kept = kept[:-1]
    return re.sub(r"\s+", "_", kept) or "video"


def time_stem(time_s: float) -> str:
    """Write a time so that names sort by it: 00h01m02.500s."""
    minutes, seconds = divmod(round(max(time_s, 0.0) * 1000), 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}h{minutes:02}m{seconds / 1000:06.3f}s"


def distinct(names: Iterable[str]) -> list[str]:
    """Number names that come again, whatever their case: film, film_2, film_3."""
    taken: set[str] = set()
    made = []
    for name in names:
        count, free = 1, name
        while free.casefold() in taken:
            count += 1
            free = f"{name}_{count}"
        taken.add(free.casefold())
        made.append(free)
    return made


def video_stems(moments: Iterable[Moment]) -> dict[str, str]:
    """Name the files of each video, by its id, by its title, each once."""
    titles = {each.video.video_id: each.video.title for each in moments}
    return dict(zip(titles, distinct(map(file_stem, titles.values())), strict=True))


# Moments as a time line of OpenTimelineIO (its native JSON, .otio): clips one after another, each with a marker.

MEDIA = "DEFAULT_MEDIA"


def otio_text(
    moments: Sequence[Moment], rate: FrameRate, title: str = "kinodex", timecodes: Mapping[str, str] | None = None
) -> str:
    """Write a time line with a track of pictures; source ranges are counted as `edl_text` does."""
    track = _item("Track.1", "moments", kind="Video", children=[_clip(each, rate, timecodes or {}) for each in moments])
    stack = _item("Stack.1", "tracks", children=[track])
    timeline = {"OTIO_SCHEMA": "Timeline.1", "metadata": {}, "name": title, "global_start_time": None, "tracks": stack}
    return json.dumps(timeline, ensure_ascii=False, indent=2) + "\n"


def _clip(moment: Moment, rate: FrameRate, timecodes: Mapping[str, str]) -> dict[str, Any]:
    video = moment.video
    source = _range(moment, rate, timecodes)
    whole = replace(moment, start_s=video.start_s, end_s=video.end_s)
    about = {"video_id": video.video_id, "label": moment.label, "score": moment.score, "source": moment.source}
    reference = {
        "OTIO_SCHEMA": "ExternalReference.1",
        "metadata": {},
        "name": video.title,
        "available_range": _range(whole, rate, timecodes),
        "available_image_bounds": None,
        "target_url": redact_uri(video.uri) if "://" in video.uri else Path(video.uri).absolute().as_uri(),
    }
    marker = {"OTIO_SCHEMA": "Marker.2", "metadata": {}, "name": moment.label, "color": "GREEN"}
    marker |= {"marked_range": source, "comment": moment.label}
    clip = _item("Clip.2", video.title, source_range=source, markers=[marker] if moment.label else [])
    media = {"media_references": {MEDIA: reference}, "active_media_reference_key": MEDIA}
    return clip | {"metadata": {"kinodex": about}} | media


def _item(schema: str, name: str, **fields: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {"metadata": {}, "source_range": None, "effects": [], "markers": [], "enabled": True}
    return {"OTIO_SCHEMA": schema, "name": name} | usual | fields


def _range(moment: Moment, rate: FrameRate, timecodes: Mapping[str, str]) -> dict[str, Any]:
    """A range of frames: at least one."""
    start, end = source_frames(moment, rate, timecodes)
    length = max(end - start, 1)
    return {"OTIO_SCHEMA": "TimeRange.1", "start_time": _time(start, rate), "duration": _time(length, rate)}


def _time(frame: int, rate: FrameRate) -> dict[str, Any]:
    return {"OTIO_SCHEMA": "RationalTime.1", "rate": rate.fps, "value": float(frame)}


# Moments of one video as subtitles or chapters: WebVTT (W3C) and SubRip, on the clock that a player shows.

LEAST_MS = 1


class _Cue(NamedTuple):
    start_ms: int
    end_ms: int
    text: str
    speaker: str | None


def vtt_text(moments: Iterable[Moment]) -> str:
    """Write WebVTT: a cue a moment, in time order; a speaker is its voice. A title names the video."""
    ordered = in_time_order(moments)
    head = f"WEBVTT - {_plain(ordered[0].video.title)}\n" if ordered else "WEBVTT\n"
    cues = []
    for cue in _cues(ordered):
        voice = f"<v {_escaped(_plain(cue.speaker)).replace('&gt;', '')}>" if cue.speaker else ""
        times = f"{cue_clock(cue.start_ms / 1000)} --> {cue_clock(cue.end_ms / 1000)}"
        cues.append(f"\n{times}\n{voice}{_escaped(cue.text)}\n")
    return head + "".join(cues)


def srt_text(moments: Iterable[Moment]) -> str:
    """Write SubRip: numbered cues in time order; a speaker stands before a colon."""
    cues = []
    for number, cue in enumerate(_cues(in_time_order(moments)), start=1):
        text = f"{_plain(cue.speaker)}: {cue.text}" if cue.speaker else cue.text
        times = f"{cue_clock(cue.start_ms / 1000, ',')} --> {cue_clock(cue.end_ms / 1000, ',')}"
        cues.append(f"{number}\n{times}\n{text.replace('-->', '→')}\n\n")
    return "".join(cues)


def _cues(moments: Sequence[Moment]) -> Iterator[_Cue]:
    """Yield the cues that a player shows; before its 0:00 it shows none, and a cue takes a millisecond at least."""
    for each in moments:
        start_ms, end_ms = max(round(1000 * each.start_s), 0), round(1000 * each.end_s)
        if end_ms >= 0:
            text = re.sub(r"\s*\n\s*", "\n", each.label.replace("\r", "\n")).strip()  # an empty line would end the cue
            yield _Cue(start_ms, max(end_ms, start_ms + LEAST_MS), text or f"{each.source}", each.speaker)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _plain(text: str) -> str:
    """One line without what would begin the times of a cue."""
    return _line(text).replace("-->", "→")


# Moments as a table: CSV with a heading, or JSON lines. `kinodex export --ranges` reads both again.

COLUMNS = (
    *("video_id", "title", "uri", "start_s", "end_s", "presentation_start_s", "presentation_end_s"),
    *("label", "score", "source", "speaker"),
)


def csv_text(moments: Iterable[Moment]) -> str:
    """Write a row a moment, with a heading (RFC 4180, in UTF-8)."""
    return table_text(COLUMNS, rows(moments))


def jsonl_text(moments: Iterable[Moment]) -> str:
    """Write an object a moment, a line each, with the keys of `COLUMNS`."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows(moments))


def table_text(columns: Sequence[str], values: Iterable[dict[str, Any]]) -> str:
    """Write rows of these columns as CSV; None is an empty field, and no text is a spreadsheet's formula."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns)
    writer.writeheader()
    writer.writerows({name: plain_cell(value) for name, value in row.items()} for row in values)
    return text.getvalue()


def rows(moments: Iterable[Moment]) -> Iterator[dict[str, Any]]:
    """Yield a moment's values by the names of `COLUMNS`; times in seconds to the microsecond."""
    for each in moments:
        video, times = each.video, (each.start_s, each.end_s, each.presentation_start_s, each.presentation_end_s)
        seconds = (round(time_s, 6) for time_s in times)
        said = each.label, each.score, each.source, each.speaker
        yield dict(zip(COLUMNS, (video.video_id, video.title, redact_uri(video.uri), *seconds, *said), strict=True))


# Write a text that was made to a file or to standard output, and never over something by mistake.

STANDARD_OUTPUT = "-"


def write_text(out: str, text: str, overwrite: bool = False) -> None:
    """Write `text` in UTF-8 to the file `out`, whole or not at all, over another only with `overwrite`; "-" prints."""
    if out == STANDARD_OUTPUT:
        sys.stdout.write(visible_lines(text) if sys.stdout.isatty() else text)
        return
    path = Path(out)
    check_free(path, overwrite)
    partial = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    try:
        partial.write_text(text, encoding="utf-8", newline="")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise UsageError(f"cannot write {path}: {error.strerror}; give another file") from error


def check_free(path: Path, overwrite: bool) -> None:
    """Raise UsageError for a folder, and for a file that is there unless it may be overwritten."""
    if path.is_dir():
        raise UsageError(f"got {path}, which is a folder; give a file, or - for standard output")
    if path.exists() and not overwrite:
        raise UsageError(f"got {path}, which is there already; give another file, or --overwrite")


# SMPTE timecode (ST 12-1): times as hours, minutes, seconds and frames; drop-frame counting for 29.97 and 59.94.

NTSC = (24, 30, 48, 60)
"""Nominal rates whose true rate is often 1000/1001 of it."""
DAY_S = 24 * 3600
TIMECODE = re.compile(r"(\d{2}):(\d{2}):(\d{2})[:;.](\d{1,3})")
USUAL_FPS = 25.0
MOST_FPS = 120
STANDARD = (24000 / 1001, 24.0, 25.0, 30000 / 1001, 30.0, 48000 / 1001, 48.0, 50.0, 60000 / 1001, 60.0)
"""Rates of SMPTE's timecode, all that readers of edit decision lists know."""
SAME = 3e-4
"""Frame rates that differ by less, as a part, are one: files give 29.97 in several ways."""


@dataclass(frozen=True, slots=True)
class FrameRate:
    """A frame rate, and how its frames are counted: drop-frame leaves numbers out so that clocks stay true."""

    fps: float
    drop_frame: bool = False
    in_place_of: float | None = None
    """The rate of the videos, where that is none that timecode can count."""

    @property
    def nominal(self) -> int:
        """Frames that a second of timecode counts."""
        return max(round(self.fps), 1)

    def frame(self, time_s: float) -> int:
        """Number of the frame at a time, from 0."""
        return max(round(time_s * self.fps), 0)

    def timecode(self, frame: int) -> str:
        """Write a frame's number as hh:mm:ss:ff, or hh:mm:ss;ff with drop-frame; raises UsageError after a day."""
        number = self._counted(frame) if self.drop_frame else frame
        seconds, frames = divmod(number, self.nominal)
        if seconds >= DAY_S:
            raise UsageError(f"got a time of {frame / self.fps / 3600:.1f} hours; timecode ends at 24: use otio or csv")
        sign = ";" if self.drop_frame else ":"
        return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{sign}{frames:02}"

    def number(self, timecode: str) -> int:
        """Number of the frame that a timecode stands for; 0 for what is no timecode."""
        found = TIMECODE.fullmatch(timecode.strip())
        if found is None:
            return 0
        hours, minutes, seconds, frames = (int(part) for part in found.groups())
        all_minutes = 60 * hours + minutes
        dropped = (self.nominal // 15) * (all_minutes - all_minutes // 10) if self.drop_frame else 0
        return (60 * all_minutes + seconds) * self.nominal + min(frames, self.nominal - 1) - dropped

    def _counted(self, frame: int) -> int:
        """Skip the first numbers of every minute but each tenth: 2 at 29.97, 4 at 59.94."""
        dropped = self.nominal // 15
        a_minute, ten_minutes = 60 * self.nominal - dropped, 600 * self.nominal - 9 * dropped
        tens, rest = divmod(frame, ten_minutes)
        minutes = max(rest - dropped, 0) // a_minute
        return frame + 9 * dropped * tens + dropped * minutes


def frame_rate(
    videos: Iterable[VideoRow], fps: float | None, drop_frame: bool | None, standard: bool = False
) -> FrameRate:
    """Choose the rate of an edit: the given one, else that of all its videos (25 where they tell none).

    A `standard` one is the least of timecode's that is a multiple of it, else the nearest. Drop-frame is possible for
    29.97 and 59.94 alone, and usual there. Raises UsageError for videos of several rates and for a rate that is none.
    """
    claimed = _common_fps(videos) if fps is None else fps
    if not (math.isfinite(claimed) and 1 <= claimed <= MOST_FPS):
        raise UsageError(f"got {claimed:g} frames a second; give --fps from 1 to {MOST_FPS}")
    ntsc = [each * 1000 / 1001 for each in NTSC if abs(claimed * 1001 / (each * 1000) - 1) < SAME]
    rate = ntsc[0] if ntsc else claimed
    if standard and rate not in STANDARD:
        multiples = [each for each in STANDARD if abs(each / rate / max(round(each / rate), 1) - 1) < SAME]
        rate = next(iter(multiples), min(STANDARD, key=lambda each: abs(each - rate)))
        ntsc = [rate] if rate != round(rate) else []
    can_drop = bool(ntsc) and round(rate) in (30, 60)
    if drop_frame and not can_drop:
        raise UsageError(f"got --drop-frame with {rate:g} frames a second; it is for 29.97 and 59.94")
    in_place_of = claimed if abs(claimed / rate - 1) >= SAME else None
    return FrameRate(rate, can_drop if drop_frame is None else drop_frame, in_place_of)


def _common_fps(videos: Iterable[VideoRow]) -> float:
    rates = sorted({video.fps for video in videos if video.fps})
    if rates and rates[-1] / rates[0] - 1 > SAME:
        shown = ", ".join(f"{rate:g}" for rate in rates[:5])
        raise UsageError(f"the videos have several frame rates ({shown}); give the one of the edit with --fps")
    return rates[0] if rates else USUAL_FPS
