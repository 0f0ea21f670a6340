"""Where tables lie: the places of a library and of its tables, and what is there."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from kinodex.index.errors import NotALibrary
from kinodex.index.store.quiet_lance import lance
from kinodex.index.store.storage_errors import storage_errors

if TYPE_CHECKING:
    from lance.file import LanceFileSession

TABLE_SUFFIX = ".lance"
WRITES: Final = "file-object-store://"
"""Lance's way to local files by which all is written. By its usual one, which reads faster, it commits a file of which
the last part could not be written, as on a full disk."""


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
    """Return True if a library lives in a folder of this machine."""
    return "://" not in uri


def entries_at(uri: str) -> list[str]:
    """List what lies at a library's place, in an object store only folders; nothing where there is nothing."""
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
