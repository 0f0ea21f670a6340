"""Addresses of videos: looked up, and updated where an ingest finds a moved file.

A video is its bytes (`content_id`), so the same bytes in another place are the same video. Its row in `videos` has one
address, from which it is played; `sources` has every place where an ingest found it.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kinodex.index.library import Library
from kinodex.index.rows import SourceRow, VideoRow
from kinodex.index.store.schema import chunked
from kinodex.index.text import redact_uri
from kinodex.index.videos.visibility import complete_videos
from kinodex.pipeline.fetch import FetchedVideo
from kinodex.pipeline.places import LIMIT_S, Look, Place, PlaceState, look_at_all
from kinodex.pipeline.sources import title_of

SETTLE_S = 10.0
"""Limit of the looks of one commit of an ingest, which waits for them."""
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


def ingest_command(library_uri: str) -> str:
    """Write the command by which a library learns where moved files are, with a word for their folder."""
    return f"kinodex ingest NEW_FOLDER --library {shlex.quote(library_uri)}"


# Where an ingest finds a video that the library holds in another place than its address.


@dataclass(frozen=True, slots=True)
class Settled:
    """Result of `settle`: the old address of each moved video by its new one, and finds that wait for the run's end."""

    moved_from: dict[str, str]
    waiting: list[FetchedVideo]


def settle(library: Library, found: Sequence[FetchedVideo], check: Callable[[], None], *, is_last: bool) -> Settled:
    """Update the address of each video that was found in another place and is not at its own any more.

    It is not where its place is gone, and where that holds another video by now. A place whose bytes changed is for
    this run to read first; at its end (`is_last`) it counts as there. Both places are kept then. `check` is called
    right before something is written.
    """
    rows = videos_by_id(library, (each.video_id for each in found))
    elsewhere: dict[str, list[FetchedVideo]] = defaultdict(list)
    for each in found:
        if each.video_id in rows and redact_uri(each.source.uri) != redact_uri(rows[each.video_id].uri):
            elsewhere[each.video_id].append(each)
    looked = address_states(library, [rows[video_id] for video_id in elsewhere], SETTLE_S)
    states = {video_id: state for video_id, (state, _) in zip(elsewhere, looked, strict=True)}
    waiting = [each for id_, places in elsewhere.items() if states[id_] == "changed" for each in places]
    moves = {
        id_: min(places, key=lambda each: _rank(each.source.uri, rows[id_].uri))
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


def _rank(uri: str, address: str) -> tuple[bool, str]:
    """Order the places of a video: one with its file name first, then by URI."""
    return title_of(uri) != title_of(address), uri


def _title(row: VideoRow, title: str) -> str:
    """Give the title of a video in another place: one that somebody gave it stays, the name of its file follows."""
    return title if row.title == title_of(row.uri) else row.title


def _move_failures(library: Library, new_uri: Callable[[str], str | None], over: Sequence[str] = ()) -> None:
    """Give failures the new addresses of their files; those of stages that are `over` are forgotten."""
    log = library.ingest_log
    moved = [(row, uri) for row in log.failures() if (uri := new_uri(row.uri)) is not None]
    log.clear_failures([row.uri for row, _ in moved])
    log.add_failures([replace(row, uri=uri) for row, uri in moved if row.stage not in over])
