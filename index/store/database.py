"""A LanceDB database: opened at its place, its tables read and written, its errors turned into one clear line.

There is a table of vectors for each embedding space, beside the one that ingest fills. A space is identified by its
fingerprint's digest; the table's metadata holds the whole fingerprint. A video is visible in another space once its
addition of stage "vectors" is complete.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import lancedb
import pyarrow as pa
from lancedb.expr import Expr
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from index.embedding.model_source import absolute_name
from index.embedding.space import Fingerprint
from index.errors import NotALibrary, SpaceMismatch, StorageError, StorageFull
from index.foreign_errors import Meaning, meanings_of
from index.store.schema import SPACE_KEY, VECTORS_PREFIX

OUR_TABLES = (
    "frames", VECTORS_PREFIX, "segments", "captions", "detections", "transcript", "additions",
    "failures", "sources", "runs", "leases", "clips", "videos",
)  # fmt: skip
RUST_SOURCE = re.compile(r",? (at )?/\S+\.rs:\d+:\d+.*")
CODE = re.compile(r"<Code>(\w+)</Code>")
ADDRESS = re.compile(r"uri: Some\((\w+://[^/?)]+)")
COMMIT_ATTEMPTS = 8
MAX_PAUSE_S = 5.0
ROWS_PER_BATCH = 65_536

Result = TypeVar("Result")


def place(uri: str) -> str:
    """Turn a URI into the form that LanceDB takes; a plain path becomes absolute, since workers may run elsewhere."""
    if not uri.strip():
        raise NotALibrary("got an empty name for a library; give its folder or URI")
    plain = uri.removeprefix("file://")
    return plain if "://" in plain else str(Path(plain).expanduser().absolute())


def is_local(uri: str) -> bool:
    """True if a library lives in a folder of this machine."""
    return "://" not in uri


def connect(uri: str) -> Any:
    """Open a LanceDB connection whose tables always show the newest state."""
    with storage_errors(uri):
        return lancedb.connect(uri, read_consistency_interval=timedelta(0))


def table_names(database: Any, uri: str) -> list[str]:
    """List the tables of a database, page by page."""
    names: list[str] = []
    page = None
    with storage_errors(uri):
        while True:
            found = database.list_tables(page_token=page)
            names += found.tables
            page = found.page_token
            if not page:
                return names


def check_vacant(uri: str) -> None:
    """Raise NotALibrary if a local place holds anything but the files of an interrupted creation."""
    if not is_local(uri) or not Path(uri).exists():
        return
    if not Path(uri).is_dir():
        raise NotALibrary(f"got {uri}, which is a file; a library is a folder: give one that is new or empty")
    foreign = sorted(entry.name for entry in Path(uri).iterdir() if not _is_ours(entry.name))
    if foreign:
        raise NotALibrary(f"got {uri}, which holds other things ({foreign[0]}); give a folder that is new or empty")


def _is_ours(name: str) -> bool:
    return name.startswith(".") or name == "towers" or (name.endswith(".lance") and name.startswith(OUR_TABLES))


@contextmanager
def storage_errors(uri: str) -> Iterator[None]:
    """Turn errors of LanceDB and the system about storage into StorageFull or StorageError.

    LanceDB raises most of them as RuntimeError or ValueError (see `foreign_errors`); others pass unchanged.
    """
    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:
        found = _storage_error(uri, error)
        if found is None:
            raise
        raise found from error


def _storage_error(uri: str, error: Exception) -> StorageError | StorageFull | None:
    text = RUST_SOURCE.sub("", str(error).strip().splitlines()[0])
    meanings = meanings_of(text)
    if Meaning.DISK_FULL in meanings:
        return StorageFull(
            f"no room is left for {uri}; what was complete before stays readable: free some space and run again"
        )
    if Meaning.CONFLICT in meanings:
        return StorageError(
            f"cannot commit to {uri}: other writers kept coming first; run again when fewer write at once"
        )
    advice = _advice_on_store(str(error))
    if advice is not None:
        return StorageError(f"cannot use {uri}: {advice}")
    if Meaning.DAMAGED in meanings:
        return StorageError(
            f"cannot use {uri}: part of it is missing or cut off ({text[:300]}); if running again does not help, "
            "restore it from a copy, or ingest into a new library"
        )
    if isinstance(error, OSError) or Meaning.UNREACHABLE in meanings:
        return StorageError(f"cannot use {uri}: {text[:300]}; check the place and your access to it")
    return None


def _advice_on_store(text: str) -> str | None:
    """Explain an object store's error and what to do about it, or None if the text is not about a store."""
    meanings = meanings_of(text)
    named, found = CODE.search(text), ADDRESS.search(text)
    code = f" ({named[1]})" if named else ""
    address = found[1] if found else "the store"
    advice = {
        Meaning.NO_BUCKET: "there is no such bucket; make it, or give another",
        Meaning.REFUSED: f"{address} refuses these credentials{code}; check AWS_ACCESS_KEY_ID and "
        "AWS_SECRET_ACCESS_KEY",
        Meaning.NO_CREDENTIALS: "no credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
        "or AWS_PROFILE",
        Meaning.OTHER_REGION: f"the bucket is in another region{code}; set AWS_REGION",
        Meaning.NO_CONDITIONAL_WRITES: f"{address} does not know conditional writes, without which commits are not "
        "safe; use another store",
        Meaning.PLAIN_HTTP: f"{address} is plain http; set AWS_ALLOW_HTTP=true if that is meant",
        Meaning.NO_ANSWER: f"{address} does not answer; check AWS_ENDPOINT_URL and the network",
    }
    return next((line for meaning, line in advice.items() if meaning in meanings), None)


class Tables:
    """Tables of the LanceDB database at `uri`, each opened on first use."""

    def __init__(self, uri: str, database: Any) -> None:
        self.uri = uri
        self._database = database
        self._open: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        """Return the LanceDB table of this name."""
        if name not in self._open:
            with storage_errors(self.uri):
                self._open[name] = self._database.open_table(name)
        return self._open[name]

    def create(self, name: str, schema: pa.Schema) -> None:
        """Make a table, if there is none of that name."""
        with storage_errors(self.uri):
            self._open[name] = self._database.create_table(name, schema=schema, exist_ok=True)

    def has(self, name: str) -> bool:
        """True if there is a table of that name; one whose creation was interrupted is listed, and does not count."""
        if name not in self._open and name in self.names():
            with storage_errors(self.uri):
                try:
                    self._open[name] = self._database.open_table(name)
                except ValueError as error:
                    if Meaning.NO_TABLE not in meanings_of(error):
                        raise
        return name in self._open

    def names(self) -> list[str]:
        """List all tables, also those whose creation was interrupted."""
        return table_names(self._database, self.uri)

    def append(self, name: str, rows: Sequence[dict[str, Any]] | pa.Table) -> None:
        """Append rows in one commit; nothing is written where there are none."""
        table = self[name]
        arrow = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(list(rows), schema=table.schema)
        if arrow.num_rows:
            with storage_errors(self.uri):
                retry_on_conflict(lambda: table.add(arrow))

    def upsert(self, name: str, keys: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
        """Write rows, each in place of the one with the same keys."""
        if not rows:
            return
        table = self[name]
        arrow = pa.Table.from_pylist(list(rows), schema=table.schema)
        with storage_errors(self.uri):
            merge = table.merge_insert(list(keys)).when_matched_update_all().when_not_matched_insert_all()
            retry_on_conflict(lambda: merge.execute(arrow))

    def insert(self, name: str, keys: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
        """Write those rows whose keys are not there yet."""
        table = self[name]
        arrow = pa.Table.from_pylist(list(rows), schema=table.schema)
        with storage_errors(self.uri):
            retry_on_conflict(lambda: table.merge_insert(list(keys)).when_not_matched_insert_all().execute(arrow))

    def update(self, name: str, where: Expr, values: Mapping[str, Any]) -> int:
        """Set columns of the rows that match a filter at the time of the commit; return how many rows changed."""
        with storage_errors(self.uri):
            return int(retry_on_conflict(lambda: self[name].update(where, dict(values))).rows_updated)

    def delete(self, name: str, where: Expr) -> None:
        """Delete rows; nothing is written where there are none."""
        if self.count(name, where):
            with storage_errors(self.uri):
                retry_on_conflict(lambda: self[name].delete(where.to_sql()))

    def count(self, name: str, where: Expr | None = None) -> int:
        """Count the rows that match a filter, or all."""
        with storage_errors(self.uri):
            return int(self[name].count_rows(None if where is None else where.to_sql()))

    def rows(self, name: str, where: Expr | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """Read all rows that match a filter, in no particular order."""
        with storage_errors(self.uri):
            return self._query(name, where, columns).to_arrow()

    def batches(
        self, name: str, where: Expr | None = None, columns: Sequence[str] | None = None, row_ids: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Read the same rows batch by batch; with `row_ids` each row has its position in `_rowid`."""
        with storage_errors(self.uri):
            yield from self._query(name, where, columns).with_row_id(row_ids).to_batches(batch_size=ROWS_PER_BATCH)

    def _query(self, name: str, where: Expr | None, columns: Sequence[str] | None) -> Any:
        query = self[name].search()
        query = query if where is None else query.where(where)
        return query if columns is None else query.select(list(columns))

    def stored_bytes(self) -> int:
        """Sum the bytes of data in all tables, in their newest state."""
        names = [name for name in self.names() if self.has(name)]
        with storage_errors(self.uri):
            return sum(int(self[name].stats()["total_bytes"]) for name in names)

    def version(self, name: str) -> int:
        """Return a number that changes whenever the table does."""
        with storage_errors(self.uri):
            return int(self[name].version)


def retry_on_conflict(commit: Callable[[], Result]) -> Result:
    """Run a commit again when another writer's came first, with growing pauses, a few times."""
    retry = Retrying(
        retry=retry_if_exception(_is_conflict),
        wait=wait_random_exponential(multiplier=0.1, max=MAX_PAUSE_S),
        stop=stop_after_attempt(COMMIT_ATTEMPTS),
        reraise=True,
    )
    return retry(commit)


def _is_conflict(error: BaseException) -> bool:
    return isinstance(error, (OSError, RuntimeError, ValueError)) and Meaning.CONFLICT in meanings_of(error)


def space_tables(tables: Tables) -> dict[str, Fingerprint]:
    """List every table of vectors by name, with the space that it holds."""
    found = {}
    for name in tables.names():
        if name.startswith(VECTORS_PREFIX) and tables.has(name):
            found[name] = Fingerprint(**json.loads(tables[name].schema.metadata[SPACE_KEY]))
    return found


def find_space(tables: Tables, name: str) -> tuple[str, Fingerprint]:
    """Find the table and fingerprint of a space, by its name or digest; raises SpaceMismatch if it is missing."""
    spaces = space_tables(tables)
    names = (name, absolute_name(name))
    matches = [(table, space) for table, space in spaces.items() if space.name in names or space.digest == name]
    if len(matches) == 1:
        return matches[0]
    held = ", ".join(sorted(f"{space.name} ({space.digest})" for space in spaces.values()))
    advice = "give a digest" if matches else "`kinodex add vectors` adds one"
    raise SpaceMismatch(f"got space {name}, and {tables.uri} holds {held}; {advice}")
