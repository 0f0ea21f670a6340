"""Tables of metadata: the rows of a file, each with the name of its video and its values by column."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import regex

from kinodex.index.metadata import OF_VIDEOS
from kinodex.index.nesting import parse_json
from kinodex.jobs.errors import UsageError
from kinodex.jobs.metadata.columns import KEYS, NO_COLUMNS, column_name, typed_rows
from kinodex.pipeline.fetch import local_copy
from kinodex.pipeline.source import Source

SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")


def table_rows(table: str) -> list[tuple[str, str, str, Mapping[str, Any]]]:
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
    if clash := [name for name in rows[0] if column_name(name) in OF_VIDEOS and column_name(name) not in NO_COLUMNS]:
        raise UsageError(f"{table}: has a column {clash[0]}, which every library has itself; name it otherwise")
    columns: dict[str, str] = {}
    for name in filter(None, rows[0]):
        if (other := columns.setdefault(column_name(name), name)) != name:
            raise UsageError(
                f"{table}: has the columns {other!r} and {name!r}, which are both {column_name(name)} in SQL"
            )
    typed = typed_rows(dict(enumerate(rows, start=1)), is_text=suffix in (".csv", ".tsv"))
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


def has_columns(manifest: str) -> bool:
    """Return True if a manifest has columns beside those that say which videos it lists; as `read_metadata` raises."""
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
    return bool({column_name(name) for name in names} - NO_COLUMNS - {""})
