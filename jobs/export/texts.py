"""Moments as one text each: subtitles and tables.

Each format is one function from moments to a text.
"""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from kinodex.index.terminal_text import visible_lines
from kinodex.index.times import cue_clock
from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.moments import Moment, in_time_order, plain_cell
from kinodex.redaction import redact_uri

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
    return " ".join(text.split()).replace("-->", "→")


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
