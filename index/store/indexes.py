"""Indexes and files of tables: made when they pay, kept up to date, joined and cleaned up.

Until an index pays searches scan, which is right but slower. Only the vector index changes what is found: over many
videos it gives 98 of 100 true nearest frames (measured on a million). It is built in parts (see `plan_parts`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from operator import methodcaller
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from kinodex.index.store.database import (
    Tables,
    free_memory_bytes,
    is_local,
    open_files,
    own_tables,
    retry_on_conflict,
    space_tables,
    state_mark,
    storage_errors,
    table_place,
)
from kinodex.index.store.leases import awaited_lease
from kinodex.index.store.schema import (
    CLIPS_PREFIX,
    EXTRACTS_PREFIX,
    LATE_TABLES,
    MAPPED_PREFIX,
    SENTENCES_PREFIX,
    VECTORS_PREFIX,
)
from kinodex.index.terms import TERMS

if TYPE_CHECKING:
    from lance import CleanupCandidateFile, LanceDataset
    from lance.dataset import Index
    from lance.file import LanceFileSession
    from lance.lance.indices import IndexDescription

OF_VIDEOS = ("notes", "screen_text", "chapters")
"""Those of the late tables that hold rows of videos."""
WORDED = ("speech", "captions", "screen_text", "chapters")
"""Tables that are searched by words."""
FORGIVING = ("screen_text",)
"""Those of them that are searched for words with typos too."""
BY_VIDEO = ("frames", "segments", "captions", "detections", "speech", "videos", "additions")
"""Tables that are queried for the rows of a video."""
SMALL = ("segments", "captions", "detections", "speech", "videos", "additions", "sources", "failures", "runs")
"""Tables whose fragments are quickly joined."""
MOST_SEGMENTS = 8
"""Segments of an index, each with the rows that were new at its time. A search looks into all of them."""
MOST_MERGED_LINES = 500_000
"""From so many lines on an index of words is built again where others are merged or follow their rows into joined
fragments. Lance 14.0.2 asks for tens of gigabytes for either once a word stands in 2^20 lines, which ends the process;
building takes 2 s a million lines."""
SMALL_FRAGMENT_ROWS = 100_000
JOINED_ROWS = 1 << 20
"""Rows of the fragments that joining makes, at most: no more than a part of the vectors' index takes."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Numbers of rows from which an index pays, or is stale."""

    scalar_rows: int = 20_000
    """From here on finding a video's rows by scanning takes longer than a search should."""
    vector_rows: int = 100_000
    """Above this a scan of all vectors takes over 0.1 s. Building takes 0.4 ms a row on one core, once."""
    stale_rows: int = 10_000
    """Rows that an index does not know yet are scanned: this many cost 10 ms."""
    stale_lines: int = 2_000
    """The same for words, where as many rows cost five times as much."""
    fragments: int = 5
    """Each append is a fragment, and many slow every reader down: 100 of ten rows cost 2 ms a look, joining them 8."""
    vector_fragments: int = 200
    """Joining the fragments of vectors copies as many as a million rows."""
    picture_fragments: int = 2_000
    """Joining the fragments of `frames` copies all pictures, so it is put off far longer."""
    stale_share: float = 0.0
    """An index is not stale either before this share of its rows is new to it."""
    keep_s: float = 3600.0
    """Files that only older states of a table hold are deleted after so long: no reader needs them by then."""
    joined_rows: int = JOINED_ROWS
    """Rows of the fragments that joining makes, at most."""
    part_rows: int | None = None
    """Rows that one graph of vectors holds, at most; None: as many as the free memory takes, up to 2^20."""
    joins_only: bool = False
    """Where fragments are joined, old states stay, and indexes wait until they are stale."""


AFTER_RUN = Thresholds()
"""At the end of a run: the next search should not wait."""
DURING_RUN = Thresholds(
    vector_rows=2**62, stale_rows=100_000, stale_lines=100_000, stale_share=0.05, fragments=100,
    joined_rows=SMALL_FRAGMENT_ROWS, joins_only=True,
)  # fmt: skip
"""Beside a run: what it costs grows with the rows that are new, not with those that are there.

So new rows become a segment of an index, and segments are merged once they are many; a fragment that was joined is
not joined again; and the graphs are left for the end.
"""


def refresh(tables: Tables, when: Thresholds = AFTER_RUN) -> None:
    """Make the indexes that pay by now, update stale ones, join fragments and delete outdated files; none need stop."""
    vectors = [
        name for prefix in (VECTORS_PREFIX, SENTENCES_PREFIX, CLIPS_PREFIX) for name in space_tables(tables, prefix)
    ]
    extracts = own_tables(tables, "extracts").values()
    late = [*present(tables, OF_VIDEOS), *own_tables(tables, "mapped").values(), *extracts]
    written = [*present(tables, WORDED), *extracts]
    with storage_errors(tables.uri):
        join_fragments(tables, "frames", when.picture_fragments, when)
        for name in (*SMALL, *late):
            join_fragments(tables, name, when.fragments, when)
        for name in vectors:
            join_fragments(tables, name, when.vector_fragments, when)
        for name in (*BY_VIDEO, *late, *vectors):
            _index_values(tables, name, "video_id", when)
        _index_values(tables, "frames", "frame_key", when)
        _index_values(tables, "sources", "uri", when)
        _index_values(tables, "detections", "label", when)
        for name in (*vectors, "captions"):
            _index_vectors(tables, name, when)
        for name in written:
            # Searches that forgive typos look into the index alone: it may lack no line.
            stale_lines = 0 if name in FORGIVING and not when.joins_only else when.stale_lines
            if not _indexes(tables[name], TERMS):  # a process that was killed while it joined fragments left none
                index_text(tables, name)
            elif _is_stale(tables[name], TERMS, stale_lines, when.stale_share):
                _take_in(tables, name, TERMS, when)
        if not when.joins_only:
            optimize(tables, "leases", when)  # renewed every few seconds, each time as a new version of the table


def clean(tables: Tables, when: Thresholds) -> None:
    """Delete what only old states of any table hold; that reads the list of files of each state."""
    for name in tables.whole_names():
        delete_old_states(tables, name, when.keep_s)


def is_worded(name: str) -> bool:
    """True for a table that is searched by words."""
    return name in WORDED or name.startswith(EXTRACTS_PREFIX)


def index_text(tables: Tables, name: str) -> None:
    """Build a word index over the terms of lines as they are stored, with positions for "quoted phrases"."""
    as_they_are: dict[str, Any] = {
        "base_tokenizer": "whitespace",
        "with_position": True,
        **dict.fromkeys(("lower_case", "ascii_folding", "stem", "remove_stop_words"), False),
        "max_token_length": None,
    }
    _build(tables, name, lambda table: table.create_scalar_index(TERMS, "INVERTED", f"by_{TERMS}", **as_they_are))


def forget_deleted(tables: Tables, name: str) -> None:
    """Rebuild indexes without the values of deleted rows; one of vectors is dropped, for `refresh` to build."""
    for index in tables[name].describe_indices():
        by, column = index.name, index.field_names[0]
        if column == "vector":
            _build(tables, name, methodcaller("drop_index", by))
        elif column == TERMS:
            index_text(tables, name)
        else:
            _index_column(tables, name, column, by)


def _index_column(tables: Tables, name: str, column: str, by: str) -> None:
    kind: Literal["BITMAP", "BTREE"] = "BITMAP" if column == "label" else "BTREE"
    _build(tables, name, lambda table: table.create_scalar_index(column, kind, by))


def _build(tables: Tables, name: str, step: Callable[[LanceDataset], Any]) -> None:
    """Do something to the newest state of a table, again if another commit comes first."""
    retry_on_conflict(lambda: step(tables.to_write(name)))


def small_fragments(tables: Tables, name: str) -> int:
    """Count the fragments of a table that are too small to stay as they are."""
    return int(tables[name].stats.dataset_stats(SMALL_FRAGMENT_ROWS)["num_small_files"])


def join_fragments(tables: Tables, name: str, many: int, when: Thresholds) -> None:
    """Join the fragments of a table if there are too many."""
    if when.joins_only and _has_many_lines(tables, name):
        many *= 10  # for its index of words is built again
    if small_fragments(tables, name) > many:
        if when.joins_only:
            _join(tables, name, when)
        else:
            optimize(tables, name, when)


def optimize(tables: Tables, name: str, when: Thresholds) -> None:
    """Join fragments, delete what only old states hold, and bring the table's indexes up to date, in this order."""
    _join(tables, name, when)
    delete_old_states(tables, name, when.keep_s)
    rebuilt = [[TERMS]] if _has_many_lines(tables, name) else []
    # The parts of the vectors' index are chosen by `plan_parts`.
    others = [each.name for each in tables[name].describe_indices() if each.field_names not in ([COLUMN], *rebuilt)]
    if others:
        _build(tables, name, lambda table: table.optimize.optimize_indices(index_names=others))


def _join(tables: Tables, name: str, when: Thresholds) -> None:
    has_many_lines = _has_many_lines(tables, name)
    if has_many_lines:  # until it is there again, a search for words scans the lines
        _build(tables, name, _drop_words)
    _build(tables, name, lambda table: table.optimize.compact_files(target_rows_per_fragment=when.joined_rows))
    if has_many_lines:
        index_text(tables, name)


def _has_many_lines(tables: Tables, name: str) -> bool:
    return is_worded(name) and tables[name].count_rows() > MOST_MERGED_LINES


def _drop_words(table: LanceDataset) -> None:
    for index in _indexes(table, TERMS):
        table.drop_index(index.name)


def _index_values(tables: Tables, name: str, column: str, when: Thresholds) -> None:
    """Index a column from some number of rows on, and bring its index up to date once it is stale."""
    table = tables[name]
    if not _indexes(table, column):
        if table.count_rows() >= when.scalar_rows:
            _index_column(tables, name, column, f"by_{column}")
    elif _is_stale(table, column, when.stale_rows, when.stale_share):
        _take_in(tables, name, column, when)


def _take_in(tables: Tables, name: str, column: str, when: Thresholds) -> None:
    """Make rows that are new to an index a segment of it; merge all at the end of a run, or if they are many."""
    (index,) = _indexes(tables[name], column)
    segments = len(index.segments)
    merged = 0 if when.joins_only and segments < MOST_SEGMENTS else segments
    if merged and column == TERMS and _has_many_lines(tables, name):
        index_text(tables, name)
        return
    _build(
        tables,
        name,
        lambda table: table.optimize.optimize_indices(num_indices_to_merge=merged, index_names=[index.name]),
    )


def _index_vectors(tables: Tables, name: str, when: Thresholds) -> None:
    """Index vectors; rows without one, such as captions may be, do not count: an index of none cannot be built."""
    table = tables[name]
    held, has_index = table.count_rows(), count_parts(table) > 0
    least = max(when.stale_rows + 1, when.stale_share * held) if has_index else when.vector_rows
    if held >= least and read_state(table).fresh_rows >= least:
        join_fragments(tables, name, when.fragments, when)
        build_index(tables, name, when.part_rows)


def _indexes(table: LanceDataset, column: str) -> list[IndexDescription]:
    return [index for index in table.describe_indices() if index.field_names == [column]]


def _is_stale(table: LanceDataset, column: str, rows: int, share: float) -> bool:
    """Check that the index of a column, if there is one, lacks more rows than this and a larger share of them."""
    held = table.count_rows()
    missing = max((held - index.num_rows_indexed for index in _indexes(table, column)), default=0)
    return missing > rows and missing > share * held


# The index of vectors: HNSW graphs of at most a million rows each, built one by one, so that each fits the memory.
#
# A part is one graph over whole fragments of the table (a segment of Lance's index), committed as soon as it is built:
# an interrupted build goes on with the next part. Rows that are new form a part of their own, or are built again
# together with small parts once there are some of those: so each row is built a few times at most, however many runs
# add to a library, and a search walks a few graphs only. A search asks every part.

NAME, COLUMN = "by_vector", "vector"
PART_ROWS = 1 << 20
"""Rows of a part, at most; as many as joining puts into a fragment. A search in fewer, larger graphs is quicker."""
FULL_SHARE = 0.5
"""A part of this share of the most rows is not built again."""
MIN_JOINED = 3
"""So many small parts are built again as one."""
MIN_PART_ROWS = 100_000
"""A part is no smaller than this for want of memory: a search would walk too many."""
GRAPH_BYTES, NUMBER_BYTES = 2_500, 4
"""Memory that building takes for a row, and for each number of its vector (measured)."""
GRAPH: dict[str, Any] = {"m": 20, "ef_construction": 300, "num_partitions": 1}
"""Neighbours of a row in its graph, and candidates while it is built."""


@dataclass(frozen=True, slots=True)
class Part:
    """Rows that one graph holds, or that none holds yet: whole fragments by their ids."""

    fragments: frozenset[int]
    rows: int


@dataclass(frozen=True, slots=True)
class IndexState:
    """Parts of a table's index, and its fragments without one: rows by id."""

    parts: tuple[Part, ...]
    fresh: Mapping[int, int]

    @property
    def fresh_rows(self) -> int:
        """Number of rows that no graph holds."""
        return sum(self.fresh.values())


def read_state(table: LanceDataset) -> IndexState:
    """Read which fragments are in which part; fragments without any vector, as of captions, are left out."""
    fragments = {each.fragment_id: each for each in table.get_fragments()}
    rows = {number: each.count_rows() for number, each in fragments.items()}
    held = [each.fragment_ids & rows.keys() for each in _segments(table)]
    fresh = {number: count for number, count in rows.items() if not any(number in each for each in held)}
    if fresh and table.schema.field(COLUMN).nullable:
        with_vector = {number: fragments[number].count_rows(f"{COLUMN} IS NOT NULL") for number in fresh}
        fresh = {number: count for number, count in with_vector.items() if count}
    return IndexState(tuple(Part(frozenset(each), sum(rows[id_] for id_ in each)) for each in held if each), fresh)


def count_parts(table: LanceDataset) -> int:
    """Count the graphs that a search walks, 0 without an index; takes 10 microseconds."""
    return len(_segments(table))


def build_index(tables: Tables, name: str, part_rows: int | None = None) -> None:
    """Bring an index up to date, or make it, part by part of at most `part_rows` rows; None: as memory allows."""
    table = tables.to_write(name)
    most = part_rows or rows_that_fit(table.schema.field(COLUMN).type.list_size)
    for part in plan_parts(read_state(table), most):
        graph = table.create_index_uncommitted(
            COLUMN, "IVF_HNSW_SQ", NAME, "cosine", replace=True, fragment_ids=sorted(part.fragments), **GRAPH
        )
        retry_on_conflict(partial(_commit, tables, name, graph))


def plan_parts(state: IndexState, part_rows: int) -> list[Part]:
    """Choose the parts to build: of the fragments without a part, and of small parts, each kept whole.

    While there are three parts or more that are no larger than twice what is gathered, they are gathered too (the
    size-tiered merges of LSM trees; O'Neil et al. 1996).
    """
    gathered = [Part(frozenset([number]), rows) for number, rows in state.fresh.items()]
    left = [each for each in state.parts if each.rows < FULL_SHARE * part_rows]
    while gathered:
        most = 2 * sum(each.rows for each in gathered)
        small = [each for each in left if each.rows <= most]
        if len(small) < MIN_JOINED:
            break
        gathered += small
        left = [each for each in left if each.rows > most]
    return _packed(gathered, part_rows)


def _packed(pieces: Sequence[Part], part_rows: int) -> list[Part]:
    """Join pieces, in the order of their fragments, to parts of so many rows; a larger piece is a part of its own."""
    parts: list[Part] = []
    for piece in sorted(pieces, key=lambda each: min(each.fragments)):
        if parts and parts[-1].rows + piece.rows <= part_rows:
            parts[-1] = Part(parts[-1].fragments | piece.fragments, parts[-1].rows + piece.rows)
        else:
            parts.append(piece)
    return parts


def rows_that_fit(dim: int, free_bytes: int | None = None) -> int:
    """Compute how many rows a part may have, so that building it takes half of the free memory at most."""
    free = free_memory_bytes() if free_bytes is None else free_bytes
    return max(MIN_PART_ROWS, min(PART_ROWS, free // 2 // (GRAPH_BYTES + dim * NUMBER_BYTES)))


def _commit(tables: Tables, name: str, graph: Index) -> None:
    """Commit a graph to the newest state of its table, in place of those over the same fragments."""
    tables.to_write(name).commit_existing_index_segments(NAME, COLUMN, [graph])


def _segments(table: LanceDataset) -> list[Any]:
    return [each for index in table.describe_indices() if index.field_names == [COLUMN] for each in index.segments]


# Make one of the late tables, or one for a model of sentences, when something first needs it.

OWNER = "a run that makes a table"


def ensure_table(tables: Tables, name: str, schema: pa.Schema | None = None) -> None:
    """Create a table unless it is there, in one process at a time; `schema` of None is that of `LATE_TABLES`."""
    if tables.has(name):
        return
    with awaited_lease(tables, name, OWNER):
        if not tables.has(name):
            create_table(tables, name, LATE_TABLES[name] if schema is None else schema)


def create_table(tables: Tables, name: str, schema: pa.Schema) -> None:
    """Create a table, with an index of words where it is searched by them: without one nothing would be found."""
    tables.create(name, schema)
    if is_worded(name):
        with storage_errors(tables.uri):
            index_text(tables, name)


def present(tables: Tables, names: Iterable[str]) -> list[str]:
    """Those of some tables that the library has."""
    return [name for name in names if not (name in LATE_TABLES or name.startswith(MAPPED_PREFIX)) or tables.has(name)]


# Deletion of what only old states of a table hold, beside writers at work.
#
# Lance's own cleanup also deletes files that no state names once they are seven days old by this machine's clock. Where
# that clock is ahead, these are the files that a writer is about to commit. So here only files go that some old state
# names; others go while nobody writes (`delete_uncommitted`). A state's age is by the clock of the disk it lies on; an
# object store does not tell its clock, so there the last `KEPT_STATES` stay, whatever their age.

KEPT_STATES = 20
"""A writer that began at one of these may still commit: it reads what came after."""
MOST_FILES = 1 << 31
DELETIONS_AT_ONCE = 16
NEVER = timedelta(days=365_000)
"""Older than any state."""


def delete_old_states(tables: Tables, name: str, keep_s: float) -> None:
    """Delete states of a table that are older than `keep_s`, and the files that only they name; tagged ones stay."""
    with storage_errors(tables.uri):
        table = tables[name]
        old = _old_versions(tables.uri, name, table, keep_s)
        if old:
            found = table.explain_cleanup_old_versions(
                versions=old, include_files=True, max_files=MOST_FILES, error_if_tagged_old_versions=False
            )
            _delete_files(tables.uri, name, [each for each in found.candidate_files if not each.unverified])


def has_uncommitted(tables: Tables, name: str) -> bool:
    """True if there are files that no state names, and that a killed writer left long ago, by this machine's clock."""
    with storage_errors(tables.uri):
        found = tables[name].explain_cleanup_old_versions(NEVER, include_files=True, error_if_tagged_old_versions=False)
    return any(each.unverified for each in found.candidate_files)


def delete_uncommitted(tables: Tables, name: str) -> None:
    """Delete these files; only for who holds the leases of all who write the table."""
    with storage_errors(tables.uri):
        tables[name].cleanup_old_versions(NEVER, error_if_tagged_old_versions=False)


def _old_versions(uri: str, name: str, table: LanceDataset, keep_s: float) -> list[int]:
    """List the states that are older than so many seconds, all but the newest for 0."""
    versions = sorted(ref["version"] for ref in table.version_refs())[:-1]
    if not keep_s:
        return versions
    if is_local(uri):
        before_s = disk_time_s(uri) - keep_s
        marks = ((version, state_mark(table_place(uri, name), version)) for version in versions)
        return [version for version, mark in marks if mark is not None and mark[0] / 1e9 < before_s]
    before_s = time.time() - keep_s
    states: list[Any] = table.versions()
    committed_s = {each["version"]: each["timestamp"].timestamp() for each in states}
    return [version for version in versions[: 1 - KEPT_STATES] if committed_s.get(version, before_s) < before_s]


def disk_time_s(folder: str) -> float:
    """Read the clock by which the files of a folder are dated, that of a server where it lies on one."""
    with TemporaryFile(dir=folder, buffering=0) as file:
        file.write(b" ")
        return os.fstat(file.fileno()).st_mtime


def _delete_files(uri: str, name: str, files: Iterable[CleanupCandidateFile]) -> None:
    """Delete files of a table, the states themselves last: so one whose files are gone is found again."""
    folder = table_place(uri, name)
    session = open_files(folder)
    inside = [(each.kind, each.path.rpartition(f"/{Path(folder).name}/")[2]) for each in files]
    with ThreadPoolExecutor(DELETIONS_AT_ONCE) as pool:
        for are_states in (False, True):
            chosen = [path for kind, path in inside if (kind == "manifest") == are_states]
            list(pool.map(lambda path: _delete(session, path), chosen))
    for parent in {Path(folder, path).parent for kind, path in inside if kind == "index" and is_local(uri)}:
        with suppress(OSError):  # another file is in it
            parent.rmdir()


def _delete(session: LanceFileSession, path: str) -> None:
    try:
        session.delete_file(path)
    except OSError:
        if session.contains(path):  # else another process deleted it first
            raise
