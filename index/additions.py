"""Optional stages: rows that a model adds to videos, so that a run may stop anywhere and be resumed later.

A stage's rows come first and the video's row in `additions` last, as with `videos`: readers look only at rows of
additions that are complete, so nobody sees half of one. Leftovers of an interrupted run are deleted before it is
repeated.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kinodex.index.clocks import moved, moved_s, moved_table
from kinodex.index.conditions import compiled, query_error
from kinodex.index.errors import LibraryError
from kinodex.index.languages import language_tag
from kinodex.index.metadata import Metadata
from kinodex.index.rows import AddedFacts, AddedSource, ClipVectors, FrameVectors, VideoRow
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.store.database import Tables
from kinodex.index.store.digests import as_text, digests_by_video, row_hashes
from kinodex.index.store.filters import Filter, all_of, chunked, equal, one_of
from kinodex.index.store.held_tables import own_tables, present
from kinodex.index.store.late_tables import ensure_table
from kinodex.index.store.places import is_local
from kinodex.index.store.schema import (
    ADDED_DIGEST,
    CLIPS_PREFIX,
    LATE_TABLES,
    MAPPED_PREFIX,
    SHARED_STAGES,
    captions_space,
    clips_schema,
    vectors_schema,
    vectors_table,
)
from kinodex.index.store.stored_digests import read_batches
from kinodex.index.stored_json import read_object
from kinodex.index.vector_columns import matrix_of, with_vectors
from kinodex.index.videos.damage import check_vectors
from kinodex.index.videos.visibility import VisibilityCache, checked_stage
from kinodex.redaction import redact_values

MAPPED_NAME = re.compile(r"[a-z][a-z0-9_]*")
MAPPED_KEYS = ("video_id", "frame_no", "segment_no", "time_s", "start_s", "end_s")
"""Columns that say of what a row of a function is; the others are what it made."""


def plain_label(label: str) -> str:
    """Normalise a label as it is stored and searched: small letters, single spaces."""
    return " ".join(label.lower().split())


def append_rows(
    tables: Tables,
    visible: VisibilityCache,
    table: str,
    videos: Mapping[str, Sequence[Any]],
    **made: Callable[[Any], Any],
) -> None:
    """Append rows by video id, at times of a player: a column is what `made` makes of an object, or its attribute."""
    zeros_s = visible.zeros_s(videos)
    names = [name for name in tables.schema(table).names if name != "video_id"]
    made = {"language": lambda row: language_tag(getattr(row, "language", None)), **made}
    rows: list[dict[str, Any]] = [
        {"video_id": video_id}
        | {name: made[name](each) if name in made else getattr(each, name, None) for name in names}
        for video_id, found in videos.items()
        for each in found
    ]
    tables.append(table, [moved(row, zeros_s[row["video_id"]]) for row in rows])


class Additions:
    """Rows of the optional stages: added by a model, complete video by video.

    `stage` is one of `STAGES`; of vectors and sentences, `model` is the digest of the space. Vectors in the library's
    own space are no addition: ingest writes them, and nothing here may delete them.
    """

    def __init__(self, tables: Tables, visible: VisibilityCache, own_space: Fingerprint) -> None:
        self._tables = tables
        self._visible = visible
        self._own_space = own_space

    def add_captions(self, videos: Mapping[str, Sequence[Any]], model: str) -> None:
        """Append captions by video id: `segment_no`, `start_s`, `end_s`, `text`, `confidence` and `vector` of each.

        `vector` is the text as a unit vector `[dim]` in the library's own space, or None; else ValueError.
        """
        schema, own = self._tables["captions"].schema, self._own_space.digest
        dim, in_own = schema.field("vector").type.list_size, captions_space(schema, own) == own
        made = {"vector": lambda each: _checked_vector(each.vector, dim) if in_own else None}
        self._append("captions", videos, model, **made)

    def add_detections(self, videos: Mapping[str, Sequence[Any]], model: str) -> None:
        """Append detections by video id: `frame_no`, `time_s`, `label`, `score`, `box` and `track_id` of each."""
        self._append("detections", videos, model, label=lambda each: plain_label(each.label))

    def add_speech(self, videos: Mapping[str, Sequence[Any]], model: str, source: AddedSource = "model") -> None:
        """Append transcript lines, recognised by a model or imported: see `SpeechRow`; they may have `words`."""
        self._append("speech", videos, model, source=lambda _: source, words=_words)

    def _append(
        self, table: str, videos: Mapping[str, Sequence[Any]], model: str, **made: Callable[[Any], Any]
    ) -> None:
        append_rows(self._tables, self._visible, table, videos, model=lambda _: model, **made)

    def add_space(self, fingerprint: Fingerprint) -> None:
        """Create the table of another space, if it is missing; raises LibraryError for the library's own space."""
        self._check_not_own("vectors", fingerprint.digest)
        self._tables.create(vectors_table(fingerprint), vectors_schema(fingerprint))

    def add_vectors(self, videos: Mapping[str, FrameVectors], fingerprint: Fingerprint) -> None:
        """Append all frames' vectors in another space, made by `add_space`; raises ValueError for another dimension."""
        self._check_not_own("vectors", fingerprint.digest)
        schema, zeros_s = vectors_schema(fingerprint), self._visible.zeros_s(videos)
        parts = [
            with_vectors(id_, [rows.frame_no, moved_s(rows.time_s, zeros_s[id_])], rows.vectors, schema)
            for id_, rows in videos.items()
        ]
        self._tables.append(vectors_table(fingerprint), pa.concat_tables([schema.empty_table(), *parts]))

    def add_clip_space(self, fingerprint: Fingerprint) -> None:
        """Create the table of a video-text model's clips, if it is missing."""
        ensure_table(self._tables, vectors_table(fingerprint, CLIPS_PREFIX), clips_schema(fingerprint))

    def add_clips(self, videos: Mapping[str, ClipVectors], fingerprint: Fingerprint) -> None:
        """Append windows of videos as vectors of a model; raises ValueError for another dimension than the model's."""
        table, zeros_s = vectors_table(fingerprint, CLIPS_PREFIX), self._visible.zeros_s(videos)
        parts = [self._tables.schema(table).empty_table()]
        for id_, rows in videos.items():
            times = [moved_s(each, zeros_s[id_]) for each in (rows.start_s, rows.end_s)]
            parts.append(with_vectors(id_, [np.arange(len(rows.start_s)), *times], rows.vectors, parts[0].schema))
        self._tables.append(table, pa.concat_tables(parts))

    def clips(self, video_id: str, fingerprint: Fingerprint) -> ClipVectors:
        """Read the windows of a video as vectors of a model, in time order; none before they are complete."""
        complete = fingerprint.digest in self._visible.models("clips", [video_id]).get(video_id, ())
        table = vectors_table(fingerprint, CLIPS_PREFIX)
        where = equal("video_id", video_id) if complete else one_of("video_id", [])
        rows = self._tables.rows(table, where, ["video_id", "clip_no", "start_s", "end_s", "vector"])
        check_vectors(rows, self._tables.uri)
        rows, zero_s = rows.sort_by("clip_no"), self._visible.zeros_s([video_id])[video_id]
        start_s, end_s = (moved_s(rows[name].to_numpy(), -zero_s) for name in ("start_s", "end_s"))
        return ClipVectors(start_s, end_s, matrix_of(rows["vector"]))

    def add_mapped(self, videos: Mapping[str, pa.Table], name: str, *, is_of_videos: bool = False) -> None:
        """Append what a function made of the frames, segments or whole of videos; the first rows make the table.

        Values of whole videos, but vectors, become columns of the videos, too (see `Metadata`). Raises LibraryError for
        values of other types than those that are there, and for a column that the videos have already.
        """
        zeros_s = self._visible.zeros_s(videos)
        parts = [
            each.add_column(0, "video_id", pa.array([id_] * len(each), pa.string())) for id_, each in videos.items()
        ]
        rows = moved_table(as_one_type(parts, name), zeros_s)
        table, metadata = f"{MAPPED_PREFIX}{name}", Metadata(self._tables)
        plain = rows.select([each.name for each in rows.schema if not pa.types.is_nested(each.type)])
        if is_of_videos and not present(self._tables, [table]):
            taken = sorted(set(plain.schema.names) & metadata.columns().keys())
            if taken:
                raise LibraryError(
                    f"got a column {taken[0]} of {name}, which the videos have already; name it otherwise"
                )
        ensure_table(self._tables, table, rows.schema)  # before the columns, or these would seem taken to the next run
        if is_of_videos:
            metadata.write({row.pop("video_id"): row for row in plain.to_pylist()})
        self._tables.append(table, as_one_type([rows], name, self._tables.schema(table)))

    def drop_mapped(self, name: str) -> None:
        """Delete all that a function made, to be made by another."""
        self.discard("map", name, *self._visible.models("map"))
        for table in present(self._tables, [f"{MAPPED_PREFIX}{name}"]):
            names, metadata = set(self._tables.schema(table).names), Metadata(self._tables)
            if len(names.intersection(MAPPED_KEYS)) == 1:  # of whole videos
                metadata.drop(names & metadata.columns().keys())
            self._tables.drop(table)

    def mapped(self, name: str, where: str | None = None) -> pa.Table:
        """Read what a function made of all videos, or the rows that a condition holds for, as a player counts times.

        The metadata of the schema hold the function's text. Raises LibraryError for an unknown name, QueryError for a
        condition that cannot run.
        """
        table = own_tables(self._tables, "map").get(name)
        if table is None:
            held = ", ".join(own_tables(self._tables, "map")) or "none"
            raise LibraryError(f"got {name}, which no function made; there is {held}")
        columns = {each.name: each.type for each in self._tables.schema(table)}
        sql = None if where is None else compiled(where, columns)
        try:
            rows = self._tables[table].to_table(filter=sql)
        except ValueError as error:
            raise query_error(where or "", columns, str(error).splitlines()[0][:200]) from error
        complete = [id_ for id_, models in self._visible.models("map").items() if name in models]
        rows = rows.filter(pc.is_in(rows["video_id"], pa.array(complete, pa.string())))
        rows = moved_table(rows, {id_: -zero_s for id_, zero_s in self._visible.zeros_s(complete).items()})
        settings = self.settings("map", name)
        ordered = rows.sort_by([(each, "ascending") for each in rows.schema.names if each in MAPPED_KEYS])
        return ordered.replace_schema_metadata({key: str(settings[key]) for key in ("function", "source") if settings})

    def complete(
        self, stage: str, model: str, counts: Mapping[str, int], settings: Mapping[str, Any]
    ) -> tuple[str, ...]:
        """Make an addition visible to readers, the last thing written of it; `counts` are the rows of each video.

        Returns the ids of rejected videos, which do not have as many rows, or are gone: what was added is deleted.
        """
        self._check_not_own(stage, model)
        videos = self._visible.videos(counts)
        held, digests = _read_back(self._tables, stage, model, counts)
        rejected = [id_ for id_, count in counts.items() if id_ not in videos or held[id_] != count]
        self.discard(stage, model, *rejected)
        if is_local(self._tables.uri):
            os.sync()  # as in VideoWriter.complete: a row must not outlive the rows that it promises
        common = {"stage": stage, "model": model, "settings": json.dumps(redact_values(settings), sort_keys=True)}
        now = datetime.now(UTC)
        rows = [
            {"video_id": video_id, "rows": count, "added_at": now, **common}
            for video_id, count in counts.items()
            if video_id not in rejected
        ]
        if rows:
            hashes = row_hashes(pa.Table.from_pylist(rows, schema=self._tables.schema("additions")))
            written = zip(rows, hashes, strict=True)
            rows = [row | {ADDED_DIGEST: as_text(digests[str(row["video_id"])] + hash_)} for row, hash_ in written]
            self._tables.upsert("additions", ["video_id", "stage", "model"], rows)
        gone = counts.keys() - self._visible.videos(counts)
        self.discard(stage, model, *gone)
        return tuple(dict.fromkeys([*rejected, *gone]))

    def discard(self, stage: str, model: str, *video_ids: str) -> None:
        """Delete an addition to videos and its rows, complete or left over."""
        self._check_not_own(stage, model)
        table, of_model = stage_rows(self._tables, stage, model)
        for ids in chunked(sorted(video_ids)):
            videos = one_of("video_id", ids)
            self._tables.delete("additions", videos & equal("stage", stage) & equal("model", model))
            for name in present(self._tables, [table]):
                self._tables.delete(name, videos if not of_model else videos & of_model[0])

    def discard_leftovers(self, stage: str, model: str) -> int:
        """Delete the rows of interrupted runs, beside no other, and return of how many videos; makes a late table."""
        self._check_not_own(stage, model)
        table, of_model = stage_rows(self._tables, stage, model)
        if table in LATE_TABLES:
            ensure_table(self._tables, table)
        if not present(self._tables, [table]):
            return 0
        found = self._tables.rows(table, all_of(of_model), ["video_id"])["video_id"].unique().to_pylist()
        complete = self._visible.models(stage)
        leftovers = [video_id for video_id in found if model not in complete.get(video_id, ())]
        self.discard(stage, model, *leftovers)
        return len(leftovers)

    def pending(self, stage: str, model: str) -> list[VideoRow]:
        """List the complete videos that this model has not added its stage to, by title."""
        complete = self._visible.models(stage)
        rows = [row for row in self._visible.videos().values() if model not in complete.get(row.video_id, ())]
        return sorted(rows, key=lambda row: (row.title, row.video_id))

    def settings(self, stage: str, model: str) -> dict[str, Any]:
        """Read the settings of a model's newest addition of a stage; empty where it added nothing."""
        of_model = equal("stage", checked_stage(stage)) & equal("model", model)
        rows = self._tables.rows("additions", of_model, ["settings", "added_at"]).group_by("settings")
        newest = rows.aggregate([("added_at", "max")]).sort_by([("added_at_max", "descending")])["settings"]
        what = f"the settings of {stage} by {model} in {self._tables.uri}"
        return read_object(newest[0].as_py(), what) if len(newest) else {}

    def counts_of(self, video_ids: Sequence[str]) -> dict[tuple[str, str], int]:
        """Count the rows of the newest complete addition of each stage of these videos, by video and stage."""
        rows = self._in_order(one_of("video_id", video_ids))
        return {(row["video_id"], row["stage"]): row["rows"] for row in rows}

    def states(self, video_ids: Sequence[str], space: str) -> dict[str, str]:
        """Return a digest of each video that changes with its ingest and additions.

        Vectors count in this space alone.
        """
        columns = ["video_id", "stage", "model", "rows", "added_at"]
        held = defaultdict[str, list[str]](list)
        for ids in chunked(sorted(video_ids)):
            for row in self._tables.rows("additions", one_of("video_id", ids), columns).to_pylist():
                if row["stage"] != "vectors" or row["model"] == space:
                    held[row["video_id"]].append(" ".join(str(row[name]) for name in columns))
        videos = self._visible.videos(video_ids)
        return {
            id_: hashlib.sha256("\n".join([str(row.ingested_at), *sorted(held[id_])]).encode()).hexdigest()[:16]
            for id_, row in videos.items()
        }

    def counts(self, stage: str, model: str | None = None) -> dict[str, int]:
        """Count the rows of the newest complete addition of a stage, or a model's, for each video that has one."""
        of_model = [] if model is None else [equal("model", model)]
        rows = self._in_order(all_of([equal("stage", checked_stage(stage)), *of_model]))
        return {row["video_id"]: row["rows"] for row in rows}

    def _in_order(self, where: Filter | None) -> list[dict[str, Any]]:
        """Read additions, the newest last."""
        rows = self._tables.rows("additions", where, ["video_id", "stage", "model", "rows", "added_at"])
        in_order: list[dict[str, Any]] = rows.sort_by([("added_at", "ascending"), ("model", "ascending")]).to_pylist()
        return in_order

    def facts(self) -> tuple[AddedFacts, ...]:
        """Count videos and rows by stage and model."""
        rows = self._visible.seen(self._tables.rows("additions", None, ["video_id", "stage", "model", "rows"]))
        totals = rows.group_by(["stage", "model"]).aggregate([("rows", "count"), ("rows", "sum")])
        totals = totals.sort_by([("stage", "ascending"), ("model", "ascending")])
        counts = ("stage", "model", "rows_count", "rows_sum")
        return tuple(AddedFacts(*(row[name] for name in counts)) for row in totals.to_pylist())

    def newest_at(self) -> datetime | None:
        """Return the time of the last addition that is there; None without any."""
        times = self._tables.rows("additions", None, ["added_at"])["added_at"].to_pylist()
        return max(times, default=None)

    def _check_not_own(self, stage: str, model: str) -> None:
        if stage == "vectors" and model == self._own_space.digest:
            uri = self._tables.uri
            raise LibraryError(f"got space {self._own_space}, which is {uri}'s own: every frame has its vector")


def _read_back(tables: Tables, stage: str, model: str, video_ids: Iterable[str]) -> tuple[Counter[str], Counter[str]]:
    """Count the rows of a stage and model that each video has, and compute their digests, by video."""
    table, of_model = stage_rows(tables, stage, model)
    held: Counter[str] = Counter()
    digests: Counter[str] = Counter()
    for ids in chunked(sorted(video_ids) if present(tables, [table]) else ()):
        for batch in read_batches(tables, table, [one_of("video_id", ids), *of_model]):
            held.update(batch.column("video_id").to_pylist())
            digests.update(digests_by_video(batch))
    return held, digests


def stage_rows(tables: Tables, stage: str, model: str) -> tuple[str, list[Filter]]:
    """Find the table that holds a stage's rows, and the filter for those of one model."""
    if checked_stage(stage) in SHARED_STAGES:
        return stage, [equal("model", model)]
    if stage == "map":  # which makes its table with its first rows
        return f"{MAPPED_PREFIX}{model}", []
    spaces = own_tables(tables, stage)
    if model not in spaces:
        held = ", ".join(spaces) or "none"
        raise LibraryError(f"got space {model} of {stage}, which {tables.uri} does not hold ({held}); add it first")
    return spaces[model], []


def as_one_type(parts: Sequence[pa.Table], name: str, schema: pa.Schema | None = None) -> pa.Table:
    """Join tables to one of this schema, or of the types that hold the values of all; raises LibraryError."""
    try:
        joined = pa.concat_tables(parts, promote_options="permissive")
        return joined if schema is None else joined.select(schema.names).cast(schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowKeyError, KeyError) as error:
        raise LibraryError(
            f"the values of {name} are not all of one type, or have other columns than before ({error}); have the "
            "function return numpy or Arrow arrays of one type"
        ) from error


def _words(line: Any) -> list[dict[str, str | float]] | None:
    """Return the words of a line with their times; None where nobody knows them."""
    words = getattr(line, "words", ())  # imported lines have none
    return [{"text": each.text, "start_s": each.start_s, "end_s": each.end_s} for each in words] or None


def _checked_vector(vector: NDArray[Any] | None, dim: int) -> NDArray[np.float16] | None:
    rounded = None if vector is None else np.asarray(vector, np.float16)
    if rounded is not None and rounded.shape != (dim,):
        raise ValueError(f"a caption's vector has shape {rounded.shape}, the library's space has {dim} dimensions")
    return rounded
