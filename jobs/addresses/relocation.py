"""Addresses mapped from one prefix to another, because their files were moved."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from urllib.parse import quote, unquote

from kinodex.index.durations import counted
from kinodex.index.lease_holders import INGEST
from kinodex.index.library import Library
from kinodex.index.maintain import check_writable
from kinodex.index.rows import SourceRow, VideoRow
from kinodex.jobs.addresses.moved_files import move_failures, title_there
from kinodex.jobs.errors import UsageError
from kinodex.pipeline.filesystems import is_remote, mount_of
from kinodex.pipeline.places import LIMIT_S, Place, look_at_all
from kinodex.pipeline.sources import title_of
from kinodex.redaction import redact_uri

OWNER = "kinodex relocate"
MOST_LOOKED_AT = 1_000
"""New addresses that a relocation looks up."""

FOLDERS_COMPARED = 5_000
NAMED = 3


def relocate_command(library_uri: str, uri: str) -> str:
    """Write the command that says where the files of a folder are by now, with a word for the new folder."""
    folder = redact_uri(uri).rpartition("/")[0] or "/"
    return f"kinodex relocate {shlex.quote(library_uri)} {shlex.quote(folder)} NEW_FOLDER"


@dataclass(frozen=True, slots=True)
class Relocated:
    """A video, with its address before and after."""

    video_id: str
    title: str
    old_uri: str
    new_uri: str


@dataclass(frozen=True, slots=True)
class Relocation:
    """Report of `relocate`, with further places and failed files that went along, and what looks at addresses found."""

    old: str
    new: str
    dry_run: bool
    videos: tuple[Relocated, ...]
    other_places: int
    there: int
    gone: int
    unknown: int


def relocate(library: Library, old: str, new: str, *, dry_run: bool = False, limit_s: float = LIMIT_S) -> Relocation:
    """Map the addresses of all videos under one folder, bucket or web address to another, all in one commit.

    `old` and `new` are prefixes of whole parts of an address (`/disk/films`, `s3://bucket/films`, `https://host`), or
    one file. Nothing is read or moved but the addresses. A name in a web address is decoded where it becomes a path or
    a key, and the other way round. A relocation that was killed is finished by the same call.

    Raises UsageError where nothing lies under `old`, or a new address is that of another video.
    """
    mapping = _Mapping.of(old, new)
    if dry_run:
        return _relocate(library, mapping, limit_s, None)
    check_writable(library.uri)
    with library.lease(INGEST, OWNER) as lease:
        return _relocate(library, mapping, limit_s, lease.check)


def _relocate(library: Library, mapping: _Mapping, limit_s: float, check: Callable[[], None] | None) -> Relocation:
    """Relocate, or with a `check` of None only look."""
    rows, sources = library.videos(), list(library.ingest_log.sources().values())
    moved = [(row, uri) for row in rows if (uri := mapping.applied(row.uri)) is not None]
    places = [(row, uri) for row in sources if (uri := mapping.applied(row.uri)) is not None]
    if not moved and not places:
        raise UsageError(_nothing_under(library, mapping.old, [row.uri for row in rows if row.frames]))
    _check_free(moved, places, rows, sources)
    videos = tuple(
        Relocated(row.video_id, title_there(row, title_of(uri)), redact_uri(row.uri), uri) for row, uri in moved
    )
    states = Counter(
        each.state for each in look_at_all([Place(uri, is_named=True) for _, uri in moved[:MOST_LOOKED_AT]], limit_s)
    )
    if check is not None:
        library.writer.readdress({each.video_id: (each.new_uri, each.title) for each in videos}, check)
        stay = {redact_uri(row.uri) for row in sources if mapping.applied(row.uri) is None}
        fresh = []
        for row, uri in places:
            if uri not in stay:  # a stamp says nothing in another kind of place
                size, stamp = (None, "") if is_remote(row.uri) != is_remote(uri) else (row.size_bytes, row.stamp)
                fresh.append(replace(row, uri=uri, size_bytes=size, stamp=stamp, mount=mount_of(uri)))
        library.ingest_log.add_sources(fresh)
        new_uris = {row.uri for row in fresh}
        library.ingest_log.forget_sources([row.uri for row, uri in places if row.uri not in new_uris])
        move_failures(library, mapping.applied)
    others = len({redact_uri(row.uri) for row, _ in places} - {each.old_uri for each in videos})
    counts = (states[state] for state in ("there", "gone", "unknown"))
    return Relocation(mapping.old, mapping.new, check is None, videos, others, *counts)


@dataclass(frozen=True, slots=True)
class _Mapping:
    """Two prefixes of addresses, without the "/" at their end and without what grants access."""

    old: str
    new: str

    @classmethod
    def of(cls, old: str, new: str) -> _Mapping:
        """Check two prefixes as they were given; raises UsageError."""
        found = cls(_prefix(old), _prefix(new))
        if found.old == found.new:
            raise UsageError(f"got {found.old or '/'} twice; give the old place and the new one")
        return found

    def applied(self, uri: str) -> str | None:
        """Map an address; None for one that does not lie under the old prefix."""
        plain = redact_uri(uri)
        if plain != self.old and not plain.startswith(f"{self.old}/"):
            return None
        rest = plain[len(self.old) :]
        was_web, is_web = (prefix.startswith(("http://", "https://")) for prefix in (self.old, self.new))
        return self.new + (rest if was_web == is_web else unquote(rest) if was_web else quote(rest))


def _prefix(given: str) -> str:
    text = given.strip().removeprefix("file://")
    if not text:
        raise UsageError("got an empty place; give a folder, a file, or a prefix such as s3://bucket/films")
    if not is_remote(text):
        return os.path.normpath(Path(text).expanduser().absolute()).rstrip("/")
    protocol, _, place = redact_uri(text).partition("://")
    if not place.strip("/"):
        raise UsageError(f"got {protocol}://, which names no place; give a bucket or a host, such as s3://bucket")
    return f"{protocol}://{place.rstrip('/')}"


def _nothing_under(library: Library, old: str, uris: Sequence[str]) -> str:
    """Say that no video lies under a prefix, and which prefixes are the nearest."""
    folders = Counter(redact_uri(uri).rpartition("/")[0] for uri in uris)
    most = [folder for folder, _ in folders.most_common(FOLDERS_COMPARED)]
    above = dict.fromkeys(part for folder in most for part in (folder, folder.rpartition("/")[0]) if len(part) > 1)
    near = get_close_matches(old, above, n=NAMED, cutoff=0.5) or most[:NAMED]
    where = f"; the nearest are under {', '.join(near)}" if near else ""
    return f"got {old or '/'}, under which {library.uri} has none of its {counted(len(uris), 'video')}{where}"


def _check_free(
    moved: Sequence[tuple[VideoRow, str]],
    places: Sequence[tuple[SourceRow, str]],
    rows: Sequence[VideoRow],
    sources: Sequence[SourceRow],
) -> None:
    """Raise UsageError if a new address is that of another video, which stays."""
    wanted = {uri: row.video_id for row, uri in places if row.video_id} | {uri: row.video_id for row, uri in moved}
    stay = {row.video_id for row in rows} - {row.video_id for row, _ in moved}
    leave = {row.uri for row, _ in places}
    taken = {redact_uri(row.uri): row.video_id for row in rows if row.video_id in stay}
    taken |= {redact_uri(row.uri): row.video_id for row in sources if row.video_id and row.uri not in leave}
    clash = sorted(uri for uri, video_id in wanted.items() if taken.get(uri, video_id) != video_id)
    if clash:
        more = f", and {len(clash) - NAMED:,} more" if len(clash) > NAMED else ""
        raise UsageError(
            f"{counted(len(clash), 'new address')} would be those of other videos: {', '.join(clash[:NAMED])}{more}; "
            "nothing was changed: give another place, or `kinodex ingest` the new one, which knows films by their bytes"
        )
