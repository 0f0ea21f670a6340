"""Ranges of videos from a file: CSV with a heading, or JSON lines, such as `kinodex export csv` and `jsonl` write."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from index.errors import UnknownVideo
from index.library_reader import LibraryReader
from jobs.errors import UsageError
from jobs.export.moments.moment import Moment

NAMES = {
    "video": ("video_id", "video", "title", "uri", "file"),
    "start_s": ("start_s", "start", "from"),
    "end_s": ("end_s", "end", "to"),
    "label": ("label", "text"),
    "score": ("score",),
    "source": ("source",),
}
"""Columns, and the names under which they are read, the first that a row has; other columns are left out."""
FORMULA = re.compile(r"'*[=+\-@\t\r]")
"""Beginnings of a text that a spreadsheet would compute, or that already stands behind an apostrophe for that."""
CLOCK = re.compile(r"(?:(\d+):)?(\d{1,2}):(\d{1,2}(?:\.\d+)?)")


def read_ranges(path: Path, library: LibraryReader) -> list[Moment]:
    """Read the ranges of a .csv, or else of JSON lines, in the order of the file.

    Times are those that a player shows: seconds, or clocks such as 1:02:03.5. Raises UsageError, with its line,
    for one that cannot be read, lacks a column, ends before it begins, or names no video of the library.
    """
    find = lru_cache(maxsize=None)(partial(library.video, whole_name=True))
    moments = []
    for line, row in _rows(path):
        try:
            values = {
                key: next((row[it] for it in names if row.get(it) not in (None, "")), None)
                for key, names in NAMES.items()
            }
            if values["video"] is None:
                raise ValueError("it names no video; give a column video, with an id, a title or a file name")
            start_s, end_s = _time_s(values["start_s"], "start_s"), _time_s(values["end_s"], "end_s")
            if end_s < start_s:
                raise ValueError(f"it ends at {end_s:g} s, before it begins at {start_s:g} s")
            score = None if values["score"] is None else float(values["score"])
            str(values["label"] or "").encode()  # half a surrogate pair, which JSON can hold, is no text
            moment = Moment(find(str(values["video"])), start_s, end_s, str(values["label"] or ""), score)
            moments.append(moment)
        except (ValueError, UnknownVideo) as error:
            raise UsageError(f"{path}, line {line}: {error}") from error
    if not moments:
        raise UsageError(f"got {path}, which holds no range; give rows with the columns video, start_s and end_s")
    return moments


def plain_cell(value: object) -> object:
    """A value as a cell of CSV: a text that a spreadsheet would take for a formula stands behind an apostrophe."""
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) else value


def _own_text(value: object) -> object:
    """The text of a cell that `plain_cell` wrote."""
    return value[1:] if isinstance(value, str) and value[:1] == "'" and FORMULA.match(value[1:]) else value


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the rows with the numbers of their lines."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            if path.suffix.lower() == ".csv":
                reader = csv.DictReader(file)
                for row in reader:
                    yield reader.line_num, {(key or "").strip().lower(): _own_text(value) for key, value in row.items()}
                return
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, _object(line, path, number)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"cannot read the ranges in {path}: {error}; give a .csv or .jsonl file in UTF-8") from error


def _object(line: str, path: Path, number: int) -> Mapping[str, Any]:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise UsageError(
            f"{path}, line {number}: is no JSON ({error}); give an object a line, or a .csv file"
        ) from error
    if not isinstance(value, dict):
        raise UsageError(f"{path}, line {number}: is no object; give video, start_s and end_s")
    return value


def _time_s(value: object, name: str) -> float:
    """Read a time: seconds, or a clock with colons."""
    if value is None:
        raise ValueError(f"it has no {name}")
    text = str(value).strip()
    clock = CLOCK.fullmatch(text)
    try:
        hours, minutes, seconds = (float(part or 0) for part in clock.groups()) if clock else (0.0, 0.0, float(text))
    except ValueError:
        raise ValueError(f"got {name} {text!r}; give seconds, or a clock such as 1:02:03.5") from None
    time_s = 3600 * hours + 60 * minutes + seconds
    if not math.isfinite(time_s):
        raise ValueError(f"got {name} {text!r}; give seconds")
    return time_s
