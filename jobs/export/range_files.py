"""Ranges of videos from a file: CSV with a heading, or JSON lines, such as `kinodex export csv` and `jsonl` write."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from kinodex.index.errors import QueryError, UnknownVideo
from kinodex.index.library import LibraryReader
from kinodex.index.named_files import open_named
from kinodex.index.nesting import parse_json
from kinodex.index.times import parse_time
from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.moments import Moment
from kinodex.jobs.export.spreadsheet_cells import own_text

NAMES = {
    "video": ("video_id", "video", "title", "uri", "file"),
    "start_s": ("start_s", "start", "from"),
    "end_s": ("end_s", "end", "to"),
    "label": ("label", "text"),
    "score": ("score",),
    "source": ("source",),
}
"""Columns, and the names under which they are read, the first that a row has; other columns are left out."""


def read_ranges(path: Path, library: LibraryReader) -> list[Moment]:
    """Read the ranges of a .csv, or else of JSON lines, in the order of the file.

    Times are those that a player shows: seconds, or clocks such as 1:02:03.5. Raises UsageError with the line.
    """
    moments = list(_of_rows(_rows(path), lambda line: f"{path}, line {line}", library))
    if not moments:
        raise UsageError(f"got {path}, which holds no range; give rows with the columns video, start_s and end_s")
    return moments


def ranges_of_sql(sql: str, library: LibraryReader) -> list[Moment]:
    """Return the moments that the rows of a SELECT name, in their order."""
    from kinodex.index.sql import query

    rows = query(library, sql).to_arrow_table().to_pylist()
    return list(_of_rows(enumerate(rows, start=1), lambda row: f"row {row} of --from-sql", library))


def _of_rows(
    rows: Iterable[tuple[int, Mapping[str, Any]]], place: Callable[[int], str], library: LibraryReader
) -> Iterator[Moment]:
    """Make moments of rows with columns of `NAMES`; raises UsageError with the place of a row that names none."""
    find = lru_cache(maxsize=None)(partial(library.video, whole_name=True))
    for number, row in rows:
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
            yield Moment(find(str(values["video"])), start_s, end_s, str(values["label"] or ""), score)
        except (ValueError, UnknownVideo) as error:
            raise UsageError(f"{place(number)}: {error}") from error


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the rows with the numbers of their lines."""
    try:
        with io.TextIOWrapper(open_named(path), encoding="utf-8-sig", newline="") as file:
            if path.suffix.lower() == ".csv":
                reader = csv.DictReader(file)
                for row in reader:
                    yield reader.line_num, {(key or "").strip().lower(): own_text(value) for key, value in row.items()}
                return
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, _object(line, path, number)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"cannot read the ranges in {path}: {error}; give a .csv or .jsonl file in UTF-8") from error


def _object(line: str, path: Path, number: int) -> Mapping[str, Any]:
    try:
        value = parse_json(line)
    except ValueError as error:
        raise UsageError(
            f"{path}, line {number}: is no JSON ({error}); give an object a line, or a .csv file"
        ) from error
    if not isinstance(value, dict):
        raise UsageError(f"{path}, line {number}: is no object; give video, start_s and end_s")
    return value


def _time_s(value: object, name: str) -> float:
    """Read a time of a row."""
    if value is None:
        raise ValueError(f"it has no {name}")
    try:
        return parse_time(str(value))
    except QueryError as error:
        raise ValueError(f"{name}: {error}") from None
