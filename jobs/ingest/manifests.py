"""Lists of videos in a file: CSV, Parquet or JSON lines, a row a video.

Columns: `uri`; if wanted `id` (what its owner calls it), `title`, and `sidecars` (subtitle files: a list, or text
with ";" between them; others beside the video are not looked for, as that would be a listing a row). A URI may be
relative to the manifest. Other columns are left alone, unless their name looks like one of these misspelt.
"""

from __future__ import annotations

import csv
import os
import posixpath
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import Any

from kinodex.index.nesting import parse_json
from kinodex.jobs.errors import UsageError
from kinodex.pipeline.fetch import local_copy
from kinodex.pipeline.filesystems import is_remote
from kinodex.pipeline.source import Source

SUFFIXES = (".csv", ".parquet", ".jsonl")
COLUMNS = ("uri", "id", "title", "sidecars")
ROWS_AT_ONCE = 10_000
MOST_PROBLEMS = 5

Rows = Iterator[tuple[int, Mapping[str, Any]]]


def is_manifest(argument: str) -> bool:
    return PurePosixPath(argument).suffix.lower() in SUFFIXES


def read_manifest(manifest: str) -> list[Source]:
    """Return the sources that a manifest at a path or URI lists, in its order.

    A row that stands there twice counts once.

    Raises UsageError with the numbers of the first wrong rows, and SourceError.
    """
    if not is_manifest(manifest):
        raise UsageError(f"got manifest {manifest}; its name must end in {', '.join(SUFFIXES)}")
    if not is_remote(manifest):
        manifest = os.path.normpath(Path(manifest).expanduser().absolute())
    found: dict[str, Source] = {}
    problems: list[str] = []
    with local_copy(Source(manifest, manifest, is_named=True)) as path:
        for number, row in _rows(path, manifest):
            try:
                source = _source(row, manifest)
                if found.setdefault(source.uri, source) != source:
                    raise ValueError(f"{source.uri} stands in an earlier row with another id, title or sidecars")
            except ValueError as error:
                problems.append(f"row {number}: {error}")
    if problems:
        more = f" (and {len(problems) - MOST_PROBLEMS:,} more)" if len(problems) > MOST_PROBLEMS else ""
        raise UsageError(f"{manifest}: {'; '.join(problems[:MOST_PROBLEMS])}{more}; correct these rows")
    if not found:
        raise UsageError(f"{manifest}: no rows; give a row a video, with at least a uri")
    return list(found.values())


def _rows(path: Path, manifest: str) -> Rows:
    """Yield the rows of a manifest with their numbers, a bounded number of them in memory."""
    from pyarrow import ArrowException

    readers = {".csv": _csv_rows, ".parquet": _parquet_rows, ".jsonl": _json_rows}
    reader = readers[PurePosixPath(manifest).suffix.lower()]
    try:
        yield from enumerate(reader(path, manifest), start=1)
    except (UnicodeDecodeError, csv.Error, ArrowException) as error:
        raise UsageError(f"{manifest}: cannot be read ({' '.join(str(error).split())}); write it again") from error


def _csv_rows(path: Path, manifest: str) -> Iterator[Mapping[str, Any]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file)
        _check_columns(rows.fieldnames or (), manifest)
        yield from rows


def _parquet_rows(path: Path, manifest: str) -> Iterator[Mapping[str, Any]]:
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as file:
        names = file.schema_arrow.names
        _check_columns(names, manifest)
        wanted = [name for name in COLUMNS if name in names]
        for batch in file.iter_batches(ROWS_AT_ONCE, columns=wanted):
            yield from batch.to_pylist()


def _json_rows(path: Path, manifest: str) -> Iterator[Mapping[str, Any]]:
    seen: set[str] = set()
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            try:
                row = parse_json(line)
            except ValueError as error:
                raise UsageError(
                    f"{manifest}: row {number} is not JSON ({error}); correct that line, or remove it"
                ) from error
            if not isinstance(row, dict):
                raise UsageError(f'{manifest}: row {number}: is no object; write {{"uri": ...}}')
            if not row.keys() <= seen:
                _check_columns(row, manifest)
                seen |= row.keys()
            yield row


def _check_columns(names: Any, manifest: str) -> None:
    if "uri" not in names:
        raise UsageError(f"{manifest}: has no column uri, only {', '.join(names) or 'nothing'}; columns: {COLUMNS}")
    for name in set(names) - set(COLUMNS):
        if meant := get_close_matches(str(name).strip().lower(), COLUMNS, n=1, cutoff=0.8):
            raise UsageError(f"{manifest}: got a column {name}; did you mean {meant[0]}? If not, name it otherwise")


def _source(row: Mapping[str, Any], manifest: str) -> Source:
    """Return the source of one row; raises ValueError, which says what is wrong with it."""
    if None in row:  # where csv puts what is more than the header has
        raise ValueError("has more fields than the header")
    uri, id_, title = (_text(row, name) for name in ("uri", "id", "title"))
    if uri is None:
        raise ValueError("has no uri")
    sidecars = row.get("sidecars") or ()
    if isinstance(sidecars, str):
        sidecars = [part for part in map(str.strip, sidecars.split(";")) if part]
    "".join(map(str, sidecars)).encode()
    if not isinstance(sidecars, list | tuple) or not all(isinstance(each, str) and each for each in sidecars):
        raise ValueError(f"got sidecars {sidecars!r}; give a list of URIs, or text with ';' between them")
    stem, _ = posixpath.splitext(posixpath.basename(uri.partition("?")[0] if is_remote(uri) else uri))
    return Source(
        _placed(uri, manifest), title or id_ or stem, tuple(_placed(each, manifest) for each in sidecars), id_
    )


def _text(row: Mapping[str, Any], name: str) -> str | None:
    value = row.get(name)
    if isinstance(value, int) and not isinstance(value, bool) and name == "id":
        return str(value)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"got {name} {value!r}, which is no text")
    (value or "").encode()  # a half of a character, which JSON can hold and no table: a ValueError that says so
    return (value or "").strip() or None


def _placed(uri: str, manifest: str) -> str:
    """Return a URI as it stands, or one relative to the manifest; `file://` is a path."""
    uri = uri.removeprefix("file://")
    if is_remote(uri):
        return uri
    protocol, between, path = manifest.rpartition("://")
    placed = posixpath.normpath(posixpath.join(posixpath.dirname(path), uri))
    return placed if posixpath.isabs(uri) else f"{protocol}{between}{placed}"
