"""Taking out what a user no longer wants: whole videos, or what one model added to them.

Under the lease of whoever could be writing the same, so that nothing is taken away from under a run at work.
"""

from __future__ import annotations

from collections.abc import Sequence

from index.annotations import additions
from index.annotations import clip_captions as clips
from index.maintenance.active_leases import INGEST, adding
from index.store.filters import chunked, equal, one_of
from index.store.leases import DEFAULT_LEASE, Lease
from index.store.tables import Tables
from index.videos.ingest_log import clear_failures
from index.videos.write import discard

OWNER = "kinodex remove"


def remove_videos(tables: Tables, vectors_table: str, video_ids: Sequence[str]) -> None:
    """See Library.remove_videos."""
    with Lease(tables, INGEST, OWNER, DEFAULT_LEASE):
        for ids in chunked(video_ids):
            uris = _sources_of(tables, ids)
            discard(tables, vectors_table, ids)
            for some in chunked(uris):
                clear_failures(tables, some, None)


def _sources_of(tables: Tables, video_ids: Sequence[str]) -> list[str]:
    """URIs that hold these videos and, as far as is known, no others by now."""
    of_videos = one_of("video_id", video_ids)
    uris = {uri for name in ("videos", "sources") for uri in tables.rows(name, of_videos, ["uri"])["uri"].to_pylist()}
    for some in chunked(sorted(uris)):
        rows = tables.rows("sources", one_of("uri", some), ["uri", "video_id"]).to_pylist()
        uris -= {row["uri"] for row in rows if row["video_id"] not in video_ids}
    return sorted(uris)


def remove_added(tables: Tables, stage: str, model: str, video_ids: Sequence[str]) -> None:
    """See Library.remove_added."""
    if stage == clips.TABLE:
        for ids in chunked(video_ids):
            clips.forget(tables, equal("model", model) & one_of("video_id", ids))
        return
    with Lease(tables, adding(stage), OWNER, DEFAULT_LEASE):
        additions.discard(tables, stage, model, video_ids)
