"""The open tables of one library: append, upsert, delete and read rows as Arrow tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa
from lancedb.expr import Expr
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from index.foreign_errors import Meaning, meanings_of
from index.store.connection import storage_errors, table_names

COMMIT_ATTEMPTS = 8
MAX_PAUSE_S = 5.0
ROWS_PER_BATCH = 65_536

Result = TypeVar("Result")


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
