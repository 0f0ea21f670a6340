"""Audit a library: rows of videos and additions against counts and digests, pictures, and leases; delete leftovers.

A sweep reads only columns of ids and numbers, and not even those where the numbers of rows are right.
"""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kinodex.index.annotations import NOTES, grouped
from kinodex.index.errors import LibraryDamaged
from kinodex.index.keyed_rows import WrongRows, wrong_rows
from kinodex.index.library import Library
from kinodex.index.metadata import LIVE_SOURCE
from kinodex.index.rows import VideoRow
from kinodex.index.store.database import Tables, own_tables
from kinodex.index.store.indexes import present
from kinodex.index.store.leases import Process, is_known, is_running
from kinodex.index.store.schema import (
    ADDED_DIGEST,
    CHECKSUM,
    LEFT_OUT,
    OWN_ROW,
    ROWS_AT_ONCE,
    SHARED_STAGES,
    STAGES,
    VIDEO_DIGESTS,
    Filter,
    all_of,
    as_text,
    at_least,
    chunked,
    digests_by_video,
    equal,
    fits_one_filter,
    one_of,
    other_than,
    own_columns,
    own_hashes,
    read_batches,
    read_digests,
    read_video_digests,
    row_hashes,
)
from kinodex.index.videos.visibility import complete_videos, damaged_rows
from kinodex.index.videos.writer import (
    Counts,
    counts_of,
    expected_rows,
    ingested_only,
    is_complete,
    key_columns,
    rows_by_video,
)

# Check the rows of optional stages: each row belongs to a complete addition, and each addition has its rows.

Key = tuple[str, str]
"""Video id and model."""


@dataclass(frozen=True, slots=True)
class AddedRows:
    """Videos for which a model's rows of one stage are not as they should be; ids are sorted."""

    stage: str
    model: str
    video_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AddedAudit:
    """Problems of additions, by stage and model."""

    leftovers: tuple[AddedRows, ...] = ()
    """Rows of no complete addition, or additions to videos that are gone: interrupted runs left them."""
    broken: tuple[AddedRows, ...] = ()
    """Complete additions with other rows, or other values in them, than were added: discard and add them again."""
    unchecked: int = 0
    """Complete additions without digests, as a repair writes them: altered values of theirs are not found."""


def audit_added(library: Library, stages: Sequence[str] = STAGES, deep: bool = False) -> AddedAudit:
    """Check the additions of some stages, vectors only where `deep`; what seems broken is checked a second time."""
    leftovers: list[AddedRows] = []
    broken: list[AddedRows] = []
    unchecked = 0
    for stage in stages:
        left, wrong, undigested = _check(library, stage, deep, None)
        unchecked += undigested
        if wrong:
            ids = fits_one_filter(sorted({video_id for video_id, _ in wrong}))
            wrong &= _check(library, stage, deep, ids)[1]
        leftovers += _by_model(stage, left)
        broken += _by_model(stage, wrong)
    return AddedAudit(tuple(leftovers), tuple(broken), unchecked)


def discard_added(library: Library, found: Iterable[AddedRows]) -> None:
    """Delete these additions and their rows."""
    for each in found:
        library.additions.discard(each.stage, each.model, *each.video_ids)


def _check(library: Library, stage: str, deep: bool, video_ids: Sequence[str] | None) -> tuple[set[Key], set[Key], int]:
    """Find leftovers and broken additions, of additions read before their rows, and count those without a digest."""
    tables = library.tables
    chosen = [] if video_ids is None else [one_of("video_id", video_ids)]
    rows = tables.rows("additions", all_of([*chosen, equal("stage", stage)]))
    keys = [(row["video_id"], row["model"]) for row in rows.select(["video_id", "model"]).to_pylist()]
    promised = dict(zip(keys, rows.to_pylist(), strict=True))
    hashes = dict(zip(keys, own_hashes(tables.schema("additions"), rows), strict=True))
    digested = {key for key, row in promised.items() if row.get(ADDED_DIGEST) is not None}
    reads_values = bool(digested) and (deep or stage in SHARED_STAGES)
    held, digests = _held(library, stage, chosen, reads_values)
    gone = {video_id for video_id, _ in promised} - complete_videos(tables, video_ids, as_stored=True).keys()
    stray = {key for key in promised if key[0] in gone}
    broken = {key for key, row in promised.items() if held[key] != row["rows"]}
    if reads_values:
        broken |= {key for key in digested if promised[key][ADDED_DIGEST] != as_text(digests[key] + hashes[key])}
    return (held.keys() - promised.keys()) | stray, broken - stray, len(promised) - len(digested)


def held_rows(library: Library, stage: str) -> Counter[Key]:
    """Count the rows of a stage's tables, by video and model."""
    return _held(library, stage, (), reads_values=False)[0]


def _held(
    library: Library, stage: str, chosen: Sequence[Filter], reads_values: bool
) -> tuple[Counter[Key], Counter[Key]]:
    """Count the rows of a stage's tables, and compute their digests on request, by video and model."""
    tables = library.tables
    held: Counter[Key] = Counter()
    digests: Counter[Key] = Counter()
    if stage not in SHARED_STAGES:
        for digest, name in own_tables(tables, stage).items():
            if name == library.vectors_table:
                continue
            for batch in _batches(tables, name, chosen, ["video_id"], reads_values):
                counts = batch.column("video_id").value_counts().to_pylist()
                held.update({(each["values"], digest): each["counts"] for each in counts})
                if reads_values:
                    of_videos = digests_by_video(batch)
                    digests.update({(video_id, digest): value for video_id, value in of_videos.items()})
        return held, digests
    for name in present(tables, [stage]):
        for batch in _batches(tables, name, chosen, ["video_id", "model"], reads_values):
            for row in grouped(batch, ["video_id", "model"]):
                if row["model"] is not None:  # subtitles have none
                    held[row["video_id"], row["model"]] += row["count_all"]
            if reads_values:
                keys = zip(*(batch.column(key).to_pylist() for key in ("video_id", "model")), strict=True)
                for key, row_hash in zip(keys, row_hashes(batch), strict=True):
                    digests[key] += row_hash
    return held, digests


def _batches(
    tables: Tables, name: str, where: Sequence[Filter], keys: Sequence[str], reads_values: bool
) -> Iterator[pa.RecordBatch]:
    return read_batches(tables, name, where) if reads_values else tables.batches(name, all_of(where), keys)


def _by_model(stage: str, keys: Iterable[Key]) -> list[AddedRows]:
    ids: defaultdict[str, list[str]] = defaultdict(list)
    for video_id, model in keys:
        ids[model].append(video_id)
    return [AddedRows(stage, model, tuple(sorted(ids[model]))) for model in sorted(ids)]


# Compare the rows of complete videos with the digests that were written with them.

LARGE = "frames"
"""Ingest's table that only a deep check reads, beside that of vectors."""


@dataclass(frozen=True, slots=True)
class AlteredRows:
    """Videos whose values in a table are not those that were written; ids are sorted."""

    table: str
    video_ids: tuple[str, ...]


def check_values(library: Library, video_ids: Sequence[str]) -> None:
    """Raise DamagedRows where one of these videos has altered values in the tables that ingest fills."""
    for ids in chunked(video_ids):
        for found in altered_rows(library, True, ids)[0]:
            raise damaged_rows(f"a value in {found.table}", found.video_ids[0], library.uri)


def altered_rows(
    library: Library, deep: bool = False, video_ids: Sequence[str] | None = None
) -> tuple[tuple[AlteredRows, ...], int]:
    """Find videos with altered values, of frames and vectors only where `deep`, and count those without digests."""
    altered, unchecked = _altered_in(library, deep, video_ids)
    suspects = sorted(set().union(*altered.values()))
    if suspects:
        again, _ = _altered_in(library, deep, fits_one_filter(suspects))
        altered = {name: ids & again.get(name, set()) for name, ids in altered.items()}
    found = (AlteredRows(name, tuple(sorted(ids))) for name, ids in sorted(altered.items()) if ids)
    return tuple(found), unchecked


def _altered_in(library: Library, deep: bool, video_ids: Sequence[str] | None) -> tuple[dict[str, set[str]], int]:
    """Read the rows of `videos` first: those of the other tables are older than they are."""
    tables = library.tables
    chosen = [] if video_ids is None else [one_of("video_id", video_ids)]
    filled = expected_rows(library.vectors_table)
    altered: dict[str, set[str]] = defaultdict(set)
    promised: dict[str, dict[str, Any]] = {}
    unchecked = 0
    for batch in tables.batches("videos", all_of(chosen), rows=ROWS_AT_ONCE, as_stored=True):
        ids = batch.column("video_id").to_pylist()
        texts = batch.column(VIDEO_DIGESTS).cast(pa.binary()).to_pylist()
        unchecked += sum(text is None for text in texts)
        for video_id, text, row_hash in zip(ids, texts, own_hashes(tables.schema("videos"), batch), strict=True):
            if text is not None:
                found = promised[video_id] = read_video_digests(text)
                if found.keys() != {*filled, OWN_ROW} or found[OWN_ROW] != as_text(row_hash):
                    altered[OWN_ROW].add(video_id)
    for name in filled:
        if promised and (deep or name not in (LARGE, library.vectors_table)):
            held = read_digests(tables, name, [*chosen, *ingested_only(name)])
            altered[name] |= {
                id_ for id_, digests in promised.items() if digests.get(name, as_text(held[id_])) != as_text(held[id_])
            }
    return altered, unchecked


# Check the videos of a library against the counts and digests in their rows, and delete the leftovers of ingests.


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
    tables, vectors_table = library.tables, library.vectors_table
    videos = complete_videos(tables, as_stored=True)
    held = counts_of(tables, vectors_table)
    suspects = [row.video_id for row in videos.values() if not is_complete(row, held, vectors_table)]
    again = counts_of(tables, vectors_table, fits_one_filter(suspects)) if suspects else {}
    rows = complete_videos(tables, fits_one_filter(suspects), as_stored=True).values() if suspects else ()
    wrong = [row for row in rows if not is_complete(row, again, vectors_table)]
    once = {name: Counts(counts.distinct, counts.distinct) for name, counts in again.items()}
    if once:
        once["speech"] = _lines_once(tables, wrong, again["speech"])
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


def delete_doubles(tables: Tables, vectors_table: str, video_ids: Sequence[str] | None = None) -> None:
    """Delete the second copy of each row of videos, or all, that have some twice."""
    counts = counts_of(tables, vectors_table, video_ids)
    for name, held in counts.items():
        _delete_doubles(tables, name, [id_ for id_ in held.rows if held.rows[id_] > held.distinct[id_]])
    for row in complete_videos(tables, video_ids, as_stored=True).values():
        _delete_second_lines(tables, row, counts["speech"].rows.get(row.video_id, 0))


# Lines have no number: where each of a video's stands as often, these are copies of the same.


def _lines_once(tables: Tables, videos: Sequence[VideoRow], held: Counts) -> Counts:
    """Count the lines of videos without copies."""
    times = {row.video_id: _copies(tables, row, held.rows.get(row.video_id, 0)) for row in videos}
    once = {id_: count // times.get(id_, 1) for id_, count in held.rows.items()}
    return Counts(once, once)


def _copies(tables: Tables, row: VideoRow, held: int) -> int:
    """Say how often each line of a video stands; 1 where not all stand as often as their number says."""
    if not row.speech_lines or held <= row.speech_lines or held % row.speech_lines:
        return 1
    times = held // row.speech_lines
    of_video = [equal("video_id", row.video_id), *ingested_only("speech")]
    counts = Counter(each for batch in read_batches(tables, "speech", of_video) for each in row_hashes(batch))
    return times if all(count % times == 0 for count in counts.values()) else 1


def _delete_second_lines(tables: Tables, row: VideoRow, held: int) -> None:
    times = _copies(tables, row, held)
    if times == 1:
        return
    columns = [name for name in own_columns(tables.schema("speech")) if name not in LEFT_OUT]

    def others(rows: pa.Table) -> list[int]:
        places: dict[int, list[int]] = defaultdict(list)
        for row_id, row_hash in zip(rows["_rowid"].to_pylist(), row_hashes(rows.select(columns)), strict=True):
            places[row_hash].append(row_id)
        return [row_id for same in places.values() for row_id in same[len(same) // times :]]

    tables.delete_chosen("speech", columns, all_of([equal("video_id", row.video_id), *ingested_only("speech")]), others)


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


# Check the stored pictures of a library: each still has the bytes that were written.

PICTURES_AT_ONCE = 256
JPEG_START, JPEG_END = b"\xff\xd8", b"\xff\xd9"
"""Markers SOI and EOI (ITU-T T.81, B.1.1.3)."""


def damaged_pictures(library: Library) -> tuple[str, ...]:
    """Find videos with damaged pictures by their checksums; without one, by how a JPEG begins and ends."""
    columns = ["video_id", "jpeg", CHECKSUM]
    damaged: set[str] = set()
    for batch in library.tables.batches("frames", None, columns, rows=PICTURES_AT_ONCE):
        checksums = batch[CHECKSUM].to_pylist()
        ids, jpegs = batch["video_id"].to_pylist(), batch["jpeg"].to_pylist()
        for video_id, jpeg, checksum in zip(ids, jpegs, checksums, strict=True):
            begins_and_ends = jpeg.startswith(JPEG_START) and jpeg.endswith(JPEG_END)
            if not (begins_and_ends if checksum is None else zlib.crc32(jpeg) == checksum):
                damaged.add(video_id)
    return tuple(sorted(damaged))


# Holders of a library's leases at this moment, read without waiting for anybody.

INGEST = "ingest"
"""The lease of a run that writes videos."""
MAINTENANCE = "maintain"


def addition_lease(stage: str) -> str:
    """Name the lease of a run that adds an optional stage."""
    return f"add {stage}"


WRITERS = (INGEST, *map(addition_lease, STAGES))
"""Leases whose holders may have written half of something."""


@dataclass(frozen=True, slots=True)
class LeaseHolder:
    """A holder of a lease. `is_dead`: its process was on this machine and has ended; elsewhere this is unknown."""

    lease: str
    owner: str
    host: str
    pid: int
    since: datetime
    beat_at: datetime
    """Its last sign of life, by its own machine's clock."""
    is_dead: bool

    def __str__(self) -> str:
        return f"{self.owner} on {self.host}, process {self.pid}, since {self.since:%Y-%m-%d %H:%M:%S} UTC"


def lease_holders(tables: Tables) -> tuple[LeaseHolder, ...]:
    """Read the holders of all leases, by name."""
    found = []
    for row in tables.rows("leases", other_than("token", "")).sort_by("name").to_pylist():
        process = Process(row["host"], row["boot"], row["pid"], row["process_start"])
        is_dead = is_known(process) and not is_running(process)
        since = row["since"], row["beat_at"]
        found.append(LeaseHolder(row["name"], row["owner"], row["host"], row["pid"], *since, is_dead))
    return tuple(found)
