"""Errors of storage, of Lance and of object stores, turned into one clear line."""

from __future__ import annotations

import mmap
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kinodex.index.errors import LibraryDamaged, StorageError, StorageFull
from kinodex.index.store.foreign_errors import Meaning, meanings_of

RUST_SOURCE = re.compile(r",? (at )?/\S+\.rs:\d+:\d+.*")
UPLOAD = re.compile(r"single PUT of .* failed after \S+ \(.*?\): ")
ROOM_BYTES = 64_000_000
"""What a thread may ask for at once."""
CODE = re.compile(r"<Code>(\w+)</Code>")
ADDRESS = re.compile(r"Error performing \w+ (\w+://[^/?\s]+)")
PANIC = "PanicException"


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
        raise damaged_part(uri, f"Lance broke off: {error}") from error


def damaged_part(uri: str, text: str) -> LibraryDamaged:
    return LibraryDamaged(
        f"cannot use {uri}: part of it is altered, missing or cut off ({text[:300]}); if running again does not help, "
        f"restore it from a copy, or let `kinodex maintain {uri} --repair` make again what it can"
    )


def check_files(uri: str) -> None:
    """Raise LibraryDamaged for a pipe or a device in a library's folder, because opening one may never end."""
    folders = [uri]
    while folders:
        for entry in _entries(folders.pop()):
            with suppress(OSError):  # who reads it says so
                if entry.is_dir():
                    folders += [] if entry.is_symlink() else [entry.path]
                elif not entry.is_file() and Path(entry.path).exists():
                    raise damaged_part(uri, f"{entry.path} is a pipe or a device, and no file")


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
    """Return True if memory and a thread are to be had."""
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
        return damaged_part(uri, text)
    if isinstance(error, OSError) or Meaning.UNREACHABLE in meanings:
        return StorageError(f"cannot use {uri}: {text[:300]}; check the place and your access to it")
    return damaged_part(uri, text) if Meaning.UNREADABLE in meanings else None


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
