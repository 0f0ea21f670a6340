"""States of addresses: a video's file is there, gone, changed, or another's, as a look at it says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from kinodex.index.library import Library
from kinodex.index.rows import SourceRow, VideoRow
from kinodex.index.store.filters import chunked
from kinodex.index.videos.visibility import complete_videos
from kinodex.pipeline.places import LIMIT_S, Look, Place, PlaceState, look_at_all
from kinodex.redaction import redact, redact_uri


def latest(rows: Iterable[SourceRow]) -> dict[str, SourceRow]:
    """Index sources by their URI without what grants access; of several rows of one the newest counts."""
    return {redact_uri(row.uri): row for row in sorted(rows, key=lambda row: row.seen_at)}


def videos_by_id(library: Library, ids: Iterable[str]) -> dict[str, VideoRow]:
    """Read the rows of these complete videos, a group at a time."""
    found: dict[str, VideoRow] = {}
    for some in chunked(sorted(set(ids))):
        found |= complete_videos(library.tables, some)
    return found


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
