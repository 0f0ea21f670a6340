"""Files of rows, in the forms in which they are published."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.items import BadRow
from kinodex.jobs.eval.rows import Raw
from kinodex.jobs.json_files import parse_json

GZIP = b"\x1f\x8b"


def json_file(path: Path) -> Any:
    """Parse a JSON file; raise `UsageError` if it holds something else."""
    try:
        return parse_json(_text(path))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: {error}; give the file as it is published") from error


def json_rows(path: Path) -> Iterator[Raw]:
    """Read the objects of a JSON array, or of a file with one object a line; file names do not say which."""
    text = _text(path)
    if not text.lstrip().startswith("["):
        yield from json_lines(path)
        return
    for number, row in enumerate(json_file(path), start=1):
        yield f"row {number}", row


def json_lines(path: Path) -> Iterator[Raw]:
    """Read one object a line, by line number."""
    for number, line in text_lines(path):
        try:
            row = parse_json(line)
        except (ValueError, RecursionError) as error:
            row = BadRow(f"not JSON: {error}")
        yield f"line {number}", row


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Read the lines that hold anything, by number. (`str.splitlines` also splits at U+2028, which texts may hold.)"""
    for number, line in enumerate(_text(path).split("\n"), start=1):
        if line.strip():
            yield number, line


def csv_rows(path: Path, delimiter: str = ",") -> Iterator[Raw]:
    """Read objects of strings by the names in the first row, each with the number of its last line."""
    rows = _csv(path, delimiter)
    _, names = next(rows, (0, []))
    if isinstance(names, BadRow) or (repeated := [name for name, count in Counter(names).items() if count > 1]):
        problem = names if isinstance(names, BadRow) else f"two columns are called {repeated[0]!r}"
        raise UsageError(f"{path}: {problem}; give the file as it is published")
    for line, row in rows:
        # A comma too many or too few moves the fields after it, which may not show in any of them.
        if not isinstance(row, BadRow) and len(row) != len(names):
            row = BadRow(f"got {len(row)} fields; there are {len(names)}")
        yield f"line {line}", row if isinstance(row, BadRow) else dict(zip(names, row, strict=True))


def _csv(path: Path, delimiter: str = ",") -> Iterator[tuple[int, list[str] | BadRow]]:
    """Read the rows of a CSV file that hold anything, each with the number of its last line.

    A row over several lines is read strictly too: a quotation mark that is not closed would swallow the rows between.
    """
    lines = re.findall(r"[^\n]*\n|[^\n]+", _text(path))  # `str.splitlines` also splits at U+2028
    reader = csv.reader(lines, delimiter=delimiter)
    while True:
        first = reader.line_num
        try:
            row = next(reader, None)
            if row is not None and reader.line_num > first + 1:
                list(csv.reader(lines[first : reader.line_num], delimiter=delimiter, strict=True))
        except csv.Error as error:
            place = f"lines {first + 1} to {reader.line_num}" if reader.line_num > first + 1 else "the line"
            yield reader.line_num, BadRow(f"{place} cannot be read ({error}); is a quotation mark not closed?")
            continue
        if row is None:
            return
        if row:
            yield reader.line_num, row


def tsv_rows(path: Path) -> Iterator[Raw]:
    """Read objects of strings as `csv_rows` does, from columns that tabs divide."""
    return csv_rows(path, "\t")


def parquet_rows(path: Path) -> Iterator[Raw]:
    """Read the rows of a parquet file, counted from 1."""
    import pyarrow.parquet as pq
    from pyarrow import ArrowException

    try:
        rows = pq.read_table(path).to_pylist()
    except (OSError, ArrowException, ValueError, OverflowError) as error:
        raise UsageError(
            f"{path} is not a parquet file: {error}; give the annotation file as it is published"
        ) from error
    for number, row in enumerate(rows, start=1):
        yield f"row {number}", row


def csv_table(path: Path) -> list[list[str]]:
    """Read all rows of a CSV file as they are; raise `UsageError` if one cannot be read."""
    found = []
    for line, row in _csv(path):
        if isinstance(row, BadRow):
            raise UsageError(f"{path}, line {line}: {row}")
        found.append(row)
    return found


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        if data.startswith(GZIP):
            raise UsageError(f"{path} is compressed; unpack it first: gunzip, or 7z x")
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}; give the annotation file as it is published") from error
