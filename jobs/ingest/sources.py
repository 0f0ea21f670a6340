"""Sources of an ingest: those that a library does not know yet, and lists of videos in files."""

from __future__ import annotations

import csv
import os
import posixpath
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinodex.index.library import Library
from kinodex.index.nesting import parse_json
from kinodex.index.store.filters import equal
from kinodex.jobs.addresses import address_states, latest, videos_by_id
from kinodex.jobs.errors import UsageError
from kinodex.pipeline.errors import SourceError
from kinodex.pipeline.fetch import local_copy
from kinodex.pipeline.filesystems import is_remote
from kinodex.pipeline.source import Source, Stamp
from kinodex.pipeline.source_list import ChosenSources
from kinodex.pipeline.stamps import stamp
from kinodex.redaction import redact_uri

# Videos and sources that a library knows already: tables of millions of rows are read once, in little memory.

MERGE_FROM = 100_000
"""New ids that wait to be sorted in among the others."""

UNKNOWN = 0
_COLUMNS = ["uri", "video_id", "size_bytes", "stamp"]


class IdSet:
    """Ids of videos to look up and to add, in 32 bytes each instead of 150: a sorted array, and a set of the newest."""

    def __init__(self, parts: Iterable[Sequence[str]] = ()) -> None:
        self._sorted = _sorted([np.array(part, np.bytes_) for part in parts if len(part)])
        self._new: set[str] = set()

    def __len__(self) -> int:
        return len(self._sorted) + len(self._new)

    def __contains__(self, video_id: str) -> bool:
        if video_id in self._new:
            return True
        sought = np.bytes_(video_id.encode())
        position = int(np.searchsorted(self._sorted, sought))
        return position < len(self._sorted) and bool(self._sorted[position] == sought)

    def add(self, video_id: str) -> None:
        """Add an id that may be there already."""
        if video_id in self:
            return
        self._new.add(video_id)
        if len(self._new) >= MERGE_FROM:
            self._sorted = _sorted([self._sorted, np.array(list(self._new), np.bytes_)])
            self._new = set()


@dataclass(frozen=True, slots=True)
class NewSources:
    """Sources to identify, with their sizes in bytes (-1: not known), and the number of those left out."""

    sources: Sequence[Source]
    sizes: array[int]
    left_out: int


def complete_ids(library: Library) -> IdSet:
    batches = library.tables.batches("videos", equal("state", "complete"), ["video_id"])
    return IdSet(batch.column("video_id").to_pylist() for batch in batches)


def new_sources(
    library: Library, sources: Sequence[Source], complete: IdSet, check_content: bool, retry_failed: bool
) -> NewSources:
    """Leave out the sources that are unchanged and whose video is complete, or that failed and are not to be retried.

    Each is looked up once for its stamp, which sources elsewhere keep. A further place of a video that is not at its
    own address any more is taken, so that it becomes the address.
    """
    known = array("q", bytes(8 * len(sources))) if check_content else _known(library, sources, complete, retry_failed)
    places, sizes = array("i"), array("q")
    stamps: dict[int, Stamp] = {}
    copies = _copies_of_lost(library, sources, known)
    for place, (source, mark) in enumerate(zip(sources, known, strict=True)):
        now = _stamp(source)
        if now is None or mark == UNKNOWN or mark != _mark(now.size_bytes, now.mark) or place in copies:
            places.append(place)
            sizes.append(-1 if now is None else now.size_bytes)
            if now is not None and is_remote(source.uri) and now is not source.stamp:
                stamps[place] = now
    return NewSources(ChosenSources(sources, places, stamps), sizes, len(sources) - len(places))


def _known(library: Library, sources: Sequence[Source], complete: IdSet, retry_failed: bool) -> array[int]:
    """Marks of the stamps under which the library knows the sources, in their order; `UNKNOWN` for the others."""
    marks = array("q", bytes(8 * len(sources)))
    hashes = np.fromiter((hash(redact_uri(source.uri)) for source in sources), np.int64, len(sources))
    order = np.argsort(hashes).astype(np.int32)
    hashes = hashes[order]
    for batch in library.tables.batches("sources", None, _COLUMNS):
        uris, *others = (batch.column(name).to_pylist() for name in _COLUMNS)
        # An earlier kinodex kept what grants access.
        places = _places(hashes, _hashes(uris))
        for place, video_id, size_bytes, mark in zip(places.tolist(), *others, strict=True):
            if place >= 0 and (video_id in complete if video_id else not retry_failed):
                marks[order[place]] = _mark(size_bytes, mark)
    return marks


def _copies_of_lost(library: Library, sources: Sequence[Source], known: array[int]) -> set[int]:
    """Find the known sources that are copies of videos which are no longer at their own addresses, by their places."""
    batches = library.tables.batches("videos", equal("state", "complete"), ["uri"])
    addresses = np.concatenate([np.empty(0, np.int64), *(_hashes(each.column("uri").to_pylist()) for each in batches)])
    addresses.sort()
    asked = _hashes([source.uri for source in sources])
    copies = np.flatnonzero((_places(addresses, asked) < 0) & (np.array(known, np.int64) != UNKNOWN)).tolist()
    if not copies:
        return set()
    of_uri = latest(library.ingest_log.sources_with("uri", [redact_uri(sources[place].uri) for place in copies]))
    noted = {place: of_uri.get(redact_uri(sources[place].uri)) for place in copies}
    rows = list(videos_by_id(library, [row.video_id for row in noted.values() if row]).values())
    states = zip(rows, address_states(library, rows), strict=True)
    lost = {row.video_id for row, (state, _) in states if state in ("gone", "other")}
    return {place for place, row in noted.items() if row is not None and row.video_id in lost}


def _hashes(uris: Sequence[str]) -> NDArray[np.int64]:
    return np.fromiter((hash(redact_uri(uri)) for uri in uris), np.int64, len(uris))


def _places(ordered: NDArray[np.int64], sought: NDArray[np.int64]) -> NDArray[np.int64]:
    """Places of hashes among ordered ones; -1 for those that are not there."""
    places = np.searchsorted(ordered, sought)
    there = places < len(ordered)
    there[there] = ordered[places[there]] == sought[there]
    return np.where(there, places, -1)


def _mark(size_bytes: int | None, mark: str) -> int:
    """64 bits for a stamp, as for an address: that of two different ones is the same once in 2**64, in one process."""
    return hash((size_bytes, mark)) or 1


def _stamp(source: Source) -> Stamp | None:
    try:
        return stamp(source)
    except SourceError:
        return None  # reading it will meet the same, and say so in a failure row


def _sorted(parts: Sequence[NDArray[np.bytes_]]) -> NDArray[np.bytes_]:
    joined: NDArray[np.bytes_] = np.concatenate(parts) if parts else np.empty(0, "S1")
    joined.sort()
    return joined


# Lists of videos in a file: CSV, Parquet or JSON lines, a row a video.
#
# Columns: `uri`; if wanted `id` (what its owner calls it), `title`, and `sidecars` (subtitle files: a list, or text
# with ";" between them; others beside the video are not looked for, as that would be a listing a row). A URI may be
# relative to the manifest. Other columns are left alone, unless their name looks like one of these misspelt.

SUFFIXES = (".csv", ".parquet", ".jsonl")
COLUMNS = ("uri", "id", "title", "sidecars")
ROWS_AT_ONCE = 10_000
MOST_PROBLEMS = 5

Rows = Iterator[tuple[int, Mapping[str, Any]]]


def is_manifest(argument: str) -> bool:
    return PurePosixPath(argument).suffix.lower() in SUFFIXES


def read_manifest(manifest: str) -> list[Source]:
    """The sources that a manifest at a path or URI lists, in its order; a row that stands there twice counts once.

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
    """The rows of a manifest with their numbers, a bounded number of them in memory."""
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
    """The source of one row; raises ValueError, which says what is wrong with it."""
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
    """A URI as it stands, or one relative to the manifest; `file://` is a path."""
    uri = uri.removeprefix("file://")
    if is_remote(uri):
        return uri
    protocol, between, path = manifest.rpartition("://")
    placed = posixpath.normpath(posixpath.join(posixpath.dirname(path), uri))
    return placed if posixpath.isabs(uri) else f"{protocol}{between}{placed}"
