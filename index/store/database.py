"""Lance tables of a library: opened at their place, read and written, their errors turned into one clear line.

A table is a folder `NAME.lance` at the library's place, which makes this a LanceDB database.

There is a table of vectors for each embedding space, beside the one that ingest fills. A space is identified by its
fingerprint's digest; the table's metadata holds the whole fingerprint. A video is visible in another space once its
addition of stage "vectors" is complete.
"""

from __future__ import annotations

import mmap
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from kinodex.index.errors import LibraryDamaged, LibraryError, NotALibrary, SpaceMismatch, StorageError, StorageFull
from kinodex.index.spaces.space import absolute_name
from kinodex.index.spaces.towers import Fingerprint
from kinodex.index.store.quiet_lance import Session, lance
from kinodex.index.store.schema import (
    EXTRACTS_PREFIX,
    ROW_DIGEST,
    VECTORS_PREFIX,
    Filter,
    Value,
    check_additions,
    check_columns,
    check_values,
    naming_columns,
    one_of,
    read_space,
    sql_value,
    wanted_schema,
    with_row_digests,
)
from kinodex.index.terms import with_terms

if TYPE_CHECKING:
    from lance import LanceDataset, LanceScanner, MergeInsertBuilder
    from lance.file import LanceFileSession

RUST_SOURCE = re.compile(r",? (at )?/\S+\.rs:\d+:\d+.*")
UPLOAD = re.compile(r"single PUT of .* failed after \S+ \(.*?\): ")
ROOM_BYTES = 64_000_000
"""What a thread may ask for at once."""
CODE = re.compile(r"<Code>(\w+)</Code>")
ADDRESS = re.compile(r"Error performing \w+ (\w+://[^/?\s]+)")
COMMIT_ATTEMPTS = 8
MAX_PAUSE_S = 5.0
PANIC = "PanicException"
ROWS_PER_BATCH = 65_536
METADATA_CACHE_BYTES = 128 << 20
"""The list of files of each state of a table is kept there, and a long run makes thousands; Lance would take 1 GB."""
RUN_CACHE_BYTES = 32 << 20
"""Of either kind in a long run, which reads each file once and has two threads with caches of their own."""
TABLE_SUFFIX = ".lance"
FILE_FORMAT: Final = "2.2"
"""Version of the files that new tables have: LanceDB 0.40 reads no later one."""

WRITES: Final = "file-object-store://"
"""Lance's way to local files by which all is written. By its usual one, which reads faster, it commits a file of which
the last part could not be written, as on a full disk."""

State = tuple[int, datetime | int]
"""Number of a table's state, and the time of its commit."""
Stamp = tuple[object, ...]
"""The newest states of several tables."""
UNGUARDED = "leases"
"""The table whose rows say who may write the others."""
LANCE_RETRIES = 10
UNSEARCHED = ("leases", "runs", "failures", "sources")
"""Tables that change while an ingest runs, and that no search reads."""
Result = TypeVar("Result")


def place(uri: str) -> str:
    """Turn a URI into the form that Lance takes; a plain path becomes absolute, since workers may run elsewhere."""
    if not uri.strip():
        raise NotALibrary("got an empty name for a library; give its folder or URI")
    if uri.startswith("db://"):
        raise NotALibrary(
            f"got {uri}, a database of LanceDB's own cloud, which keeps no folder: a library lies in a folder, or "
            "under s3://, gs:// or az://, where LanceDB opens it too; copy its tables there"
        )
    plain = uri.removeprefix("file://")
    return plain if "://" in plain else str(Path(plain).expanduser().absolute())


def is_local(uri: str) -> bool:
    """True if a library lives in a folder of this machine."""
    return "://" not in uri


def entries_at(uri: str) -> list[str]:
    """List what lies at a library's place, in an object store folders alone; nothing where there is nothing."""
    with storage_errors(uri):
        if is_local(uri):
            try:
                return os.listdir(uri)  # noqa: PTH208  # a Path for each table of each search takes longer
            except (FileNotFoundError, NotADirectoryError):
                return []
        return [PurePosixPath(entry).name for entry in open_files(uri).list_with_delimiter().common_prefixes]


def table_names(uri: str) -> list[str]:
    """List the tables of a library; none where there is nothing."""
    return sorted(entry.removesuffix(TABLE_SUFFIX) for entry in entries_at(uri) if entry.endswith(TABLE_SUFFIX))


def has_table(uri: str, name: str) -> bool:
    """True if a library has a table of that name; one whose creation was interrupted is a folder without a state."""
    if name not in table_names(uri):
        return False
    if not is_local(uri):
        return Tables(uri).has(name)
    with storage_errors(uri):
        try:
            states = os.listdir(f"{table_place(uri, name)}/_versions")  # noqa: PTH208  # as above
        except FileNotFoundError:
            return False
    return any(state.endswith(".manifest") for state in states)


def table_place(uri: str, name: str) -> str:
    """Give the place of one table of a library."""
    return f"{uri.rstrip('/')}/{name}{TABLE_SUFFIX}"


def write_place(uri: str, name: str) -> str:
    """Give the place of one table to what writes it."""
    where = table_place(uri, name)
    return f"{WRITES}{quote(where)}" if is_local(uri) else where


def open_files(uri: str) -> LanceFileSession:
    """Open Lance's client of the files of a library, which takes its credentials from where tables do."""
    with storage_errors(uri):
        return lance.file.LanceFileSession(uri)


@contextmanager
def storage_errors(uri: str) -> Iterator[None]:
    """Turn errors about storage, of Lance RuntimeError and ValueError too, into StorageError or StorageFull."""
    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:
        found = _storage_error(uri, error)
        if found is None:
            raise
        raise found from error
    except BaseException as error:  # Lance panics over some cut files, which PyO3 raises as no Exception
        if type(error).__name__ != PANIC:
            raise
        if Meaning.NO_MEMORY in meanings_of(error):
            raise _no_memory(uri) from error
        raise _damaged(uri, f"Lance broke off: {error}") from error


def _damaged(uri: str, text: str) -> LibraryDamaged:
    return LibraryDamaged(
        f"cannot use {uri}: part of it is altered, missing or cut off ({text[:300]}); if running again does not help, "
        f"restore it from a copy, or let `kinodex maintain {uri} --repair` make again what it can"
    )


def _check_files(uri: str) -> None:
    """Raise LibraryDamaged for a pipe or a device in a library's folder, because opening one may never end."""
    folders = [uri]
    while folders:
        for entry in _entries(folders.pop()):
            with suppress(OSError):  # who reads it says so
                if entry.is_dir():
                    folders += [] if entry.is_symlink() else [entry.path]
                elif not entry.is_file() and Path(entry.path).exists():
                    raise _damaged(uri, f"{entry.path} is a pipe or a device, and no file")


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """List a folder with the kinds of its entries, none of which is asked for; empty where it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _no_memory(uri: str) -> StorageError:
    return StorageError(f"cannot use {uri}: no memory is left; what was complete stays: free some, and run again")


def _has_room() -> bool:
    """True if memory and a thread are to be had."""
    thread = threading.Thread(target=lambda: None)
    try:
        mmap.mmap(-1, ROOM_BYTES).close()  # a thread that finds too little never says that it has begun
        thread.start()
    except (OSError, RuntimeError):
        return False
    thread.join()
    return True


def _storage_error(uri: str, error: Exception) -> StorageError | StorageFull | None:
    text = UPLOAD.sub("", RUST_SOURCE.sub("", str(error).strip().splitlines()[0]))
    meanings = meanings_of(text)
    if Meaning.DISK_FULL in meanings:
        return StorageFull(
            f"no room is left for {uri}; what was complete before stays readable: free some space and run again"
        )
    if Meaning.NO_MEMORY in meanings or (Meaning.BROKEN_OFF in meanings and not _has_room()):
        return _no_memory(uri)
    if Meaning.CONFLICT in meanings:
        return StorageError(
            f"cannot commit to {uri}: other writers kept coming first; run again when fewer write at once"
        )
    if advice := _advice_on_store(str(error)):
        return StorageError(f"cannot use {uri}: {advice}")
    if Meaning.DAMAGED in meanings:
        return _damaged(uri, text)
    if isinstance(error, OSError) or Meaning.UNREACHABLE in meanings:
        return StorageError(f"cannot use {uri}: {text[:300]}; check the place and your access to it")
    return _damaged(uri, text) if Meaning.UNREADABLE in meanings else None


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
    """Tables of the library at `uri`, each opened on first use, and always in its newest state.

    A handle of a table is for one thread at a time; so each use makes its own, and they share what they have read.
    Each commit is one to the state that was the newest before the leases in `guards` were checked: who takes such a
    lease over commits `fence` first, after which no earlier state takes any more rows.
    """

    def __init__(self, uri: str) -> None:
        if time.time() < 0:  # over which Lance breaks off as over a damaged file
            raise StorageError(f"cannot use {uri}: the clock of this machine is before 1970; set it")
        self.uri = uri
        self._session: Any = None  # caches of what was read, for all tables; made late, since Lance is slow to load
        self._open: dict[str, tuple[LanceDataset, Mark | None]] = {}
        self.guards: dict[str, Callable[[], None]] = {}
        """By the name of a lease that is held for what is written here, a check that raises once it is lost."""
        self._own: Mapping[str, pa.Schema] | None = None
        self._wanted: dict[str, pa.Schema] = {}
        """Columns that tables which were opened should have."""
        self._is_whole = False

    def expect(self, own: Mapping[str, pa.Schema]) -> None:
        """Check each table as it is opened, and all before the first commit: `own` are those of the library."""
        self._own = own
        for name, (table, _) in self._open.items():
            self._check(name, table.schema)

    def limit_caches(self) -> None:
        """Forget what was read, and keep little from now on: for a long run, where Lance would keep 6 GB of indexes."""
        self._session = Session(RUN_CACHE_BYTES, RUN_CACHE_BYTES)
        self._open.clear()

    def share_caches(self, other: Tables) -> None:
        """Keep what is read of the same library where `other` does, which another thread uses."""
        other["videos"]
        self._session = other._session

    def __getitem__(self, name: str) -> LanceDataset:
        """Open the newest state of the table of this name, for the caller alone."""
        with storage_errors(self.uri):
            return self._newest(name)

    def to_write(self, name: str) -> LanceDataset:
        """Open the newest state of a table for a commit."""
        newest = self[name]
        if not is_local(self.uri):
            return newest
        with storage_errors(self.uri):
            return lance.dataset(write_place(self.uri, name), newest.version, session=self._session)

    def commit(self, name: str, step: Callable[[LanceDataset], Result]) -> Result:
        """Do something to the newest state of a table, again if another commit comes first; raises LeaseLost."""
        self._check_all()

        def attempt() -> Result:
            newest = self.to_write(name)
            if name != UNGUARDED:
                self._check_leases()
            return step(newest)

        with storage_errors(self.uri):
            return retry_on_conflict(attempt)

    def _check_leases(self) -> None:
        for check in tuple(self.guards.values()):
            check()

    def _check_all(self) -> None:
        """Raise LibraryDamaged, once, for a table that could not be written as it should be."""
        if self._is_whole or self._own is None:
            return
        for name in self.whole_names():
            found = self[name].schema
            self._check(name, found)
            if name in self._wanted and not name.startswith(EXTRACTS_PREFIX):
                check_additions(found, self._wanted[name], name, self.uri)
        self._is_whole = True

    def _check(self, name: str, found: pa.Schema) -> None:
        wanted = None if self._own is None else wanted_schema(name, found, self._own)
        if wanted is not None:
            check_columns(found, wanted, name, self.uri)
            self._wanted[name] = wanted

    def _retries(self, name: str) -> int:
        """Say how often Lance itself may do a commit again, on a state that is newer than the last check of leases."""
        return 0 if self.guards and name != UNGUARDED else LANCE_RETRIES

    def fence(self) -> None:
        """Let no commit follow that was prepared for an earlier state of any table but that of leases.

        Lance takes this for a change of columns, beside which nobody may add, change or delete a row.
        """

        def same_columns(newest: LanceDataset) -> None:
            fragments = [each.metadata for each in newest.get_fragments()]
            operation = lance.LanceOperation.Merge(fragments, newest.lance_schema)
            lance.LanceDataset.commit(newest, operation, newest.version, max_retries=0)

        for name in (each for each in self.whole_names() if each != UNGUARDED):
            self.commit(name, same_columns)

    def _newest(self, name: str) -> LanceDataset:
        known, mark = self._open.get(name, (None, None))
        where = table_place(self.uri, name)
        folder = where if is_local(self.uri) else None
        if known is not None and is_newest(folder, known.version, mark):
            return copy(known)
        if self._session is None:
            if folder is not None:
                _check_files(self.uri)
            self._session = Session(index_cache_bytes(free_memory_bytes()), METADATA_CACHE_BYTES)
        try:
            new = lance.dataset(where, session=self._session) if known is None else newest_state(known, folder, mark)
        except ValueError as error:
            if meanings_of(error):
                raise
            raise _damaged(self.uri, str(error)) from error  # the list of its files is not what was written
        if known is not None and is_another(known, new, folder, mark):
            if not new.schema.equals(known.schema, check_metadata=True):
                raise LibraryError(f"{self.uri} was made again with another model or settings; open it again")
            self._open.clear()  # the other tables were made again, too
        if known is None or new.schema != known.schema:
            self._check(name, new.schema)
        self._open[name] = new, state_mark(folder, new.version)  # never written through: any thread may copy it
        return copy(new)

    def create(self, name: str, schema: pa.Schema, rows: pa.Table | None = None) -> None:
        """Make a table, with rows or without, if there is none of that name."""
        rows = schema.empty_table() if rows is None else rows
        with storage_errors(self.uri):
            try:
                rows = rows.cast(naming_columns(rows.schema))
                lance.write_dataset(rows, write_place(self.uri, name), data_storage_version=FILE_FORMAT)
            except OSError as error:
                if Meaning.TABLE_EXISTS not in meanings_of(error):
                    raise

    def rewrite(self, name: str, change: Callable[[pa.Table], pa.Table]) -> None:
        """Write a table again, in one commit, with the rows, columns and metadata that `change` makes of all of it."""

        def replace_all(newest: LanceDataset) -> None:
            rows = change(newest.to_table())
            fragments = lance.fragment.write_fragments(
                rows, newest.uri, rows.schema, mode="overwrite", data_storage_version=FILE_FORMAT
            )
            operation = lance.LanceOperation.Overwrite(rows.schema, fragments)
            lance.LanceDataset.commit(newest, operation, newest.version, max_retries=0)

        self.commit(name, replace_all)

    def drop(self, name: str) -> None:
        """Delete a table and its files; raises LeaseLost."""
        self._check_leases()
        self._open.pop(name, None)
        with storage_errors(self.uri):
            lance.LanceDataset.drop(table_place(self.uri, name))

    def has(self, name: str) -> bool:
        """True if there is a table of that name; one whose creation was interrupted is listed, and does not count."""
        return name in self._open or (name in self.names() and self._opens(name))

    def _opens(self, name: str) -> bool:
        """Open a table that is listed; False if its creation was interrupted."""
        with storage_errors(self.uri):
            try:
                self._newest(name)
            except ValueError as error:
                if Meaning.NO_TABLE not in meanings_of(error):
                    raise
                return False
        return True

    def whole_names(self, prefix: str = "") -> list[str]:
        """List the tables with a prefix, without those whose creation was interrupted; the store gives one list."""
        listed = [name for name in self.names() if name.startswith(prefix)]
        return [name for name in listed if name in self._open or self._opens(name)]

    def names(self) -> list[str]:
        """List all tables, also those whose creation was interrupted."""
        return table_names(self.uri)

    def append(self, name: str, rows: Sequence[dict[str, Any]] | pa.Table) -> pa.Table:
        """Append rows in one commit and return them as written; nothing is written where there are none."""
        arrow = self._to_arrow(name, rows)
        if arrow.num_rows:
            _check_vectors(arrow)
            self.commit(name, lambda newest: newest.insert(arrow))
        return arrow

    def upsert(self, name: str, keys: Sequence[str], rows: Sequence[dict[str, Any]] | pa.Table) -> None:
        """Write rows in one commit, each in place of the one with the same keys."""
        arrow = self._to_arrow(name, rows)
        if arrow.num_rows:
            self.commit(name, lambda newest: self._merge(newest, name, keys).when_matched_update_all().execute(arrow))

    def insert(self, name: str, keys: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
        """Write those rows whose keys are not there yet."""
        arrow = self._to_arrow(name, rows)
        self.commit(name, lambda newest: self._merge(newest, name, keys).execute(arrow))

    def _merge(self, newest: LanceDataset, name: str, keys: Sequence[str]) -> MergeInsertBuilder:
        return newest.merge_insert(list(keys)).when_not_matched_insert_all().conflict_retries(self._retries(name))

    def _to_arrow(self, name: str, rows: Sequence[dict[str, Any]] | pa.Table) -> pa.Table:
        """Make rows what is written: lines with their terms, and rows with their digests where the table has these."""
        if isinstance(rows, pa.Table):
            return with_terms(rows)
        schema = self.schema(name)
        arrow = with_terms(pa.Table.from_pylist(list(rows), schema=schema))
        return with_row_digests(arrow) if ROW_DIGEST in schema.names else arrow

    def schema(self, name: str) -> pa.Schema:
        """Return the columns of a table, which never change: so its newest state need not be looked for."""
        with storage_errors(self.uri):
            return (self._open[name][0] if name in self._open else self[name]).schema

    def update(self, name: str, where: Filter, values: Mapping[str, Value]) -> int:
        """Set columns of the rows that match a filter at the time of the commit; return how many rows changed."""
        changes = {column: sql_value(value) for column, value in values.items()}
        retries = self._retries(name)
        done = self.commit(name, lambda newest: newest.update(changes, where.sql, conflict_retries=retries))
        return int(done["num_rows_updated"])

    def delete(self, name: str, where: Filter) -> None:
        """Delete rows; nothing is written where there are none."""
        if self.count(name, where):
            self.commit(name, lambda newest: newest.delete(where.sql, conflict_retries=self._retries(name)))

    def delete_doubles(self, name: str, keys: Sequence[str], where: Filter | None = None) -> None:
        """Delete all but the first of the rows that have the same values in some columns."""

        def all_but_first(rows: pa.Table) -> list[int]:
            first = rows.group_by(list(keys)).aggregate([("_rowid", "min")])["_rowid_min"].combine_chunks()
            others: list[int] = rows["_rowid"].filter(pc.invert(pc.is_in(rows["_rowid"], value_set=first))).to_pylist()
            return others

        self.delete_chosen(name, keys, where, all_but_first)

    def delete_chosen(
        self, name: str, columns: Sequence[str], where: Filter | None, choose: Callable[[pa.Table], Sequence[int]]
    ) -> None:
        """Delete the rows whose `_rowid` is chosen, of those that match a filter."""

        def delete(newest: LanceDataset) -> None:
            rows = newest.to_table(list(columns), None if where is None else where.sql, with_row_id=True)
            if chosen := choose(rows):  # these numbers are of this state alone
                newest.delete(one_of("_rowid", chosen).sql, conflict_retries=0)

        self.commit(name, delete)

    def count(self, name: str, where: Filter | None = None) -> int:
        """Count the rows that match a filter, or all."""
        with storage_errors(self.uri):
            return int(self[name].count_rows(None if where is None else where.sql))

    def rows(
        self, name: str, where: Filter | None = None, columns: Sequence[str] | None = None, **options: Any
    ) -> pa.Table:
        """Read all rows that match a filter, in no particular order; `options` are further ones of Lance's scanner.

        Raises LibraryDamaged for times that are none.
        """
        rows = self.rows_as_stored(name, where, columns, **options)
        self._check_values(name, rows)
        return rows

    def rows_as_stored(
        self, name: str, where: Filter | None = None, columns: Sequence[str] | None = None, **options: Any
    ) -> pa.Table:
        """Read the same rows for a check, whatever their values are."""
        with storage_errors(self.uri):
            return self._scanner(name, where, columns, **options).to_table()

    def batches(
        self,
        name: str,
        where: Filter | None = None,
        columns: Sequence[str] | None = None,
        row_ids: bool = False,
        rows: int = ROWS_PER_BATCH,
        as_stored: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Read the same rows batch by batch; with `row_ids` each row has its position in `_rowid`."""
        options = {"batch_size": rows, "with_row_id": row_ids}
        with storage_errors(self.uri):
            for batch in self._scanner(name, where, columns, **options).to_batches():
                if not as_stored:
                    self._check_values(name, batch)
                yield batch

    def _check_values(self, name: str, rows: pa.Table | pa.RecordBatch) -> None:
        wanted = self._wanted.get(name)
        if wanted is not None:
            check_values(rows, wanted, f"the table {name} of {self.uri}")

    def _scanner(self, name: str, where: Filter | None, columns: Sequence[str] | None, **options: Any) -> LanceScanner:
        chosen = None if columns is None else list(columns)
        return self[name].scanner(chosen, None if where is None else where.sql, **options)

    def stored_bytes(self) -> int:
        """Sum the bytes of data and indexes of all tables, in their newest state."""
        names = self.whole_names()
        with storage_errors(self.uri):
            return sum(data_bytes(self[name]) for name in names)

    def version(self, name: str) -> int:
        """Return a number that changes whenever the table does, unless it is deleted and made again."""
        return int(self[name].version)

    def state(self, name: str) -> State:
        """Identify the newest state of a table, for caches: no other has it, of a table made again neither."""
        newest = self[name]
        return int(newest.version), newest.get_version()["timestamp"]

    def stamp(self) -> Stamp | None:
        """Identify the newest states of all tables that searches read; None but on a local disk, where it is quick."""
        if not is_local(self.uri):
            return None
        return tuple((name, *self._newest_mark(name)) for name in self.names() if name not in UNSEARCHED)

    def _newest_mark(self, name: str) -> tuple[int, Mark | None]:
        known, mark = self._open.get(name, (None, None))
        if known is None or not is_newest(table_place(self.uri, name), known.version, mark):
            if not self.has(name):
                return 0, None
            known, mark = self[name], self._open[name][1]
        return known.version, mark


def data_bytes(table: LanceDataset) -> int:
    """Sum the bytes of a table's files in the state that it was opened in, and of its indexes."""
    files = int(table.get_version()["metadata"]["total_files_size"])
    return files + sum(index.total_size_bytes or 0 for index in table.describe_indices())


def _check_vectors(rows: pa.Table) -> None:
    """Raise ValueError for vectors with NaN, which no search could compare."""
    for column in rows.columns:
        if pa.types.is_fixed_size_list(column.type) and pa.types.is_floating(column.type.value_type):
            for chunk in column.chunks:
                if np.isnan(chunk.flatten().to_numpy(zero_copy_only=False)).any():
                    raise ValueError("a vector has numbers that are NaN; embed it again")


def retry_on_conflict(commit: Callable[[], Result]) -> Result:
    """Run a commit again when another writer's came first, with growing pauses, a few times."""

    def is_conflict(error: BaseException) -> bool:
        return isinstance(error, (OSError, RuntimeError, ValueError)) and Meaning.CONFLICT in meanings_of(error)

    retry = Retrying(
        retry=retry_if_exception(is_conflict),
        wait=wait_random_exponential(multiplier=0.1, max=MAX_PAUSE_S),
        stop=stop_after_attempt(COMMIT_ATTEMPTS),
        reraise=True,
    )
    return retry(commit)


def space_tables(tables: Tables, prefix: str = VECTORS_PREFIX) -> dict[str, Fingerprint]:
    """List every table of vectors by name, with its space: of frames, or of sentences and clips by their prefix."""
    found = {}
    for name in tables.whole_names(prefix):
        found[name] = read_space(tables[name].schema, f"the table {name} of {tables.uri}")
    return found


def own_tables(tables: Tables, stage: str) -> dict[str, str]:
    """The tables of a stage that has one for each model, by model: a space's digest, a map's name, an extract's key."""
    prefix = f"{stage}_"
    if stage not in ("mapped", "extracts"):
        return {space.digest: name for name, space in space_tables(tables, prefix).items()}
    names = tables.whole_names(prefix)
    models = [name.removeprefix(prefix) for name in names]
    keys = models if stage == "mapped" else ["@".join(each.rsplit("_", 1)) for each in models]
    return dict(zip(keys, names, strict=True))


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


# The newest state of a table, found on a local disk without listing all states.
#
# Lance lists them at each look: 0.4 ms for a thousand, and a run that commits every second leaves 3,600 an hour. But
# states are numbered without gaps, each is a file with a name of its number (Lance's format, "V2 manifest naming"), and
# it is there at once and whole (it is renamed): so those after the state that is known are looked for one by one, in 5
# microseconds each. Where the file of the known state does not have such a name, Lance is left to list them.

MOST_STEPS = 200
"""Listing is quicker than more steps than this."""


Mark = tuple[int, int]


def state_mark(folder: str | None, version: int) -> Mark | None:
    """Return the time of change and size of a state's file on a local disk: a table made again has others there."""
    return None if folder is None else _look(folder, version)


def is_newest(folder: str | None, version: int, mark: Mark | None) -> bool:
    """True if a state, known by its mark, is still there and none follows: two looks, for a search opens 20 tables."""
    if folder is None or mark is None or state_mark(folder, version) != mark:
        return False
    return _look(folder, version + 1) is None


def newest_state(known: LanceDataset, folder: str | None, mark: Mark | None) -> LanceDataset:
    """Open the newest state of a table of which one is known, by its files in `folder` and its `mark` if these hold."""
    if folder is None or mark is None or state_mark(folder, known.version) != mark:
        return _listed(known)
    version = newest_version(folder, known.version)
    if version == known.version:
        return copy(known)
    if version is not None:
        with suppress(OSError, ValueError):  # it was deleted meanwhile
            return known.checkout_version(version)
    return _listed(known)


def _listed(known: LanceDataset) -> LanceDataset:
    newest = copy(known)
    look: Any = newest  # the method has no types
    look.checkout_latest()
    return newest


def newest_version(folder: str, known: int) -> int | None:
    """Count up from the number of a known state to the newest; None if they have to be listed."""
    if _look(folder, known) is None:
        return None
    for version in range(known, known + MOST_STEPS):
        if _look(folder, version + 1) is None:
            return version
    return None


def is_another(known: LanceDataset, newest: LanceDataset, folder: str | None, mark: Mark | None) -> bool:
    """True if the newest state is of a table that was made after the known one's, with its `mark`, was deleted."""
    if mark is not None and state_mark(folder, known.version) not in (mark, None):
        return True
    if newest.version != known.version:
        return newest.version < known.version
    return bool(newest.get_version()["timestamp"] != known.get_version()["timestamp"])


def _look(folder: str, version: int) -> Mark | None:
    """The mark of a state's file; None if it is not there."""
    try:
        stat = os.stat(f"{folder}/_versions/{2**64 - 1 - version:020}.manifest")  # noqa: PTH116  # quicker than a Path
    except FileNotFoundError:
        return None
    return stat.st_mtime_ns, stat.st_size


# Memory that this machine, or this container, has left.

MEMINFO, CGROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")
UNKNOWN_SHARE = 0.5
"""Of all memory, what is taken for free where the system does not say, as on macOS."""

LANCE_CACHE_BYTES = 6 << 30
"""What Lance itself takes for its cache of indexes, at most."""


def index_cache_bytes(free_bytes: int) -> int:
    """Compute how much of the indexes is kept in memory: half of what is free, and no less than Lance would."""
    return max(LANCE_CACHE_BYTES, free_bytes // 2)


def free_memory_bytes(meminfo: Path = MEMINFO, cgroup: Path = CGROUP) -> int:
    """Read how much memory is available, and no more than programs leave of this container's limit."""
    facts = dict(line.split(":", 1) for line in _text(meminfo).splitlines() if ":" in line)
    if "MemAvailable" in facts:
        free = int(facts["MemAvailable"].split()[0]) * 1024
    else:
        free = int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * UNKNOWN_SHARE)
    limit = _text(cgroup / "memory.max").strip()
    used = dict(line.split() for line in _text(cgroup / "memory.stat").splitlines())
    if not limit.isdigit() or "anon" not in used:  # "max"
        return free
    return min(free, max(0, int(limit) - int(used["anon"])))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


# Error texts of other libraries and their meaning: the only place in this room that knows such texts.
#
# Lance and the object stores behind it raise RuntimeError, ValueError or OSError without a class or code of their own,
# so their text is all there is to tell errors apart. `tests/index/store/test_foreign_errors.py` provokes each entry
# with the installed version.


class Meaning(Enum):
    """Meaning of an error text."""

    CONFLICT = auto()
    """Another writer's commit came first; the same commit may succeed on a retry."""
    DISK_FULL = auto()
    NO_MEMORY = auto()
    """Neither memory nor a thread is to be had."""
    DAMAGED = auto()
    """A file that is cut off, or a file or table that is missing."""
    UNREADABLE = auto()
    """Files that are whole, and do not hold what was written."""
    BROKEN_OFF = auto()
    """A task of Lance's ended: over such a file, or for want of a thread, which it says on stderr alone."""
    NO_TABLE = auto()
    TABLE_EXISTS = auto()
    UNREACHABLE = auto()
    """The storage failed for any other reason."""
    NO_BUCKET = auto()
    REFUSED = auto()
    """The store does not accept these credentials."""
    NO_CREDENTIALS = auto()
    OTHER_REGION = auto()
    NO_CONDITIONAL_WRITES = auto()
    PLAIN_HTTP = auto()
    NO_ANSWER = auto()


@dataclass(frozen=True, slots=True)
class Sign:
    """A part of an error's text, and the library that writes it."""

    library: str
    text: str
    meaning: Meaning


def _of(library: str, meaning: Meaning, *texts: str) -> tuple[Sign, ...]:
    return tuple(Sign(library, text, meaning) for text in texts)


def _codes(meaning: Meaning, *codes: str) -> tuple[Sign, ...]:
    return _of("S3", meaning, *(f"<Code>{code}</Code>" for code in codes))


SIGNS = (
    *_of(
        "Lance",
        Meaning.CONFLICT,
        "commit conflict",
        "Commit conflict",
        "concurrent writers",
        "incompatible with concurrent transaction",
    ),
    *_of("libc", Meaning.DISK_FULL, "No space left", "Disk quota exceeded"),
    *_of("Rust", Meaning.DISK_FULL, "os error 28", "os error 122", "os error 27"),
    *_of("Rust", Meaning.NO_MEMORY, "(os error 11)", "(os error 12)"),
    *_of(
        "Lance", Meaning.DAMAGED, "Invalid range", "size is too small", "does not have sufficient data", "Not found: "
    ),
    *_of("Rust", Meaning.DAMAGED, "failed to fill whole buffer"),
    *_of("Lance", Meaning.DAMAGED, "was not found"),
    *_of("Arrow", Meaning.UNREADABLE, "External error: ", "Schema error: "),
    *_of("Lance", Meaning.UNREADABLE, "Task was aborted", "Data file '", "LanceError(Schema)"),
    *_of("Lance", Meaning.BROKEN_OFF, "Task was aborted"),
    *_of("Lance", Meaning.NO_TABLE, "was not found"),
    *_of("Lance", Meaning.TABLE_EXISTS, "Dataset already exists"),
    *_of("Lance", Meaning.UNREACHABLE, "LanceError(IO)", "object store", "Could not parse bucket"),
    *_codes(Meaning.NO_BUCKET, "NoSuchBucket"),
    *_codes(Meaning.REFUSED, "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch"),
    *_codes(Meaning.REFUSED, "InvalidToken", "ExpiredToken"),
    *_of("object_store", Meaning.REFUSED, "status code: 403", "status code: 401"),
    *_of("Lance", Meaning.NO_CREDENTIALS, "Failed to get AWS credentials", "CredentialsNotLoaded"),
    *_codes(Meaning.OTHER_REGION, "PermanentRedirect", "AuthorizationHeaderMalformed"),
    *_codes(Meaning.OTHER_REGION, "IllegalLocationConstraintException"),
    *_codes(Meaning.NO_CONDITIONAL_WRITES, "NotImplemented"),
    *_of("object_store", Meaning.PLAIN_HTTP, "HTTP error: builder error"),
    *_of("object_store", Meaning.NO_ANSWER, "HTTP error: error sending request"),
)


def meanings_of(error: BaseException | str) -> frozenset[Meaning]:
    """Find every meaning that an error's text has; none for an error that this room does not know."""
    text = str(error)
    return frozenset(sign.meaning for sign in SIGNS if sign.text in text)
