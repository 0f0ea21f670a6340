"""Make a space that was added a library's own, in place: `kinodex use-space`.

The change is one commit of `videos`, whose metadata name the space: readers see all of it or nothing. What goes before
it makes the old vectors an addition like others; what comes after it embeds captions again. Each part is done where it
is not done yet, so that an interrupted change is finished by the next.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kinodex.index.errors import SpaceError, SpaceMismatch
from kinodex.index.lease_holders import MAINTENANCE, WRITERS
from kinodex.index.library import Library
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.store.digests import OWN_ROW, as_text, own_hashes, read_video_digests
from kinodex.index.store.filters import equal, other_than
from kinodex.index.store.indexes import index_text
from kinodex.index.store.leases import several_leases
from kinodex.index.store.schema import ADDED_DIGEST, SPACE_KEY, VIDEO_DIGESTS, captions_schema, identity, vectors_table
from kinodex.index.store.stored_digests import ROWS_AT_ONCE, read_digests

if TYPE_CHECKING:
    from lance import LanceDataset

OWNER = "kinodex use-space"
CAPTIONS_AT_ONCE = 256
KEY = ["video_id", "stage", "model"]


@dataclass(frozen=True, slots=True)
class SpaceChange:
    """The library's own space, and the one before, whose vectors, if it had any, are an addition now."""

    space: str
    space_digest: str
    before: str
    before_digest: str
    note: str | None = None
    """Why captions could not be embedded in it."""


def use_space(library: Library, name: str, on_step: Callable[[str], None] = lambda step: None) -> SpaceChange:
    """Make the space of this name or digest the library's own; `library` has to be opened again to see it.

    Every video with frames must have vectors there (SpaceMismatch). Nobody else may write meanwhile (LibraryBusy).
    """
    before, space = library.fingerprint, library.space(name)
    with several_leases(library.tables, (*WRITERS, MAINTENANCE), OWNER):
        if space.digest != before.digest:
            _check_whole(library, space)
            if before.has_vectors:
                on_step("the old vectors become an addition")
            _keep_old(library)
            on_step("queries move to the new space")
            _switch(library, space)
            guards, library = library.tables.guards, Library.open(library.uri)
            library.tables.guards = guards
        own = equal("stage", "vectors") & equal("model", library.fingerprint.digest)
        library.tables.delete("additions", own)  # every video has its vectors
        note = None
        if not library.has_caption_vectors:
            on_step("captions are embedded in the new space")
            try:
                _embed_captions(library)
            except SpaceError as error:
                note = f"captions are found by their words alone until the same is run where the model is: {error}"
    return SpaceChange(space.name, space.digest, before.name, before.digest, note)


def _check_whole(library: Library, space: Fingerprint) -> None:
    models = library.visible.models("vectors")
    rows = library.visible.videos().values()
    without = [row for row in rows if row.frames and space.digest not in models.get(row.video_id, ())]
    if without:
        raise SpaceMismatch(
            f"got space {space}, where {len(without):,} of {len(rows):,} videos have no vectors yet, "
            f"{without[0].title} among them; run `kinodex add vectors {library.uri} --space {space.name}` first"
        )


def _keep_old(library: Library) -> None:
    """Write the old vectors' rows of `additions`, and whose vectors the captions have."""
    tables, old = library.tables, library.fingerprint
    if SPACE_KEY not in (tables.schema("captions").metadata or {}):
        tables.commit("captions", partial(_note_space, space=old))
    if not old.has_vectors:
        return
    schema, now = tables.schema("additions"), datetime.now(UTC)
    columns = ["video_id", "frames", VIDEO_DIGESTS]
    common = {"stage": "vectors", "model": old.digest, "settings": json.dumps({"space": old.name}), "added_at": now}
    for batch in tables.batches("videos", other_than("frames", 0), columns, rows=ROWS_AT_ONCE):
        held = batch.to_pylist()
        rows = [common | {"video_id": row["video_id"], "rows": row["frames"]} for row in held]
        hashes = own_hashes(schema, pa.Table.from_pylist(rows, schema))
        for row, video, row_hash in zip(rows, held, hashes, strict=True):
            written = read_video_digests(video[VIDEO_DIGESTS] or "").get(library.vectors_table)
            row[ADDED_DIGEST] = written and as_text(int(written, 16) + row_hash)
        tables.upsert("additions", KEY, rows)


def _switch(library: Library, space: Fingerprint) -> None:
    """Write `videos` again, with another space in its rows and metadata, in one commit."""
    tables, new = library.tables, vectors_table(space)
    schema = tables.schema("videos").with_metadata({**tables.schema("videos").metadata, **identity(space)})
    of_space = equal("stage", "vectors") & equal("model", space.digest)
    added = tables.rows("additions", of_space)
    hashes = dict(zip(added["video_id"].to_pylist(), own_hashes(tables.schema("additions"), added), strict=True))
    digests = dict(zip(added["video_id"].to_pylist(), added[ADDED_DIGEST].to_pylist(), strict=True))

    def switched(batch: pa.RecordBatch) -> pa.Table:
        names = pa.array([space.name] * batch.num_rows, pa.string())
        after = pa.Table.from_batches([batch]).set_column(schema.get_field_index("space"), schema.field("space"), names)
        rows, own = after.to_pylist(), own_hashes(schema, after)
        for row, row_hash in zip(rows, own, strict=True):
            written = read_video_digests(row[VIDEO_DIGESTS] or "")
            if not written:
                continue
            if library.own_vectors is not None:
                written.pop(library.own_vectors, None)
            id_, known = row["video_id"], digests.get(row["video_id"])
            if known:
                of_rows = int(known, 16) - hashes[id_]
            else:  # a video without frames, or one that a repair wrote
                of_rows = read_digests(tables, new, [equal("video_id", id_)])[id_]
            row[VIDEO_DIGESTS] = json.dumps(written | {new: as_text(of_rows), OWN_ROW: as_text(row_hash)})
        after = pa.Table.from_pylist(rows, schema)
        return after.cast(schema).replace_schema_metadata(schema.metadata)

    def all_switched(rows: pa.Table) -> pa.Table:
        parts = [switched(batch) for batch in rows.select(schema.names).to_batches(ROWS_AT_ONCE)]
        return pa.concat_tables([schema.empty_table(), *parts])

    tables.rewrite("videos", all_switched)


def _embed_captions(library: Library) -> None:
    """Write captions again with vectors in the library's own space, then their digests, and last that it is so."""
    tables, space = library.tables, library.fingerprint
    old = tables.schema("captions")
    schema = captions_schema(space.dim).with_metadata(old.metadata)

    def embedded(rows: pa.Table) -> pa.Table:
        texts = rows["text"].to_pylist()
        embed = library.load_space(space.digest, towers="text").embed_text if texts else None
        parts = [
            np.asarray(embed(texts[first : first + CAPTIONS_AT_ONCE]), np.float16)
            for first in range(0, len(texts), CAPTIONS_AT_ONCE)
            if embed is not None
        ]
        made = np.concatenate([np.empty((0, space.dim), np.float16), *parts])
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(made.ravel()), space.dim, mask=pa.array(~made.any(axis=1)))
        return rows.drop_columns(["vector"]).append_column("vector", vectors).select(schema.names).cast(schema)

    tables.rewrite("captions", embedded)
    index_text(tables, "captions")
    _digest_captions(library)
    tables.commit("captions", partial(_note_space, space=space))


def _note_space(captions: LanceDataset, space: Fingerprint) -> None:
    """Note in the metadata of the captions whose vectors they have."""
    captions.update_schema_metadata({SPACE_KEY.decode(): identity(space)[SPACE_KEY]})


def _digest_captions(library: Library) -> None:
    tables = library.tables
    added = tables.rows("additions", equal("stage", "captions"))
    rows: list[dict[str, Any]] = added.to_pylist()
    for row, row_hash in zip(rows, own_hashes(tables.schema("additions"), added), strict=True):
        if row[ADDED_DIGEST]:
            where = [equal("video_id", row["video_id"]), equal("model", row["model"])]
            row[ADDED_DIGEST] = as_text(read_digests(tables, "captions", where)[row["video_id"]] + row_hash)
    tables.upsert("additions", KEY, rows)
