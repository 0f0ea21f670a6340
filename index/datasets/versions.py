"""State of a library's tables: the version of each, in which many processes read the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kinodex.index.errors import LibraryError, QueryError
from kinodex.index.store.filters import Filter
from kinodex.index.store.foreign_errors import Meaning, meanings_of
from kinodex.index.store.places import table_place
from kinodex.index.store.quiet_lance import lance
from kinodex.index.store.storage_errors import storage_errors

if TYPE_CHECKING:
    from lance import LanceDataset

    from kinodex.index.store.database import Tables

Versions = Mapping[str, int]
"""Tables by name to the version that is read of them; plain numbers, so that JSON can hold it."""


def read_versions(tables: Tables, names: Sequence[str]) -> dict[str, int]:
    """Read the newest version of each table, in this order: those that confirm rows have to come before these rows."""
    return {name: tables.version(name) for name in names}


def checked_versions(versions: Versions, names: Sequence[str]) -> dict[str, int]:
    """Return the versions of these tables; raises QueryError unless exactly theirs are there."""
    if set(versions) != set(names) or not all(isinstance(each, int) for each in versions.values()):
        raise QueryError(
            f"got versions of {', '.join(sorted(versions)) or 'no table'}; give those of {', '.join(names)}: "
            "the `versions` of another dataset with the same columns and space"
        )
    return dict(versions)


class TablesAt:
    """Tables of a library at fixed versions, each opened on first use by the process that reads it."""

    def __init__(self, uri: str, versions: Versions) -> None:
        self.uri = uri
        self.versions = versions
        self._session: Any = None
        self._open: dict[str, LanceDataset] = {}

    def __getitem__(self, name: str) -> LanceDataset:
        """Open a table at its version; raises LibraryError if that state was deleted."""
        if name not in self._open:
            with storage_errors(self.uri):
                self._open[name] = self._opened(name)
        return self._open[name]

    def schema(self, name: str) -> pa.Schema:
        """Return the columns of a table."""
        return self[name].schema

    def _opened(self, name: str) -> LanceDataset:
        newest = lance.dataset(table_place(self.uri, name), session=self._session)
        self._session = self._session or newest.session()
        version = self.versions[name]
        try:
            return newest if version == newest.version else newest.checkout_version(version)
        except OSError as error:
            if Meaning.NO_TABLE not in meanings_of(error):
                raise
            raise LibraryError(
                f"got version {version} of {name} in {self.uri}, which is not there: `kinodex maintain` deletes states "
                "that are older than its --keep-minutes; give no versions, and the newest are read"
            ) from error

    def rows(self, name: str, where: Filter | None, columns: Sequence[str]) -> pa.Table:
        """Read all rows that match a filter, in no particular order."""
        with storage_errors(self.uri):
            return self[name].scanner(list(columns), None if where is None else where.sql).to_table()
