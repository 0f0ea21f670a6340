"""The place of a library: checked, opened, and its storage errors turned into one clear line."""

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
from index.foreign_errors import Meaning, meanings_of
from index.store.schema import FORMAT_KEY, FORMAT_VERSION, SETTINGS_KEY, SPACE_KEY, VECTORS_PREFIX

OUR_TABLES = (
    "frames", VECTORS_PREFIX, "segments", "captions", "detections", "transcript", "additions",
    "failures", "sources", "runs", "leases", "clips", "videos",
)  # fmt: skip
RUST_SOURCE = re.compile(r",? (at )?/\S+\.rs:\d+:\d+.*")
CODE = re.compile(r"<Code>(\w+)</Code>")
ADDRESS = re.compile(r"uri: Some\((\w+://[^/?)]+)")


@dataclass(frozen=True, slots=True)
class Heading:
    """Facts about a whole library, from the metadata of its `videos` table."""

    format_version: int
    settings: Mapping[str, Any]
    fingerprint: Fingerprint


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
    return name.startswith(".") or (name.endswith(".lance") and name.startswith(OUR_TABLES))


def read_heading(schema: pa.Schema, uri: str) -> Heading:
    """Read the metadata of `videos`; raises NotALibrary, NewerLibrary or OlderLibrary."""
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
