"""Where a library lives: its place checked and opened, and what storage says turned into one clear line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import lancedb
import pyarrow as pa

from index.embedding.space import Fingerprint
from index.errors import NewerLibrary, NotALibrary, OlderLibrary, StorageError, StorageFull
from index.store.object_store_errors import explain
from index.store.schema import FORMAT_KEY, FORMAT_VERSION, SETTINGS_KEY, SPACE_KEY, VECTORS_PREFIX

OUR_TABLES = (
    "frames", VECTORS_PREFIX, "segments", "captions", "detections", "transcript", "additions",
    "failures", "sources", "runs", "leases", "clips", "videos",
)  # fmt: skip
UNREACHABLE_SIGNS = ("LanceError(IO)", "IO {", "object store", "was not found", "lance error: Not found")
RUST_SOURCE = re.compile(r",? (at )?/\S+\.rs:\d+:\d+.*")
CONFLICT_SIGNS = ("commit conflict", "concurrent writers", "incompatible with concurrent transaction")
DAMAGE_SIGNS = ("Invalid range", "failed to fill whole buffer", "size is too small", "Not found: ", "was not found")
"""A file that is cut off, a file that is gone, a table that is gone."""
FULL_SIGNS = ("No space left", "os error 28", "Disk quota exceeded", "os error 122")


@dataclass(frozen=True, slots=True)
class Heading:
    """What a library says of itself."""

    format_version: int
    settings: Mapping[str, Any]
    fingerprint: Fingerprint


def place(uri: str) -> str:
    """A URI as LanceDB takes it; a plain path is made absolute, since workers may run elsewhere."""
    if not uri.strip():
        raise NotALibrary("got an empty name for a library; give its folder or URI")
    plain = uri.removeprefix("file://")
    return plain if "://" in plain else str(Path(plain).expanduser().absolute())


def is_local(uri: str) -> bool:
    return "://" not in uri


def connect(uri: str) -> Any:
    """A LanceDB connection whose tables always show the newest state."""
    with storage_errors(uri):
        return lancedb.connect(uri, read_consistency_interval=timedelta(0))


def table_names(database: Any, uri: str) -> list[str]:
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
    """Raise NotALibrary if a local place holds anything but what an interrupted creation leaves."""
    if not is_local(uri) or not Path(uri).exists():
        return
    if not Path(uri).is_dir():
        raise NotALibrary(f"got {uri}, which is a file; a library is a folder: give one that is new or empty")
    foreign = sorted(entry.name for entry in Path(uri).iterdir() if not _is_ours(entry.name))
    if foreign:
        raise NotALibrary(f"got {uri}, which holds other things ({foreign[0]}); give a folder that is new or empty")


def _is_ours(name: str) -> bool:
    return name.startswith(".") or (name.endswith(".lance") and name.startswith(OUR_TABLES))


def read_heading(schema: pa.Schema, uri: str) -> Heading:
    """What the metadata of `videos` says; raises NotALibrary, NewerLibrary or OlderLibrary."""
    metadata = schema.metadata or {}
    if FORMAT_KEY not in metadata:
        raise NotALibrary(f"got {uri}, a LanceDB database that kinodex did not make; give a library")
    version = int(metadata[FORMAT_KEY])
    if version > FORMAT_VERSION:
        raise NewerLibrary(f"{uri} has format {version}, and this kinodex reads {FORMAT_VERSION}; update kinodex")
    if version < FORMAT_VERSION:
        raise OlderLibrary(
            f"{uri} has format {version}, and this kinodex reads {FORMAT_VERSION}; ingest its videos into a new library"
        )
    fingerprint = Fingerprint(**json.loads(metadata[SPACE_KEY]))
    return Heading(version, json.loads(metadata[SETTINGS_KEY]), fingerprint)


@contextmanager
def storage_errors(uri: str) -> Iterator[None]:
    """Turn what LanceDB and the system say about storage into StorageFull or StorageError.

    LanceDB raises most of them as RuntimeError or ValueError with a text of its own; others pass unchanged.
    """
    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:
        text = RUST_SOURCE.sub("", str(error).strip().splitlines()[0])
        if any(sign in text for sign in FULL_SIGNS):
            raise StorageFull(
                f"no room is left for {uri}; what was complete before stays readable: free some space and run again"
            ) from error
        if any(sign in text for sign in CONFLICT_SIGNS):
            raise StorageError(
                f"cannot commit to {uri}: other writers kept coming first; run again when fewer write at once"
            ) from error
        meant = explain(str(error))
        if meant is not None:
            raise StorageError(f"cannot use {uri}: {meant}") from error
        if any(sign in text for sign in DAMAGE_SIGNS):
            raise StorageError(
                f"cannot use {uri}: part of it is missing or cut off ({text[:300]}); if running again does not help, "
                "restore it from a copy, or ingest into a new library"
            ) from error
        if isinstance(error, OSError) or any(sign in text for sign in UNREACHABLE_SIGNS):
            raise StorageError(f"cannot use {uri}: {text[:300]}; check the place and your access to it") from error
        raise
