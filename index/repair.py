"""Repair a library that lost a table: rows of videos are made again from all that is left, and what is lost is said.

Nothing is deleted. Rows of which no whole video can be made stay, and are named: the next ingest takes them for
leftovers of an interrupted one, and reads their sources again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import uuid4

import pyarrow as pa

from kinodex.index.added_rows import held_rows
from kinodex.index.clocks import first_zero_s
from kinodex.index.errors import LibraryDamaged, NotALibrary
from kinodex.index.lease_holders import MAINTENANCE, WRITERS
from kinodex.index.library import Library
from kinodex.index.maintain import OWNER, check_writable
from kinodex.index.rows import SourceRow
from kinodex.index.spaces.fingerprint import NO_SPACE, Fingerprint
from kinodex.index.store.database import Tables
from kinodex.index.store.held_tables import space_tables
from kinodex.index.store.late_tables import create_table
from kinodex.index.store.leases import several_leases
from kinodex.index.store.places import is_local, place, table_names, table_place
from kinodex.index.store.schema import STAGES, ZERO, own_vectors_table, primary_key, read_heading, table_schemas
from kinodex.index.sweep import delete_doubles
from kinodex.index.text import composed
from kinodex.index.videos.ingest_log import IngestLog
from kinodex.index.videos.row_counts import counts_of, expected_rows
from kinodex.redaction import redact_uri

LOGS = ("leases", "sources", "failures", "runs")
"""Tables that hold nothing of videos: without their rows an ingest only looks at more than it had to."""
UNKNOWN_CODEC = "unknown"


@dataclass(frozen=True, slots=True)
class FileFacts:
    """Facts about a video that its file alone knows, beside its rows."""

    fps: float | None
    width_px: int
    height_px: int
    codec: str
    earliest_s: float | None = None
    """When the first of its pictures, sounds and texts begins."""


@dataclass(frozen=True, slots=True)
class Repair:
    """Report of a repair: ids of the videos whose row was made again, and a line for each thing that is lost."""

    videos: tuple[str, ...]
    made: tuple[str, ...]
    """Tables that were missing."""
    lost: tuple[str, ...]


ReadFacts = Callable[[str, str], FileFacts | None]
"""Reads the facts of the video of this id from the source at this URI; None where that no longer holds it."""


def repair(uri: str, usual: Mapping[str, Any], read_facts: ReadFacts) -> Repair:
    """Make missing tables of a library again: those of the log empty, `videos` with a row for each whole video.

    `usual` are the settings of an ingest that nobody set; the library's own are looked for in the report of its last
    ingest. A table of these that cannot be read is set aside first. Raises NotALibrary where there is no table,
    LibraryBusy beside any run, LibraryDamaged where too much is lost.
    """
    where = place(uri)
    if not table_names(where):
        raise NotALibrary(f"got {uri}, which holds no table of a library; delete what is there, and ingest again")
    check_writable(where)
    lost = [line for name in (*LOGS, "videos") for line in _set_aside_unreadable(Tables(where), name)]
    tables = Tables(where)
    there = set(tables.whole_names())
    settings, space, unknown = _heading(tables, there, usual)
    schemas = table_schemas(settings, space)
    tables.expect(schemas)
    made = [name for name in schemas if name not in there]
    if "leases" in made:
        tables.create("leases", schemas["leases"])
    with several_leases(tables, (MAINTENANCE, *WRITERS), OWNER):
        for name in made:
            if name not in ("leases", "additions", "videos"):
                create_table(tables, name, schemas[name])
                lost.append(f"the rows of the table {name}")
        if "videos" in made:
            rows, unmade = _video_rows(tables, space, settings, read_facts, None)
            # In one commit with the table: an ingest that saw it empty would take all rows for leftovers.
            tables.create("videos", schemas["videos"], pa.Table.from_pylist(rows, schema=schemas["videos"]))
        else:
            rows, unmade = _video_rows(tables, space, settings, read_facts, _ids(tables, "videos"))
            tables.upsert("videos", ["video_id"], rows)
        for name in ("videos", *LOGS):
            tables.delete_doubles(name, primary_key(tables.schema(name)))
        delete_doubles(tables, own_vectors_table(space))
        if "additions" in made:
            tables.create("additions", schemas["additions"], _additions(Library.open(where), schemas["additions"]))
            lost.append("additions: all of whose rows some are there count as whole, with settings that are not known")
        if rows:
            unmade.append("of all these videos: titles that were no file names, and numbers of damaged packets")
    return Repair(tuple(row["video_id"] for row in rows), tuple(made), (*lost, *unknown, *unmade))


def _set_aside_unreadable(tables: Tables, name: str) -> list[str]:
    """Move a table that is there and cannot be read out of the way, and say so."""
    try:
        if tables.has(name):
            tables.rows(name)
        return []
    except LibraryDamaged:
        if not is_local(tables.uri):
            raise
    aside = f".damaged-{name}-{uuid4().hex[:8]}"
    Path(table_place(tables.uri, name)).rename(Path(tables.uri) / aside)
    return [f"the table {name}, which cannot be read; its files are now in {aside}"]


def _heading(
    tables: Tables, there: set[str], usual: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Fingerprint, list[str]]:
    """Read the library's settings and space, and say which settings are lost."""
    if "videos" in there:
        heading = read_heading(tables["videos"].schema, tables.uri)
        return heading.settings, heading.fingerprint, []
    runs = IngestLog(tables).runs() if "runs" in there else []
    reports = [run.report for run in runs if run.kind == "ingest" and "settings" in run.report]
    known: Mapping[str, Any] = reports[0]["settings"] if reports else {}
    unknown = [name for name in usual if name not in known]
    lost = [f"the library's settings {', '.join(unknown)}: taken for the usual ones"] if unknown else []
    settings = {name: known.get(name, value) for name, value in usual.items()}
    return settings, _own_space(tables, there, known.get("space_digest")), lost


def _own_space(tables: Tables, there: set[str], digest: str | None) -> Fingerprint:
    """Find the space that ingest fills, among those that frames have vectors in."""
    spaces = list(space_tables(tables).values())
    added: set[str] = set()
    if "additions" in there:
        added = {row["model"] for row in tables.rows("additions", None, ["stage", "model"]).to_pylist()}
    own = [each for each in spaces if each.digest == digest] or [each for each in spaces if each.digest not in added]
    if not own and digest == NO_SPACE.digest:
        return NO_SPACE
    if len(own) != 1:
        held = ", ".join(str(each) for each in spaces) or "no table of vectors"
        raise LibraryDamaged(
            f"cannot repair {tables.uri}: its videos are gone, and nothing left says which space is its own (it holds "
            f"{held}); restore it from a copy, or ingest into a new library"
        )
    return own[0]


def _ids(tables: Tables, name: str) -> set[str]:
    return set(tables.rows(name, None, ["video_id"])["video_id"].to_pylist())


def _video_rows(
    tables: Tables, space: Fingerprint, settings: Mapping[str, Any], read_facts: ReadFacts, present: set[str] | None
) -> tuple[list[dict[str, Any]], list[str]]:
    """Make the rows of all whole videos that have none, and say what is lost of them and of the others.

    Beside the `present` rows of a table of videos that is there, only videos count that the log calls complete.
    """
    own, held = own_vectors_table(space), counts_of(tables, own_vectors_table(space))
    seen = sorted(IngestLog(tables).sources().values(), key=lambda row: row.seen_at, reverse=True)
    sources = {row.video_id: row for row in seen if row.video_id}  # of several the one that was seen first
    with_rows = {video_id for counts in held.values() for video_id in counts.rows}
    wanted = with_rows | sources.keys() if present is None else (with_rows & sources.keys()) - present
    spans = _extremes(tables, "segments", start_s="min", end_s="max")  # segments cover a video without a gap
    sizes = _extremes(tables, "frames", width_px="max", height_px="max")
    whole = {"sample_fps": float(settings.get("fps", 1.0)), "space": space.name, "state": "complete"}
    rows: list[dict[str, Any]] = []
    lost: list[str] = []
    for video_id in sorted(wanted):
        source = sources.get(video_id)
        name = video_id if source is None else f"{video_id} ({source.uri})"
        frames = held["frames"].distinct.get(video_id, 0)
        vectors = frames if own is None else held[own].distinct.get(video_id, 0)
        why = None if video_id in spans else f"it has {frames:,} frames and no segment"
        why = why if frames == vectors else f"it has {frames:,} frames and {vectors:,} vectors"
        if why is not None:
            lost.append(f"video {name}: {why}; the next ingest reads its source again")
            continue
        facts = None if source is None else read_facts(source.uri, video_id)
        if facts is None:
            also = "" if source else "title, source, "
            lost.append(f"of video {name}: {also}frame rate, codec and size")
            width_px, height_px = sizes.get(video_id, (0, 0))
            facts = FileFacts(None, width_px, height_px, UNKNOWN_CODEC)
        counts = {column: held[table].distinct.get(video_id, 0) for table, column in expected_rows(own).items()}
        start_s, end_s = spans[video_id]
        zero_s = None
        if source is not None and facts.earliest_s is not None:
            zero_s = first_zero_s(source.uri, min(facts.earliest_s, start_s))
        times = {"start_s": start_s, "duration_s": end_s - start_s, ZERO: zero_s}
        rows.append(_row(video_id, source, facts) | counts | times | whole)
    return rows, lost


def _additions(library: Library, schema: pa.Schema) -> pa.Table:
    """Make the rows of additions: else the next maintenance would take all that they added for leftovers."""
    videos, now = library.video_ids(), datetime.now(UTC)
    rows = [
        {"video_id": video_id, "stage": stage, "model": model, "rows": count, "settings": "{}", "added_at": now}
        for stage in STAGES
        for (video_id, model), count in held_rows(library, stage).items()
        if video_id in videos
    ]
    return pa.Table.from_pylist(rows, schema=schema)


def _extremes(tables: Tables, name: str, **wanted: str) -> dict[str, tuple[Any, ...]]:
    """Return the least or greatest of some columns, by video."""
    rows = tables.rows(name, None, ["video_id", *wanted]).group_by("video_id").aggregate([*wanted.items()])
    found = rows.select(["video_id", *(f"{column}_{kind}" for column, kind in wanted.items())]).to_pylist()
    return {video_id: tuple(values) for video_id, *values in (row.values() for row in found)}


def _row(video_id: str, source: SourceRow | None, facts: FileFacts) -> dict[str, Any]:
    uri = f"lost:{video_id}" if source is None else redact_uri(source.uri)
    return {
        "video_id": video_id,
        "uri": uri,
        "title": video_id[:12] if source is None else composed(PurePosixPath(uri).stem),
        "fps": facts.fps,
        "width_px": facts.width_px,
        "height_px": facts.height_px,
        "codec": facts.codec,
        "decode_errors": 0,
        "ingested_at": datetime.now(UTC) if source is None else source.seen_at,
    }
