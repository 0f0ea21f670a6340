"""Check of a library's videos against the counts and digests in their rows, and deletion of the leftovers of ingests.

A sweep reads only columns of ids and numbers, and not even those where the numbers of rows are right.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow.compute as pc

from kinodex.index.added_rows import AddedAudit, audit_added
from kinodex.index.altered_rows import AlteredRows, altered_rows
from kinodex.index.annotations.notes import NOTES
from kinodex.index.damaged_pictures import damaged_pictures
from kinodex.index.errors import LibraryDamaged
from kinodex.index.keyed_rows import WrongRows, wrong_rows
from kinodex.index.library import Library
from kinodex.index.metadata import LIVE_SOURCE
from kinodex.index.second_lines import delete_second_lines, lines_once
from kinodex.index.store.database import Tables
from kinodex.index.store.filters import all_of, at_least, chunked, equal, fits_one_filter, one_of
from kinodex.index.videos.row_counts import (
    Counts,
    counts_of,
    expected_rows,
    ingested_only,
    is_complete,
    key_columns,
    rows_by_video,
)
from kinodex.index.videos.visibility import complete_videos


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
    """Complete videos without digests, as a repair writes them: altered values of theirs are not found."""
    added: AddedAudit = field(default_factory=AddedAudit)
    """The same for the rows of optional stages."""
    keyed: tuple[WrongRows, ...] = ()
    """Rows of tables with a key that stand twice, or are not as they were written."""

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
            *(problem for each in self.keyed for problem in each.problems),
        )


def audit(library: Library, deep: bool = False) -> Audit:
    """Check that complete videos and additions have all their rows, and there are no others; `deep` reads all."""
    of_videos = audit_videos(library, deep)
    return replace(of_videos, added=audit_added(library, deep=deep), keyed=wrong_rows(library.tables))


def audit_videos(library: Library, deep: bool = False) -> Audit:
    """Check the rows that ingest writes, and clips; videos that seem broken are checked a second time."""
    tables, vectors_table = library.tables, library.own_vectors
    videos = complete_videos(tables, as_stored=True)
    held = counts_of(tables, vectors_table)
    suspects = [row.video_id for row in videos.values() if not is_complete(row, held, vectors_table)]
    again = counts_of(tables, vectors_table, fits_one_filter(suspects)) if suspects else {}
    rows = complete_videos(tables, fits_one_filter(suspects), as_stored=True).values() if suspects else ()
    wrong = [row for row in rows if not is_complete(row, again, vectors_table)]
    once = {name: Counts(counts.distinct, counts.distinct) for name, counts in again.items()}
    if once:
        once["speech"] = lines_once(tables, wrong, again["speech"])
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
    """Delete the rows that interrupted ingests left, under their lease, and return of how many videos; quick."""
    tables = library.tables
    columns = expected_rows(library.own_vectors)
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
        over = {id_: count for id_, count in expected if held[name][id_] > count}
        repaired |= _delete_doubles(tables, name, list(over)) | _delete_growth(library, name, over)
    return len(orphans) + len(repaired)


def check_leftovers(library: Library, orphans: Sequence[str]) -> None:
    """Raise LibraryDamaged for videos that an ingest completed: their rows in `videos` were lost."""
    rows = (library.tables.rows("sources", one_of("video_id", ids), ["video_id"]) for ids in chunked(orphans))
    complete = sorted({video_id for each in rows for video_id in each["video_id"].to_pylist()})
    if complete:
        raise LibraryDamaged(
            f"got {library.uri}, a damaged library: its table of videos lacks {len(complete):,} that an ingest "
            f"completed ({complete[0]}), whose rows are there; nothing was deleted: restore that table from a copy, or "
            f"`kinodex maintain {library.uri} --repair` makes the rows again"
        )


def delete_doubles(tables: Tables, vectors_table: str | None, video_ids: Sequence[str] | None = None) -> None:
    """Delete the second copy of each row of videos, or all, that have some twice."""
    counts = counts_of(tables, vectors_table, video_ids)
    for name, held in counts.items():
        _delete_doubles(tables, name, [id_ for id_ in held.rows if held.rows[id_] > held.distinct[id_]])
    for row in complete_videos(tables, video_ids, as_stored=True).values():
        delete_second_lines(tables, row, counts["speech"].rows.get(row.video_id, 0))


def _videos_with_clips(tables: Tables) -> set[str]:
    """List the ids of videos with captions by agents, including those that the library no longer holds."""
    if not tables.has(NOTES):
        return set()
    return set(tables.rows(NOTES, None, ["video_id"])["video_id"].unique().to_pylist())


def _delete_growth(library: Library, name: str, promised: Mapping[str, int]) -> set[str]:
    """Delete the rows of parts that grow which their own row does not promise: see `kinodex.jobs.live`."""
    columns, of_videos = key_columns(name), library.metadata.of(list(promised))
    growing = [id_ for id_ in promised if LIVE_SOURCE in of_videos.get(id_, {})] if len(columns) > 1 else []
    for video_id in growing:
        ours = equal("video_id", video_id)
        numbers = sorted(library.tables.rows(name, ours, columns)[columns[1]].to_pylist())
        if surplus := numbers[promised[video_id] :]:
            library.tables.delete(name, ours & at_least(columns[1], surplus[0]))
    return set(growing)


def _delete_doubles(tables: Tables, name: str, video_ids: Sequence[str]) -> set[str]:
    """Delete all but one of the rows of each number, but those that move; return the videos that had more."""
    columns = key_columns(name)
    repaired: set[str] = set()
    for ids in chunked(video_ids if len(columns) > 1 else ()):
        of_videos = one_of("video_id", ids)
        counts = tables.rows(name, of_videos, columns).group_by(columns).aggregate([([], "count_all")])
        repaired.update(counts.filter(pc.greater(counts["count_all"], 1))["video_id"].to_pylist())
        tables.delete_doubles(name, columns, of_videos)
    return repaired
