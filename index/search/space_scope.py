"""The space that a search looks in: the library's own, or another one with the videos that have vectors there."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from index.embedding.space import Fingerprint
from index.errors import SpaceMismatch
from index.rows import VideoRow
from index.store.schema import vectors_table
from index.store.tables import Tables
from index.store.vector_tables import find_space
from index.videos.visibility import VisibilityCache


@dataclass(frozen=True, slots=True)
class SpaceScope:
    """Visible videos and the table of vectors of one space; `other` is None in the library's own."""

    visible: VisibilityCache
    table: str
    other: Fingerprint | None

    def videos(self, ids: Collection[str]) -> dict[str, VideoRow]:
        """Look up the complete videos among `ids` that have vectors in this space."""
        videos = self.visible.videos(ids)
        if self.other is None:
            return videos
        models = self.visible.models("vectors", ids)
        return {id_: row for id_, row in videos.items() if self.other.digest in models.get(id_, ())}

    def check(self, ids: Collection[str]) -> None:
        """Raise SpaceMismatch if one of these complete videos has frames, but no vectors of them in this space."""
        if self.other is None:
            return
        videos = self.visible.videos(ids)
        for video_id in videos.keys() - self.videos(ids):
            if videos[video_id].frames:
                raise SpaceMismatch(
                    f"got space {self.other}, where {videos[video_id].title} has no vectors yet; "
                    f"run `kinodex add vectors`"
                )


def space_scope(tables: Tables, visible: VisibilityCache, own: Fingerprint, name: str | None) -> SpaceScope:
    """Find a space of the library by name or digest, None being its own; raises SpaceMismatch if it is missing."""
    table, space = (vectors_table(own), own) if name is None else find_space(tables, name)
    return SpaceScope(visible, table, None if space.digest == own.digest else space)
