"""Lance tables of a library: opened at their place, read and written, their errors turned into one clear line.

A table is a folder `NAME.lance` at the library's place, which makes this a LanceDB database.

There is a table of vectors for each embedding space, beside the one that ingest fills. A space is identified by its
fingerprint's digest; the table's metadata holds the whole fingerprint. A video is visible in another space once its
addition of stage "vectors" is complete.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from kinodex.index.errors import LibraryError, StorageError
from kinodex.index.store.digests import with_row_digests
from kinodex.index.store.filters import Filter, Value, one_of, sql_value
from kinodex.index.store.foreign_errors import Meaning, meanings_of
from kinodex.index.store.memory import free_memory_bytes, index_cache_bytes
from kinodex.index.store.newest_state import Mark, is_another, is_newest, newest_state, state_mark
from kinodex.index.store.places import is_local, table_names, table_place, write_place
from kinodex.index.store.quiet_lance import Session, lance
from kinodex.index.store.schema import (
    EXTRACTS_PREFIX,
    ROW_DIGEST,
    check_additions,
    check_columns,
    check_values,
    naming_columns,
    wanted_schema,
)
from kinodex.index.store.storage_errors import check_files, damaged_part, storage_errors
from kinodex.index.terms import with_terms

if TYPE_CHECKING:
    from lance import LanceDataset, LanceScanner, MergeInsertBuilder

COMMIT_ATTEMPTS = 8
MAX_PAUSE_S = 5.0
ROWS_PER_BATCH = 65_536
METADATA_CACHE_BYTES = 128 << 20
"""The list of files of each state of a table is kept there, and a long run makes thousands; Lance would take 1 GB."""
RUN_CACHE_BYTES = 32 << 20
"""Of either kind in a long run, which reads each file once and has two threads with caches of their own."""
FILE_FORMAT: Final = "2.2"
"""Version of the files that new tables have: LanceDB 0.40 reads no later one."""
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


def has_table(uri: str, name: str) -> bool:
    """Return True if a library has a table of that name.

    One whose creation was interrupted is a folder without a state.
    """
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
        self._small: dict[str, tuple[State, pa.Table]] = {}
        """All rows of small tables, in the state that was read last."""

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
                check_files(self.uri)
            self._session = Session(index_cache_bytes(free_memory_bytes()), METADATA_CACHE_BYTES)
        try:
            new = lance.dataset(where, session=self._session) if known is None else newest_state(known, folder, mark)
        except ValueError as error:
            if meanings_of(error):
                raise
            raise damaged_part(self.uri, str(error)) from error  # the list of its files is not what was written
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
        """Return True if there is a table of that name.

        One whose creation was interrupted is listed, and does not count.
        """
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

    def small(self, name: str) -> pa.Table:
        """Read all rows of a small table, once for each of its states: every commit looks at the leases."""
        newest = self[name]
        state = _state(newest)
        known = self._small.get(name)
        if known is None or known[0] != state:
            with storage_errors(self.uri):
                known = state, newest.to_table()
            self._check_values(name, known[1])
            self._small[name] = known
        return known[1]

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
        return _state(self[name])

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


def _state(table: LanceDataset) -> State:
    return int(table.version), table.get_version()["timestamp"]


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
