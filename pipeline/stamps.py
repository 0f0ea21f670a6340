"""Stamps of sources: of a file's status, or of what a filesystem says of an object, without opening it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from kinodex.pipeline.filesystems import attempt, filesystem_of, is_remote
from kinodex.pipeline.source import Source, Stamp

CHANGE_MARKS = ("etag", "contentmd5", "generation", "updated", "lastmodified", "modified", "mtime", "created")
"""Names that filesystems have for a mark that changes with a file's bytes, the surest first; case, "-", "_" vary."""


def stamp(source: Source) -> Stamp | None:
    """Return the stamp of a source: from its listing, else by a stat of the file or object, without opening it.

    None where the filesystem gives no size or no mark, so that only reading shows whether the bytes are the same.

    Raises SourceMissing, SourceForbidden, SourceUnreachable: it cannot be looked up.
    """
    if source.stamp is not None:
        return source.stamp
    if not is_remote(source.uri):
        info = attempt(source.uri, Path(source.uri).stat)
        return local_stamp(info.st_size, info.st_mtime_ns)
    filesystem, path = attempt(source.uri, lambda: filesystem_of(source.uri, source.timeout_s, source.is_named))
    return stamp_from_info(attempt(source.uri, lambda: filesystem.info(path)))


def local_stamp(size_bytes: int, mtime_ns: int) -> Stamp:
    return Stamp(size_bytes, str(mtime_ns))


def stamp_from_info(info: Mapping[str, Any]) -> Stamp | None:
    """Make a stamp of fsspec's information about a file; each backend names its marks its own way."""
    normalized = {key.lower().replace("-", "").replace("_", ""): value for key, value in info.items()}
    mark = next((normalized[name] for name in CHANGE_MARKS if normalized.get(name)), None)
    if mark is None or normalized.get("size") is None:
        return None
    if isinstance(mark, datetime):  # a listing may give in seconds what a stat gives as a date
        mark = mark.timestamp()
    return Stamp(int(normalized["size"]), str(mark).strip('"'))
