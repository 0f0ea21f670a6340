"""Videos and sources that a library knows already: tables of millions of rows are read once, in little memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kinodex.index.library import Library
from kinodex.index.store.filters import equal
from kinodex.jobs.addresses.states import address_states, latest, videos_by_id
from kinodex.pipeline.errors import SourceError
from kinodex.pipeline.filesystems import is_remote
from kinodex.pipeline.source import Source, Stamp
from kinodex.pipeline.source_list import ChosenSources
from kinodex.pipeline.stamps import stamp
from kinodex.redaction import redact_uri

MERGE_FROM = 100_000
"""New ids that wait to be sorted in among the others."""

UNKNOWN = 0
_COLUMNS = ["uri", "video_id", "size_bytes", "stamp"]


class IdSet:
    """Ids of videos to look up and to add, in 32 bytes each instead of 150: a sorted array, and a set of the newest."""

    def __init__(self, parts: Iterable[Sequence[str]] = ()) -> None:
        self._sorted = _sorted([np.array(part, np.bytes_) for part in parts if len(part)])
        self._new: set[str] = set()

    def __len__(self) -> int:
        return len(self._sorted) + len(self._new)

    def __contains__(self, video_id: str) -> bool:
        if video_id in self._new:
            return True
        sought = np.bytes_(video_id.encode())
        position = int(np.searchsorted(self._sorted, sought))
        return position < len(self._sorted) and bool(self._sorted[position] == sought)

    def add(self, video_id: str) -> None:
        """Add an id that may be there already."""
        if video_id in self:
            return
        self._new.add(video_id)
        if len(self._new) >= MERGE_FROM:
            self._sorted = _sorted([self._sorted, np.array(list(self._new), np.bytes_)])
            self._new = set()


@dataclass(frozen=True, slots=True)
class NewSources:
    """Sources to identify, with their sizes in bytes (-1: not known), and the number of those left out."""

    sources: Sequence[Source]
    sizes: array[int]
    left_out: int


def complete_ids(library: Library) -> IdSet:
    batches = library.tables.batches("videos", equal("state", "complete"), ["video_id"])
    return IdSet(batch.column("video_id").to_pylist() for batch in batches)


def new_sources(
    library: Library, sources: Sequence[Source], complete: IdSet, check_content: bool, retry_failed: bool
) -> NewSources:
    """Leave out the sources that are unchanged and whose video is complete, or that failed and are not to be retried.

    Each is looked up once for its stamp, which sources elsewhere keep. A further place of a video that is not at its
    own address any more is taken, so that it becomes the address.
    """
    known = array("q", bytes(8 * len(sources))) if check_content else _known(library, sources, complete, retry_failed)
    places, sizes = array("i"), array("q")
    stamps: dict[int, Stamp] = {}
    copies = _copies_of_lost(library, sources, known)
    for place, (source, mark) in enumerate(zip(sources, known, strict=True)):
        now = _stamp(source)
        if now is None or mark == UNKNOWN or mark != _mark(now.size_bytes, now.mark) or place in copies:
            places.append(place)
            sizes.append(-1 if now is None else now.size_bytes)
            if now is not None and is_remote(source.uri) and now is not source.stamp:
                stamps[place] = now
    return NewSources(ChosenSources(sources, places, stamps), sizes, len(sources) - len(places))


def _known(library: Library, sources: Sequence[Source], complete: IdSet, retry_failed: bool) -> array[int]:
    """Marks of the stamps under which the library knows the sources, in their order; `UNKNOWN` for the others."""
    marks = array("q", bytes(8 * len(sources)))
    hashes = np.fromiter((hash(redact_uri(source.uri)) for source in sources), np.int64, len(sources))
    order = np.argsort(hashes).astype(np.int32)
    hashes = hashes[order]
    for batch in library.tables.batches("sources", None, _COLUMNS):
        uris, *others = (batch.column(name).to_pylist() for name in _COLUMNS)
        places = _places(hashes, _hashes(uris))
        for place, video_id, size_bytes, mark in zip(places.tolist(), *others, strict=True):
            if place >= 0 and (video_id in complete if video_id else not retry_failed):
                marks[order[place]] = _mark(size_bytes, mark)
    return marks


def _copies_of_lost(library: Library, sources: Sequence[Source], known: array[int]) -> set[int]:
    """Find the known sources that are copies of videos which are no longer at their own addresses, by their places."""
    batches = library.tables.batches("videos", equal("state", "complete"), ["uri"])
    addresses = np.concatenate([np.empty(0, np.int64), *(_hashes(each.column("uri").to_pylist()) for each in batches)])
    addresses.sort()
    asked = _hashes([source.uri for source in sources])
    copies = np.flatnonzero((_places(addresses, asked) < 0) & (np.array(known, np.int64) != UNKNOWN)).tolist()
    if not copies:
        return set()
    of_uri = latest(library.ingest_log.sources_with("uri", [redact_uri(sources[place].uri) for place in copies]))
    noted = {place: of_uri.get(redact_uri(sources[place].uri)) for place in copies}
    rows = list(videos_by_id(library, [row.video_id for row in noted.values() if row]).values())
    states = zip(rows, address_states(library, rows), strict=True)
    lost = {row.video_id for row, (state, _) in states if state in ("gone", "other")}
    return {place for place, row in noted.items() if row is not None and row.video_id in lost}


def _hashes(uris: Sequence[str]) -> NDArray[np.int64]:
    return np.fromiter((hash(redact_uri(uri)) for uri in uris), np.int64, len(uris))


def _places(ordered: NDArray[np.int64], sought: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the places of hashes among ordered ones; -1 for those that are not there."""
    places = np.searchsorted(ordered, sought)
    there = places < len(ordered)
    there[there] = ordered[places[there]] == sought[there]
    return np.where(there, places, -1)


def _mark(size_bytes: int | None, mark: str) -> int:
    """64 bits for a stamp, as for an address: that of two different ones is the same once in 2**64, in one process."""
    return hash((size_bytes, mark)) or 1


def _stamp(source: Source) -> Stamp | None:
    try:
        return stamp(source)
    except SourceError:
        return None  # reading it will meet the same, and say so in a failure row


def _sorted(parts: Sequence[NDArray[np.bytes_]]) -> NDArray[np.bytes_]:
    joined: NDArray[np.bytes_] = np.concatenate(parts) if parts else np.empty(0, "S1")
    joined.sort()
    return joined
