"""Columns of a library's own, from tables, from names of paths, and from what lies in and beside the files of videos.

    report = set_metadata(library, read_metadata(["cameras.csv"], "{camera}/{day}/{_}"))

A row of a table belongs to the videos that it names: by id, address, path (from the table's own folder, or the end of
one), file name, stem or title, in a column of `KEYS`; or by a regular expression for addresses in a column `pattern`.
"""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

import regex

from kinodex.index.library import Library
from kinodex.index.metadata import OF_VIDEOS, is_column_name
from kinodex.index.nesting import parse_json
from kinodex.index.rows import VideoRow
from kinodex.index.text import composed
from kinodex.jobs.errors import UsageError
from kinodex.pipeline.errors import PipelineError
from kinodex.pipeline.fetch import local_copy
from kinodex.pipeline.filesystems import is_remote
from kinodex.pipeline.source import Source
from kinodex.pipeline.sources import download_info
from kinodex.redaction import redact_uri

SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")
PATTERN_S = 2.0
"""Seconds that a pattern of a table may look at a path."""
KEYS = ("pattern", "uri", "path", "file", "filename", "name", "video", "video_id", "id", "title", "stem")
"""Columns that may name the video of a row: of several that are there, the first."""
NO_COLUMNS = {*KEYS, "sidecars", "_"}
"""Names that no column gets: they say which video is meant, or are a manifest's."""


@dataclass(frozen=True, slots=True)
class Given:
    """Metadata before it meets a library: rows of tables, each with the place it stands at, and a pattern of paths."""

    rows: tuple[tuple[str, str, str, Mapping[str, Any]], ...] = ()
    """Place (file and row), kind of key ("pattern" or another), key, values by column."""
    pattern: re.Pattern[str] | None = None
    folders: tuple[Path, ...] = ()
    """Of the tables: paths may count from there."""

    def __bool__(self) -> bool:
        return bool(self.rows) or self.pattern is not None

    def check(self, library: Library) -> None:
        """Raise MetadataConflict, which names two rows, where values of tables do not fit the library's columns."""
        library.metadata.check({place: values for place, _, _, values in self.rows})


@dataclass(frozen=True, slots=True)
class MetadataReport:
    """Outcome: videos that were set, the library's columns with their types, and rows that fit no video or several."""

    videos: int
    columns: Mapping[str, str]
    rows: int = 0
    unmatched: tuple[str, ...] = ()
    ambiguous: tuple[str, ...] = ()
    problems: tuple[str, ...] = field(default=())
    """Files of videos that could not be read for their tags."""


def read_metadata(tables: Sequence[str | Path] = (), path_pattern: str | None = None) -> Given:
    """Read tables and a pattern of paths; raises UsageError or SourceError for one that cannot be read."""
    rows = [row for table in tables for row in _table_rows(str(table))]
    folders = tuple(
        dict.fromkeys(Path(table).expanduser().absolute().parent for table in tables if not is_remote(str(table)))
    )
    return Given(tuple(rows), None if path_pattern is None else _compiled(path_pattern), folders)


def set_metadata(
    library: Library, given: Given, videos: Sequence[VideoRow] | None = None, *, from_files: bool = False
) -> MetadataReport:
    """Set the columns of videos, or of all; nothing is set where a value does not fit its column (MetadataConflict).

    Of a column that several name, tables count more than paths, and these more than files, whose headers and
    `.info.json` are read with `from_files`.
    """
    rows = library.videos() if videos is None else list(videos)
    values: dict[str, dict[str, Any]] = defaultdict(dict)
    problems: list[str] = []
    if from_files:
        for row in rows:
            try:
                values[row.video_id] |= tags_of_file(row.uri)
            except PipelineError as error:
                problems.append(str(error))
    if given.pattern is not None:
        found = {row.video_id: match.groupdict() for row in rows if (match := given.pattern.search(_path(row.uri)))}
        for video_id, groups in _typed(found).items():
            values[video_id] |= groups
    fitted, unmatched, ambiguous = _fitted(given, rows)
    for video_id, row_values in fitted.items():
        values[video_id] |= row_values
    written = library.metadata.write(values, {row.video_id: row.title for row in rows})
    columns = {name: str(kind) for name, kind in library.metadata.columns().items()}
    return MetadataReport(written, columns, len(given.rows), unmatched, ambiguous, tuple(problems))


# Tables.


def _table_rows(table: str) -> list[tuple[str, str, str, Mapping[str, Any]]]:
    suffix = PurePosixPath(table).suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(f"got metadata {table}; its name must end in {', '.join(SUFFIXES)}")
    readers: Mapping[str, Callable[[Path], list[dict[str, Any]]]] = {
        ".csv": _csv_rows,
        ".tsv": partial(_csv_rows, delimiter="\t"),
        ".jsonl": _json_rows,
        ".parquet": _parquet_rows,
    }
    with local_copy(Source(table, table, is_named=True)) as path:
        try:
            rows = readers[suffix](path)
        except (ValueError, csv.Error) as error:  # pyarrow's and JSON's errors are ValueErrors
            raise UsageError(f"{table}: cannot be read ({' '.join(str(error).split())}); write it again") from error
    if not rows:
        raise UsageError(f"{table}: no rows; give a row a video")
    key = next((name for name in KEYS if name in rows[0]), None)
    if key is None:
        raise UsageError(
            f"{table}: has the columns {', '.join(rows[0])}, none of which names videos; call one of them one of "
            f"{', '.join(KEYS)}"
        )
    if key == "pattern":
        for number, row in enumerate(rows, start=1):
            try:
                regex.compile(str(row[key]))
            except regex.error as error:
                what = f"got the pattern {str(row[key])!r}, which is no regular expression ({error})"
                raise UsageError(f"{table}: row {number}: {what}") from error
    if clash := [name for name in rows[0] if _plain(name) in OF_VIDEOS and _plain(name) not in NO_COLUMNS]:
        raise UsageError(f"{table}: has a column {clash[0]}, which every library has itself; name it otherwise")
    columns: dict[str, str] = {}
    for name in filter(None, rows[0]):
        if (other := columns.setdefault(_plain(name), name)) != name:
            raise UsageError(f"{table}: has the columns {other!r} and {name!r}, which are both {_plain(name)} in SQL")
    typed = _typed(dict(enumerate(rows, start=1)), is_text=suffix in (".csv", ".tsv"))
    return [
        (f"{table}: row {n}", key, str(rows[n - 1][key]), values) for n, values in typed.items() if rows[n - 1][key]
    ]


def _csv_rows(path: Path, delimiter: str = ",") -> list[dict[str, Any]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        table = csv.DictReader(file, delimiter=delimiter, strict=True)
        if doubled := [name for name, count in Counter(table.fieldnames or ()).items() if name and count > 1]:
            raise ValueError(f"it has two columns {doubled[0]!r}")
        return list(table)


def _json_rows(path: Path) -> list[dict[str, Any]]:
    lines = filter(str.strip, path.read_text(encoding="utf-8").splitlines())
    rows = [parse_json(line, parse_constant=_no_number) for line in lines]
    if wrong := next((n for n, row in enumerate(rows, start=1) if not isinstance(row, dict)), None):
        raise ValueError(f"row {wrong} is no object")
    names = list(dict.fromkeys(name for row in rows for name in row))
    return [{name: row.get(name) for name in names} for row in rows]


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON; leave it out")


def _parquet_rows(path: Path) -> list[dict[str, Any]]:
    from pyarrow.parquet import read_table

    rows: list[dict[str, Any]] = read_table(path).to_pylist()
    return rows


def _typed(rows: Mapping[Any, Mapping[str, Any]], is_text: bool = True) -> dict[Any, dict[str, Any]]:
    """Rows with columns under names that SQL has; texts, or else times alone, are read as what all of a column are."""
    names = list(
        dict.fromkeys(name for row in rows.values() for name in row if name and _plain(name) not in NO_COLUMNS)
    )
    columns = {name: _column([row.get(name) for row in rows.values()], is_text) for name in names}
    return {
        key: {_plain(name): columns[name][number] for name in names if columns[name][number] is not None}
        for number, key in enumerate(rows)
    }


def _plain(name: str) -> str:
    """A name as a column's: "Recorded at" is recorded_at."""
    letters = composed(str(name).strip()).lower()
    plain = re.sub(r"\W+", "_", composed(letters)).strip("_")
    return plain if is_column_name(plain) or not plain else f"_{plain}"


def _column(values: Sequence[Any], is_text: bool) -> list[Any]:
    """The values of a column: texts that are all numbers, truth values, days or times are read as such."""
    texts = [value.strip() for value in values if isinstance(value, str) and value.strip()]
    plain = [None if isinstance(value, str) and not value.strip() else value for value in values]
    if not texts or len(texts) < sum(value is not None for value in plain):
        return plain
    for read in (_whole, _number, _truth, date.fromisoformat, _time) if is_text else (date.fromisoformat, _time):
        with suppress(ValueError):
            return [None if value is None else read(value.strip()) for value in plain]
    return plain


def _whole(text: str) -> int:
    if not re.fullmatch(r"[+-]?(0|[1-9]\d{0,17})", text):  # 007 is a name
        raise ValueError(text)
    return int(text)


def _number(text: str) -> float:
    if re.match(r"[+-]?0\d", text) or not re.match(r"[+-]?[.\d]", text):
        raise ValueError(text)
    return float(text)


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def _time(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def has_columns(manifest: str) -> bool:
    """True if a manifest has columns beside those that say which videos it lists; as `read_metadata` raises."""
    with local_copy(Source(manifest, manifest, is_named=True)) as path:
        try:
            match PurePosixPath(manifest).suffix.lower():
                case ".parquet":
                    from pyarrow.parquet import read_schema

                    names = read_schema(path).names
                case ".jsonl":
                    with path.open(encoding="utf-8") as file:
                        first = parse_json(next(filter(str.strip, file), "{}"))
                        names = list(first) if isinstance(first, dict) else []
                case _:
                    with path.open(encoding="utf-8-sig", newline="") as file:
                        names = next(csv.reader(file), [])
        except (ValueError, csv.Error):  # reading it says what is wrong
            return False
    return bool({_plain(name) for name in names} - NO_COLUMNS - {""})


# The videos of rows.


def _fitted(
    given: Given, videos: Sequence[VideoRow]
) -> tuple[Mapping[str, Mapping[str, Any]], tuple[str, ...], tuple[str, ...]]:
    """The values of each video by the rows that name it, of which the last counts; rows that fit none, or several."""
    named: dict[str, list[str]] = defaultdict(list)
    paths = {video.video_id: composed(_path(video.uri)) for video in videos}
    for video in videos:
        path = PurePosixPath(paths[video.video_id])
        for name in set(map(composed, (video.video_id, video.uri, str(path), path.name, path.stem, video.title))):
            named[name].append(video.video_id)
    values: dict[str, dict[str, Any]] = defaultdict(dict)
    unmatched: list[str] = []
    ambiguous: list[str] = []
    for place, kind, key, row in given.rows:
        if kind == "pattern":
            ids = [id_ for id_, path in paths.items() if _matches(place, key, path)]
        else:
            ids = list(_ids(key, given.folders, named, paths))
            if len(ids) > 1:
                ambiguous.append(f"{place} ({key!r} is the name of {len(ids)} videos)")
                continue
        if not ids:
            unmatched.append(f"{place} ({key!r})")
        for video_id in ids:
            values[video_id] |= row
    return values, tuple(unmatched), tuple(ambiguous)


def _matches(place: str, pattern: str, path: str) -> bool:
    """Look for a pattern of a table in a path; raises UsageError for one that tries ever more ways to match."""
    try:
        return regex.search(composed(pattern), path, timeout=PATTERN_S) is not None
    except TimeoutError as error:
        what = f"got the pattern {pattern!r}, which does not come to an end within {PATTERN_S:g} s at {path}"
        raise UsageError(f"{place}: {what}; leave out repetitions of repetitions") from error


def _ids(
    key: str, folders: Iterable[Path], named: Mapping[str, Sequence[str]], paths: Mapping[str, str]
) -> Sequence[str]:
    """The videos of a name: by it as it stands, from a table's folder, or as the end of their path."""
    plain = composed(redact_uri(key.removeprefix("file://")))
    for name in (plain, *(composed(str((folder / plain).resolve())) for folder in folders if not is_remote(plain))):
        if name in named:
            return named[name]
    last = PurePosixPath(plain).name
    return [id_ for id_ in named.get(last, ()) if paths[id_].endswith(f"/{plain}")] if "/" in plain else ()


def _path(uri: str) -> str:
    return unquote(urlsplit(uri).path) if is_remote(uri) else uri


# The pattern of paths.


def _compiled(pattern: str) -> re.Pattern[str]:
    """The regular expression of `{camera}/{day}/{_}`, for the end of a path without its suffix; raises UsageError."""
    parts = re.split(r"\{(\w+)\}", pattern)
    names = [name for name in parts[1::2] if name != "_"]
    if not names:
        raise UsageError(f"got --path-pattern {pattern}; name the parts of a path, such as {{camera}}/{{day}}/{{_}}")
    for name in names:
        if not is_column_name(name) or name in OF_VIDEOS or names.count(name) > 1:
            raise UsageError(f"got --path-pattern {pattern}; {name} can be no column: give small letters, once each")
    pieces = [
        (r"([^/]+?)" if part == "_" else rf"(?P<{part}>[^/]+?)") if number % 2 else re.escape(part)
        for number, part in enumerate(parts)
    ]
    return re.compile(rf"(?:^|/){''.join(pieces).lstrip('/')}(?:\.\w+)?$")


# Files of videos.


def tags_of_file(uri: str) -> dict[str, Any]:
    """The columns in the header of a video's file and in the `.info.json` beside it; raises a PipelineError."""
    from kinodex.pipeline.decoding.stream import choose_stream, file_tags
    from kinodex.pipeline.media.source import open_source

    with open_source(uri) as container:
        return file_tags(container, choose_stream(container, uri)) | download_info(uri)
