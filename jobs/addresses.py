"""Addresses of videos: updated where an ingest finds a moved file, mapped to another prefix, and looked up.

A video is its bytes (`content_id`), so the same bytes in another place are the same video. Its row in `videos` has one
address, from which it is played; `sources` has every place where an ingest found it.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Literal
from urllib.parse import quote, unquote

from kinodex.index.durations import counted
from kinodex.index.lease_holders import INGEST
from kinodex.index.library import Library
from kinodex.index.maintain import check_writable
from kinodex.index.rows import SourceRow, VideoRow
from kinodex.index.store.filters import chunked
from kinodex.index.text import composed
from kinodex.index.videos.visibility import complete_videos
from kinodex.jobs.errors import UsageError
from kinodex.pipeline.fetch import FetchedVideo
from kinodex.pipeline.filesystems import is_remote, mount_of
from kinodex.pipeline.places import LIMIT_S, Look, Place, PlaceState, look_at_all
from kinodex.pipeline.sources import title_of
from kinodex.redaction import redact, redact_uri

OWNER = "kinodex relocate"
MOST_LOOKED_AT = 1_000
"""New addresses that a relocation looks up."""
SETTLE_S = 10.0
"""Limit of the looks of one commit of an ingest, which waits for them."""
FOLDERS_COMPARED = 5_000
NAMED = 3
READING_STAGES = ("fetch", "open", "decode", "space", "write")
"""Failures of these stages are over once the library holds the video; a broken subtitle file stays one."""


def latest(rows: Iterable[SourceRow]) -> dict[str, SourceRow]:
    """Index sources by their URI without what grants access; of several rows of one the newest counts."""
    return {redact_uri(row.uri): row for row in sorted(rows, key=lambda row: row.seen_at)}


def videos_by_id(library: Library, ids: Iterable[str]) -> dict[str, VideoRow]:
    """Read the rows of these complete videos, a group at a time."""
    found: dict[str, VideoRow] = {}
    for some in chunked(sorted(set(ids))):
        found |= complete_videos(library.tables, some)
    return found


# States of addresses.

AddressState = PlaceState | Literal["changed", "other"]
"""A place, or one that is there with other bytes than were noted, or with those of another video."""


def address_states(
    library: Library, rows: Sequence[VideoRow], limit_s: float = LIMIT_S
) -> list[tuple[AddressState, Look]]:
    """Look up the addresses of videos, in their order."""
    known = latest(library.ingest_log.sources_with("uri", sorted({redact_uri(row.uri) for row in rows})))
    noted = [known.get(redact_uri(row.uri)) for row in rows]
    looks = look_at_all(
        [Place(row.uri, each.mount if each else None) for row, each in zip(rows, noted, strict=True)], limit_s
    )
    return [(_state(row, each, seen), seen) for row, each, seen in zip(rows, noted, looks, strict=True)]


def _state(row: VideoRow, noted: SourceRow | None, seen: Look) -> AddressState:
    if seen.state != "there" or noted is None:
        return seen.state
    if seen.stamp and noted.stamp and (seen.stamp.size_bytes, seen.stamp.mark) != (noted.size_bytes, noted.stamp):
        return "changed"
    return "there" if noted.video_id == row.video_id else "other"


@dataclass(frozen=True, slots=True)
class GoneAddress:
    """A video without a file at its address, or of which nothing is known; `why` is empty where it is gone."""

    video_id: str
    title: str
    uri: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class AddressCheck:
    """Result of a look at the addresses of a library's videos: how many, those that are gone, those not known."""

    looked_at: int
    gone: tuple[GoneAddress, ...]
    unknown: tuple[GoneAddress, ...]


def check_addresses(library: Library, limit_s: float = LIMIT_S) -> AddressCheck:
    """Look up the addresses of all videos that have files; those not reached within the limit are not known.

    Nor is one that needs credentials which this process was not given, for addresses keep none.
    """
    held = complete_videos(library.tables, as_stored=True).values()
    rows = [row for row in sorted(held, key=lambda row: (row.title, row.video_id)) if row.frames]
    found = [
        (seen.state, GoneAddress(row.video_id, row.title, redact_uri(row.uri), redact(seen.why)))
        for row, (_, seen) in zip(rows, address_states(library, rows, limit_s), strict=True)
    ]
    gone, unknown = (tuple(each for state, each in found if state == wanted) for wanted in ("gone", "unknown"))
    return AddressCheck(len(rows), gone, unknown)


def relocate_command(library_uri: str, uri: str) -> str:
    """Write the command that says where the files of a folder are by now, with a word for the new folder."""
    folder = redact_uri(uri).rpartition("/")[0] or "/"
    return f"kinodex relocate {shlex.quote(library_uri)} {shlex.quote(folder)} NEW_FOLDER"


# Where an ingest finds a video that the library holds in another place than its address.


@dataclass(frozen=True, slots=True)
class Settled:
    """Result of `settle`: the old address of each moved video by its new one, and finds that wait for the run's end."""

    moved_from: dict[str, str]
    waiting: list[FetchedVideo]


def settle(library: Library, found: Sequence[FetchedVideo], check: Callable[[], None], *, is_last: bool) -> Settled:
    """Update the address of each video that was found in another place and is gone, or replaced, at its own.

    A place whose bytes changed is for this run to read first; at its end (`is_last`) it counts as there, and both are
    kept. `check` is called right before something is written.
    """
    rows = videos_by_id(library, (each.video_id for each in found))
    elsewhere: dict[str, list[FetchedVideo]] = defaultdict(list)
    for each in found:
        if each.video_id in rows and redact_uri(each.source.uri) != redact_uri(rows[each.video_id].uri):
            elsewhere[each.video_id].append(each)
    looked = address_states(library, [rows[video_id] for video_id in elsewhere], SETTLE_S)
    states = {video_id: state for video_id, (state, _) in zip(elsewhere, looked, strict=True)}
    waiting = [each for id_, places in elsewhere.items() if states[id_] == "changed" for each in places]

    def rank(video_id: str, uri: str) -> tuple[bool, str]:
        return title_of(uri) != title_of(rows[video_id].uri), uri  # one with its file name first

    moves = {
        id_: min(places, key=lambda each: rank(id_, each.source.uri))
        for id_, places in elsewhere.items()
        if states[id_] in ("gone", "other")
    }
    titled = {id_: _title(rows[id_], each.source.title) for id_, each in moves.items()}
    library.writer.readdress({id_: (each.source.uri, titled[id_]) for id_, each in moves.items()}, check)
    library.ingest_log.forget_sources([redact_uri(rows[id_].uri) for id_ in moves if states[id_] == "gone"])
    if moves:
        new_uris = {redact_uri(rows[id_].uri): each.source.uri for id_, each in moves.items()}
        _move_failures(library, new_uris.get, over=READING_STAGES)
    return Settled({each.source.uri: rows[id_].uri for id_, each in moves.items()}, [] if is_last else waiting)


def _title(row: VideoRow, title: str) -> str:
    """Give the title of a video in another place: one that somebody gave it stays, the name of its file follows."""
    return title if row.title == composed(title_of(row.uri)) else row.title


def _move_failures(library: Library, new_uri: Callable[[str], str | None], over: Sequence[str] = ()) -> None:
    """Give failures the new addresses of their files; those of stages that are `over` are forgotten."""
    log = library.ingest_log
    moved = [(row, uri) for row in log.failures() if (uri := new_uri(row.uri)) is not None]
    log.clear_failures([row.uri for row, _ in moved])
    log.add_failures([replace(row, uri=uri) for row, uri in moved if row.stage not in over])


# Addresses mapped from one prefix to another, because their files were moved.


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
    videos = tuple(Relocated(row.video_id, _title(row, title_of(uri)), redact_uri(row.uri), uri) for row, uri in moved)
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
        _move_failures(library, mapping.applied)
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
