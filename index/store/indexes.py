"""Indexes and files of tables: made when they pay, kept up to date, joined and cleaned up.

Until an index pays searches scan, which is right but slower. Only the vector index changes what is found: over many
videos it gives 98 of 100 true nearest frames (measured on a million). It is built in parts (see `plan_parts`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Literal

from kinodex.index.kinds import KINDS, LINE_KINDS
from kinodex.index.store.database import Tables, retry_on_conflict
from kinodex.index.store.held_tables import own_tables, present, space_tables
from kinodex.index.store.old_states import delete_old_states
from kinodex.index.store.schema import CLIPS_PREFIX, EXTRACTS_PREFIX, LATE_TABLES, SENTENCES_PREFIX, VECTORS_PREFIX
from kinodex.index.store.storage_errors import storage_errors
from kinodex.index.store.vector_index import COLUMN, build_index, count_parts, read_state
from kinodex.index.terms import TERMS

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.lance.indices import IndexDescription

OF_VIDEOS = tuple(name for name in ("notes", *LINE_KINDS, "chapters") if name in LATE_TABLES)
"""Those of the late tables that hold rows of videos."""
WORDED = (*LINE_KINDS, "chapters")
"""Tables that are searched by words."""
FORGIVING = tuple(name for name in LINE_KINDS if KINDS[name].forgives_typos)
"""Those of them that are searched for words with typos too."""
BY_VIDEO = ("frames", "segments", "captions", "detections", "speech", "videos", "additions")
"""Tables that are queried for the rows of a video."""
SMALL = ("segments", "captions", "detections", "speech", "videos", "additions", "sources", "failures", "runs")
"""Tables whose fragments are quickly joined."""
MOST_SEGMENTS = 8
"""Segments of an index, each with the rows that were new at its time. A search looks into all of them."""
MOST_MERGED_LINES = 500_000
"""From this many lines on an index of words is built again where others are merged or follow their rows into joined
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
    late = [*present(tables, OF_VIDEOS), *own_tables(tables, "map").values(), *extracts]
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
    """Return True for a table that is searched by words."""
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
