"""Removal of what a user no longer wants: whole videos, or what one model added to them.

Both run under the lease of any run that could be writing the same, so that no run loses rows while it works.
"""

from __future__ import annotations

from collections.abc import Sequence

from kinodex.index.annotations.notes import NOTES
from kinodex.index.lease_holders import INGEST, addition_lease
from kinodex.index.library import Library
from kinodex.index.store.database import Tables
from kinodex.index.store.filters import chunked, equal, one_of
from kinodex.index.store.held_tables import own_tables
from kinodex.index.store.leases import DEFAULT_LEASE, Lease

REMOVE_OWNER = "kinodex remove"


def remove_videos(library: Library, *video_ids: str) -> None:
    """Remove complete videos at once for all readers; `maintain` frees the space. Raises LibraryBusy."""
    with Lease(library.tables, INGEST, REMOVE_OWNER, DEFAULT_LEASE):
        for ids in chunked(video_ids):
            uris = _sources_of(library.tables, ids)
            library.writer.discard(*ids)
            for some in chunked(uris):
                library.ingest_log.clear_failures(some)


def _sources_of(tables: Tables, video_ids: Sequence[str]) -> list[str]:
    """List the URIs that hold these videos and, as far as is known, no others by now."""
    of_videos = one_of("video_id", video_ids)
    uris = {uri for name in ("videos", "sources") for uri in tables.rows(name, of_videos, ["uri"])["uri"].to_pylist()}
    for some in chunked(sorted(uris)):
        rows = tables.rows("sources", one_of("uri", some), ["uri", "video_id"]).to_pylist()
        uris -= {row["uri"] for row in rows if row["video_id"] not in video_ids}
    return sorted(uris)


def remove_added(library: Library, stage: str, model: str, *video_ids: str) -> None:
    """Remove what a model added to videos: a stage (vectors, sentences and clips by digest), or an agent's captions.

    Raises LibraryBusy beside a run that adds the same stage, LibraryError for the library's own space.
    """
    if stage == NOTES and model not in own_tables(library.tables, stage):
        for ids in chunked(video_ids):
            library.notes.forget(equal("model", model) & one_of("video_id", ids))
        return
    with Lease(library.tables, addition_lease(stage), REMOVE_OWNER, DEFAULT_LEASE):
        library.additions.discard(stage, model, *video_ids)
        if stage == "extracts":
            library.extracts.forget_empty(model)
