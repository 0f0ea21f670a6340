"""What readers see in one space: the library's own, or another one with the videos that have vectors there."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from index.embedding.space import Fingerprint
from index.errors import SpaceMismatch
from index.rows import VideoRow
from index.search.visibility import VisibilityCache
from index.store.schema import vectors_table
from index.store.tables import Tables
from index.store.vector_tables import find_space


@dataclass(frozen=True, slots=True)
class Seen:
    """What readers see in one space; `other` is None in the library's own."""

    catalogue: VisibilityCache
    table: str
    other: Fingerprint | None

    def videos(self, ids: Collection[str]) -> dict[str, VideoRow]:
        """The complete videos among `ids` that have vectors in this space."""
        videos = self.catalogue.videos(ids)
        if self.other is None:
            return videos
        models = self.catalogue.models("vectors", ids)
        return {id_: row for id_, row in videos.items() if self.other.digest in models.get(id_, ())}

    def check(self, ids: Collection[str]) -> None:
        """Raise SpaceMismatch if one of these complete videos has frames, and no vectors of them in this space."""
        if self.other is None:
            return
        videos = self.catalogue.videos(ids)
        for video_id in videos.keys() - self.videos(ids):
            if videos[video_id].frames:
                raise SpaceMismatch(
                    f"got space {self.other}, where {videos[video_id].title} has no vectors yet; "
                    f"run `kinodex add vectors`"
                )


def seen_in(tables: Tables, catalogue: VisibilityCache, own: Fingerprint, wanted: str | None) -> Seen:
    """A space of the library whose own one is `own`, by name or digest; raises SpaceMismatch if it is not here."""
    table, space = (vectors_table(own), own) if wanted is None else find_space(tables, wanted)
    return Seen(catalogue, table, None if space.digest == own.digest else space)
