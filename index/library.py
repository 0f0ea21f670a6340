"""A library of Lance tables: created or opened for reading and writing.

Many processes may read and write at once. A video's rows come first and its row in `videos` last; every
reader looks only at videos that have that row, so nobody sees half a video, whenever a writer dies.

Tables are created by one process at a time: two that create one table at the same moment would otherwise replace each
other's, rows and all. The table of leases comes first, so that the others are made under a lease; `videos` comes last:
where it is, all is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from index.embedding.portable.tower_files import TOWERS
from index.embedding.space import Fingerprint
from index.errors import (
    LeaseLost,
    LibraryBusy,
    LibraryDamaged,
    LibraryError,
    NotALibrary,
    SettingsMismatch,
    SpaceMismatch,
)
from index.library_reader import LibraryReader
from index.store.commit_probe import check_commits
from index.store.database import TABLE_SUFFIX, Tables, entries_at, is_local, place, table_names
from index.store.filters import other_than
from index.store.indexes import index_text
from index.store.leases import DEFAULT_LEASE, Lease, Pace, check_lease
from index.store.schema import SENTENCES_PREFIX, VECTORS_PREFIX, table_schemas
from index.videos.writer import VideoWriter

OUR_TABLES = (
    "frames", VECTORS_PREFIX, "segments", "captions", "detections", "transcript", "additions",
    "failures", "sources", "runs", "leases", "clips", "screen_text", "scenes", "speakers", SENTENCES_PREFIX, "videos",
)  # fmt: skip
SEARCHED_BY_WORDS = ("transcript", "captions")
CREATION = "creation"
"""The lease of a process that makes a library: its row alone is no trace of one that was there."""


class Library(LibraryReader):
    """An open library for reading and writing. Pickling it sends its URI; the receiver opens it again.

    Beside the parts of `LibraryReader`: `writer`, for the rows of videos. `index.maintenance` has functions that
    take a library.
    """

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return Library.open, (self.uri,)

    @cached_property
    def writer(self) -> VideoWriter:
        """Writer of the rows of videos."""
        return VideoWriter(self.tables, self.vectors_table)

    @classmethod
    def exists(cls, uri: str) -> bool:
        """True if there is a library at `uri`, of whatever version.

        Raises LibraryDamaged where the rest of a library lies, and its table of videos is gone: what no video claims
        is a leftover to an ingest, which would delete it all.
        """
        where = place(uri)
        if is_local(where) and not Path(where).is_dir():
            return False
        if "videos" in table_names(where):
            return True
        remains = _remains(where)
        if remains is None or "videos" in table_names(where):  # which another process makes at this moment
            return remains is not None
        raise LibraryDamaged(
            f"got {uri}, a damaged library: its table of videos is gone, and {remains}; nothing was changed: restore "
            f"it from a copy, or `kinodex maintain {uri} --repair` makes it again from what is left"
        )

    @classmethod
    def open(cls, uri: str) -> Library:
        """Open the library at `uri`; raises NotALibrary, NewerLibrary, OlderLibrary, LibraryDamaged or StorageError."""
        if not cls.exists(uri):
            raise NotALibrary(f"got {uri}, where there is no library; `kinodex ingest` makes one")
        return cls(place(uri))

    @classmethod
    def create(cls, uri: str, settings: Any, fingerprint: Fingerprint) -> Library:
        """Create a library at `uri`. `settings` is a dataclass or mapping of everything that its rows depend on."""
        where = place(uri)
        if cls.exists(uri):
            raise LibraryError(f"got {uri}, where there is a library already; open it, or give a new place")
        _check_vacant(where)
        _make_tables(where, _plain(settings), fingerprint)
        return cls(where)

    @classmethod
    def open_or_create(cls, uri: str, settings: Any, fingerprint: Fingerprint) -> Library:
        """Open the library at `uri`, or create it if there is none.

        Raises SettingsMismatch or SpaceMismatch if there is one with other settings or another space.
        """
        library = cls.open(uri) if cls.exists(uri) else cls.create(uri, settings, fingerprint)
        library.check_settings(settings)
        library.check_space(fingerprint)
        return library

    def check_settings(self, settings: Any) -> None:
        """Raise SettingsMismatch unless the library was made with these settings: a mapping or a dataclass."""
        settings = _plain(settings)
        changed = [key for key in sorted({*settings, *self.settings}) if settings.get(key) != self.settings.get(key)]
        if changed:
            got = ", ".join(f"{key}={settings.get(key)}" for key in changed)
            held = ", ".join(f"{key}={self.settings.get(key)}" for key in changed)
            raise SettingsMismatch(
                f"got {got}, but {self.uri} was made with {held}; use its settings or another library"
            )

    def check_space(self, fingerprint: Fingerprint) -> None:
        """Raise SpaceMismatch unless the library's own space has this fingerprint."""
        if fingerprint.digest != self.fingerprint.digest:
            raise SpaceMismatch(
                f"got space {fingerprint}, but {self.uri} was made with {self.fingerprint}; "
                f"use that space or another library"
            )

    def lease(self, name: str, owner: str, pace: Pace = DEFAULT_LEASE) -> Lease:
        """Make a lease, the right to be the only one to do `name`, such as "ingest"; a context manager.

        Entering it raises LibraryBusy if another run holds it. See `index.store.leases`.
        """
        return Lease(self.tables, name, owner, pace)

    def check_lease(self, name: str, token: str) -> None:
        """Raise LeaseLost unless the lease of this name still has this token."""
        check_lease(self.tables, name, token)


def _plain(settings: Any) -> dict[str, Any]:
    """Convert settings to the form in which a library returns them, that is through JSON."""
    known = asdict(settings) if is_dataclass(settings) and not isinstance(settings, type) else dict(settings)
    plain: dict[str, Any] = json.loads(json.dumps(known))
    return plain


def _check_vacant(uri: str) -> None:
    """Raise NotALibrary if a local place holds anything but the files of an interrupted creation."""
    if not is_local(uri) or not Path(uri).exists():
        return
    if not Path(uri).is_dir():
        raise NotALibrary(f"got {uri}, which is a file; a library is a folder: give one that is new or empty")
    foreign = sorted(entry.name for entry in Path(uri).iterdir() if not _is_ours(entry.name))
    if foreign:
        raise NotALibrary(f"got {uri}, which holds other things ({foreign[0]}); give a folder that is new or empty")


def _is_ours(name: str) -> bool:
    return name.startswith(".") or name == TOWERS or (name.endswith(TABLE_SUFFIX) and name.startswith(OUR_TABLES))


def _remains(uri: str) -> str | None:
    """Say what lies there that an interrupted creation never leaves: towers, rows, leases of other work; else None."""
    tables = Tables(uri)
    for name in (each for each in tables.names() if each.startswith(OUR_TABLES)):
        try:
            held = tables.has(name) and tables.count(name, other_than("name", CREATION) if name == "leases" else None)
        except LibraryDamaged:
            return f"its table {name} cannot be read"
        if held:
            return f"its table {name} has {held:,} rows"
    return "it carries towers" if TOWERS in entries_at(uri) else None


def _make_tables(uri: str, settings: Mapping[str, Any], fingerprint: Fingerprint) -> None:
    """Create all tables, those that an interrupted creation left out included; raises LibraryBusy or UnsafeStore."""
    if not is_local(uri):
        check_commits(uri)
    tables = Tables(uri)
    schemas = table_schemas(settings, fingerprint)
    try:
        _create_all(tables, schemas)
    except LeaseLost as error:  # of two that made the leases at the same moment the second's table counts
        raise LibraryBusy(f"got {uri}, where another process makes a library at this moment; run again") from error


def _create_all(tables: Tables, schemas: Mapping[str, pa.Schema]) -> None:
    tables.create("leases", schemas["leases"])
    with Lease(tables, CREATION, "another ingest", DEFAULT_LEASE) as lease:
        if "videos" in tables.names():
            raise LibraryError(f"got {tables.uri}, where another process just made a library; run again to use it")
        for name, schema in schemas.items():
            lease.check()
            tables.create(name, schema)
            if name in SEARCHED_BY_WORDS:
                index_text(tables, name)
