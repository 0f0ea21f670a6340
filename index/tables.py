"""The tables of one library, open: appending, upserting, deleting and reading rows as Arrow tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pyarrow as pa
from lancedb.expr import Expr

from index.storage import storage_errors, table_names

COMMIT_ATTEMPTS = 6
CONFLICT_SIGNS = ("commit conflict", "concurrent writers")

Result = TypeVar("Result")


class Tables:
    """Every table of the LanceDB database at `uri`, opened when first asked for."""

    def __init__(self, uri: str, database: Any) -> None:
        self.uri = uri
        self._database = database
        self._open: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        """The LanceDB table of this name."""
        if name not in self._open:
            with storage_errors(self.uri):
                self._open[name] = self._database.open_table(name)
        return self._open[name]

    def create(self, name: str, schema: pa.Schema) -> None:
        """Make a table, if there is none of that name."""
        with storage_errors(self.uri):
            self._open[name] = self._database.create_table(name, schema=schema, exist_ok=True)

    def names(self) -> list[str]:
        return table_names(self._database, self.uri)

    def append(self, name: str, rows: Sequence[dict[str, Any]] | pa.Table) -> None:
        table = self[name]
        arrow = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(list(rows), schema=table.schema)
        if arrow.num_rows:
            with storage_errors(self.uri):
                table.add(arrow)

    def upsert(self, name: str, keys: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
        """Write rows, each in place of the one with the same keys."""
        table = self[name]
        arrow = pa.Table.from_pylist(list(rows), schema=table.schema)
        with storage_errors(self.uri):
            merge = table.merge_insert(list(keys)).when_matched_update_all().when_not_matched_insert_all()
            patiently(lambda: merge.execute(arrow))

    def delete(self, name: str, where: Expr) -> None:
        """Delete rows; nothing is written where there are none."""
        if self.count(name, where):
            with storage_errors(self.uri):
                patiently(lambda: self[name].delete(where.to_sql()))

    def count(self, name: str, where: Expr | None = None) -> int:
        with storage_errors(self.uri):
            return int(self[name].count_rows(None if where is None else where.to_sql()))

    def rows(self, name: str, where: Expr | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows that a filter lets through, in no particular order."""
        with storage_errors(self.uri):
            query = self[name].search()
            query = query if where is None else query.where(where)
            return (query if columns is None else query.select(list(columns))).to_arrow()

    def stored_bytes(self) -> int:
        """Bytes of data in all tables, in their newest state."""
        names = self.names()
        with storage_errors(self.uri):
            return sum(int(self[name].stats()["total_bytes"]) for name in names)

    def version(self, name: str) -> int:
        """Changes whenever the table does."""
        with storage_errors(self.uri):
            return int(self[name].version)


def patiently(commit: Callable[[], Result]) -> Result:
    """Run a commit again when another writer's came first, with growing pauses, a few times."""
    for attempt in range(COMMIT_ATTEMPTS - 1):
        try:
            return commit()
        except (OSError, RuntimeError, ValueError) as error:
            if not any(sign in str(error) for sign in CONFLICT_SIGNS):
                raise
            time.sleep(0.1 * 2**attempt)
    return commit()
