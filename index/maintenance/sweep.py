"""Delete the leftovers of interrupted ingests, and check a whole library against the counts and digests in its rows.

A sweep reads only columns of ids and numbers, and not even those where the numbers of rows are right.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from index.annotations.clip_captions import CLIPS_TABLE
from index.errors import LibraryDamaged
from index.library import Library
from index.maintenance.altered import AlteredRows, altered_rows
from index.maintenance.audit_annotations import AddedAudit, audit_added
from index.maintenance.pictures import damaged_pictures
from index.store.database import Tables
from index.store.filters import all_of, chunked, equal, fits_one_filter, one_of
from index.videos.row_counts import (
    Counts,
    counts_of,
    expected_rows,
    ingested_only,
    is_complete,
    key_columns,
    rows_by_video,
)
from index.videos.visibility import complete_videos


@dataclass(frozen=True, slots=True)
class Audit:
    """Rows of a whole library compared with the counts in its videos; ids are sorted."""

    videos: int
    orphans: tuple[str, ...]
    """Ids with rows but no row in `videos`: left by an interrupted ingest, or written by one at this moment."""
    doubled: tuple[str, ...]
    """Complete videos with rows that are there twice: readers see each once, and a sweep deletes the others."""
    broken: tuple[str, ...]
    """Complete videos with other rows than they should have: discard them and ingest them again."""
    damaged: tuple[str, ...] = ()
    """Complete videos with pictures that were damaged on the disk; only a deep audit looks."""
    altered: tuple[AlteredRows, ...] = ()
    """Complete videos with other values than were written; frames and vectors only of a deep audit."""
    unchecked: int = 0
    """Complete videos that were made before there were digests: altered values of theirs are not found."""
    added: AddedAudit = field(default_factory=AddedAudit)
    """The same for the rows of optional stages."""

    @property
    def problems(self) -> tuple[str, ...]:
        """One line for each problem; empty where all is well."""
        found = {
            "has rows but is not complete": self.orphans,
            "has rows twice": self.doubled,
            "has other rows than its own row promises": self.broken,
            "has pictures that are not as they were written": self.damaged,
        }
        added = {"without its addition": self.added.leftovers, "other than was added": self.added.broken}
        return (
            *(f"video {video_id} {problem}" for problem, ids in found.items() for video_id in ids),
            *(
                f"video {video_id} has other values in {each.table} than were written"
                for each in self.altered
                for video_id in each.video_ids
            ),
            *(
                f"video {video_id} has {each.stage} by {each.model} {problem}"
                for problem, rows in added.items()
                for each in rows
                for video_id in each.video_ids
            ),
        )


def audit(library: Library, deep: bool = False) -> Audit:
    """Check that every complete video and addition has all its rows, and that there are no others; reads much.

    `deep` reads every picture and vector, too.
    """
    return replace(audit_videos(library, deep), added=audit_added(library, deep=deep))


def audit_videos(library: Library, deep: bool = False) -> Audit:
    """Check the rows that ingest writes, and clips.

    Videos that seem broken are checked a second time, since a run at work may have changed them meanwhile.
    """
    tables, vectors_table = library.tables, library.vectors_table
    videos = complete_videos(tables)
    held = counts_of(tables, vectors_table)
    suspects = [row.video_id for row in videos.values() if not is_complete(row, held, vectors_table)]
    again = counts_of(tables, vectors_table, fits_one_filter(suspects)) if suspects else {}
    rows = complete_videos(tables, fits_one_filter(suspects)).values() if suspects else ()
    wrong = [row for row in rows if not is_complete(row, again, vectors_table)]
    once = {name: Counts(counts.distinct, counts.distinct) for name, counts in again.items()}
    doubled = sorted(row.video_id for row in wrong if is_complete(row, once, vectors_table))
    broken = sorted({row.video_id for row in wrong}.difference(doubled))
    stored = _videos_with_clips(tables).union(*(counts.rows for counts in held.values()))
    orphans = tuple(sorted(stored.difference(videos)))
    damaged = tuple(video_id for video_id in damaged_pictures(library) if video_id in videos) if deep else ()
    altered, unchecked = altered_rows(library, deep)
    return Audit(
        len(videos), orphans, tuple(doubled), tuple(broken), damaged, _but(altered, {*doubled, *broken}), unchecked
    )


def _but(altered: Sequence[AlteredRows], known: Collection[str]) -> tuple[AlteredRows, ...]:
    """Leave out videos that have other rows, of which the values are others, too."""
    left = ((each.table, tuple(id_ for id_ in each.video_ids if id_ not in known)) for each in altered)
    return tuple(AlteredRows(table, ids) for table, ids in left if ids)


def sweep(library: Library) -> int:
    """Delete the rows that interrupted ingests left of incomplete videos, and return of how many videos.

    Call it when no ingest is at work, that is under its lease. Quick where there is nothing to delete.
    """
    tables = library.tables
    columns = expected_rows(library.vectors_table)
    videos = tables.rows("videos", equal("state", "complete"), ["video_id", *sorted({*columns.values()})])
    totals = {name: pc.sum(videos[column]).as_py() or 0 for name, column in columns.items()}
    uneven = [name for name, total in totals.items() if tables.count(name, all_of(ingested_only(name))) != total]
    held = {name: rows_by_video(tables, name) for name in uneven}
    clips_of = _videos_with_clips(tables)
    ids = videos["video_id"].to_pylist() if uneven or clips_of else []
    orphans = sorted(clips_of.union(*held.values()).difference(ids))
    check_leftovers(library, orphans)
    library.writer.discard(*orphans)
    repaired: set[str] = set()
    for name in uneven:
        expected = zip(ids, videos[columns[name]].to_pylist(), strict=True)
        repaired |= _delete_doubles(tables, name, [id_ for id_, count in expected if held[name][id_] > count])
    return len(orphans) + len(repaired)


def check_leftovers(library: Library, orphans: Sequence[str]) -> None:
    """Raise LibraryDamaged for videos whose rows are no leftovers: an ingest completed them, since it noted a source.

    Their rows in `videos` were lost, by an older copy of that table, say.
    """
    rows = (library.tables.rows("sources", one_of("video_id", ids), ["video_id"]) for ids in chunked(orphans))
    complete = sorted({video_id for each in rows for video_id in each["video_id"].to_pylist()})
    if complete:
        raise LibraryDamaged(
            f"got {library.uri}, a damaged library: its table of videos lacks {len(complete):,} that an ingest "
            f"completed ({complete[0]}), whose rows are there; nothing was deleted: restore that table from a copy, or "
            f"`kinodex maintain {library.uri} --repair` makes the rows again"
        )


def delete_doubles(library: Library, video_ids: Sequence[str]) -> None:
    """Delete the second copy of each row of videos that have some twice."""
    for name, counts in counts_of(library.tables, library.vectors_table, video_ids).items():
        _delete_doubles(library.tables, name, [id_ for id_ in counts.rows if counts.rows[id_] > counts.distinct[id_]])


def _videos_with_clips(tables: Tables) -> set[str]:
    """List the ids of videos with captions by agents, including those that the library no longer holds."""
    if not tables.has(CLIPS_TABLE):
        return set()
    return set(tables.rows(CLIPS_TABLE, None, ["video_id"])["video_id"].unique().to_pylist())


def _delete_doubles(tables: Tables, name: str, video_ids: Sequence[str]) -> set[str]:
    """Delete all but one of the rows of each number; return the videos that had more.

    A row that maintenance moves meanwhile is left for the next sweep.
    """
    columns = key_columns(name)
    repaired: set[str] = set()
    for ids in chunked(video_ids if len(columns) > 1 else ()):
        of_videos = one_of("video_id", ids)
        rows = pa.Table.from_batches(tables.batches(name, of_videos, columns, row_ids=True))
        first = rows.group_by(columns).aggregate([("_rowid", "min")])["_rowid_min"]
        others = rows.filter(pc.invert(pc.is_in(rows["_rowid"], value_set=first.combine_chunks())))
        tables.delete(name, of_videos & one_of("_rowid", others["_rowid"].to_pylist()))
        repaired.update(others["video_id"].to_pylist())
    return repaired
