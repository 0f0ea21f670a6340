"""Frames of a library for training and analysis: planned once at a fixed state, read in pieces by many processes.

May import the rest of `index` but `maintain`; torch is loaded by `torch_frames` alone, which nothing imports early.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kinodex.index.errors import LibraryError, QueryError
from kinodex.index.library import LibraryReader
from kinodex.index.rows import VideoRow, moved_table
from kinodex.index.store.database import ROWS_PER_BATCH
from kinodex.index.store.filters import MAX_VALUES_PER_FILTER, Filter, all_of, at_least, below, chunked, equal, one_of
from kinodex.index.store.foreign_errors import Meaning, meanings_of
from kinodex.index.store.frame_keys import FRAME_NO_BITS
from kinodex.index.store.places import table_place
from kinodex.index.store.quiet_lance import lance
from kinodex.index.store.storage_errors import storage_errors
from kinodex.index.videos import damage, visibility

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.fragment import LanceFragment

    from kinodex.index.store.database import Tables

# Read frames video by video in time order, in little memory whatever the length of a video.

Group = tuple[list[VideoRow], Filter, int]
"""Videos, a filter for some of their frames, and how many these are."""


def frames_by_video(
    reader: LibraryReader, columns: Sequence[str], ids: Sequence[str], space: str | None = None, batch_rows: int = 512
) -> Iterator[pa.Table]:
    """Read the frames of complete videos in the order of `ids`, each in time order, in tables of `batch_rows` and less.

    Raises QueryError for unknown columns, SpaceMismatch where the space lacks one of the videos, LibraryError for a
    video that is gone or lacks frames, DamagedRows.
    """
    scope = visibility.space_scope(reader.tables, reader.visible, reader.fingerprint, space)
    choice = choose(columns, scope.table)
    videos: Iterator[VideoRow] = chain.from_iterable(_looked_up(reader, part) for part in chunked(ids))
    for group in _groups(reader, choice, videos, batch_rows):
        if choice.vectors:
            scope.check([video.video_id for video in group[0]])
        yield _read(reader, choice, group)


def _looked_up(reader: LibraryReader, ids: Sequence[str]) -> list[VideoRow]:
    """Read the rows of these videos, which a cache would keep for good."""
    videos = visibility.complete_videos(reader.tables, ids)
    gone = next((video_id for video_id in ids if video_id not in videos), None)
    if gone is not None:
        raise LibraryError(f"video {gone} is not in {reader.uri} any more: it was removed meanwhile; begin again")
    return [videos[video_id] for video_id in ids]


def _groups(reader: LibraryReader, choice: Choice, videos: Iterable[VideoRow], batch_rows: int) -> Iterator[Group]:
    """Put short videos together, and cut long ones."""
    short: list[VideoRow] = []
    for video in videos:
        frames = sum(each.frames for each in short)
        if short and (frames + video.frames > batch_rows or len(short) == MAX_VALUES_PER_FILTER):
            yield _whole(short)
            short = []
        if video.frames > batch_rows:
            yield from _parts(reader, choice, video, batch_rows)
        elif video.frames:
            short.append(video)
    if short:
        yield _whole(short)


def _whole(videos: list[VideoRow]) -> Group:
    return videos, one_of("video_id", [video.video_id for video in videos]), sum(video.frames for video in videos)


def _parts(reader: LibraryReader, choice: Choice, video: VideoRow, batch_rows: int) -> Iterator[Group]:
    """Cut a video by the numbers of its frames, which have gaps where the picture stands still."""
    of_video = one_of("video_id", [video.video_id])
    numbers: NDArray[np.int32] = np.unique(
        reader.tables.rows(choice.base, of_video, ["frame_no"])["frame_no"].to_numpy()
    )
    for first in range(0, len(numbers), batch_rows):
        part = numbers[first : first + batch_rows]
        of_part = at_least("frame_no", int(part[0])) & below("frame_no", int(part[-1]) + 1)
        yield [video], of_video & of_part, len(part)
    if len(numbers) != video.frames:
        raise _incomplete(reader, [video], len(numbers))


def _read(reader: LibraryReader, choice: Choice, group: Group) -> pa.Table:
    """Read a group in order, each frame once."""
    videos, where, count = group
    ids = [video.video_id for video in videos]
    columns = damage.with_checksum(choice.stored)
    table = reader.tables.rows(choice.base, where, columns)
    damage.check_pictures(table, reader.uri)
    keys, first = np.unique(row_keys(table, ids), return_index=True)
    if len(keys) != count:
        raise _incomplete(reader, videos, len(keys))
    table = moved_table(table.take(first), {video.video_id: -video.zero_s for video in videos})
    if choice.joins_vectors and choice.vectors is not None:
        vectors = reader.tables.rows(choice.vectors, where, [*KEY, "vector"])
        in_order = vectors_of(keys, vectors, ids, reader.uri)
        table = table.append_column(vectors.schema.field("vector"), in_order)
    if choice.vectors is not None:
        damage.check_vectors(table, reader.uri)
    if "title" in choice.columns:
        titles = {video.video_id: video.title for video in videos}
        column = pa.array([titles[video_id] for video_id in table["video_id"].to_pylist()], pa.string())
        table = table.append_column(pa.field("title", pa.string(), nullable=False), column)
    return table.select(choice.columns)


def _incomplete(reader: LibraryReader, videos: Sequence[VideoRow], count: int) -> LibraryError:
    promised = sum(video.frames for video in videos)
    others = f" and {len(videos) - 1} more" if len(videos) > 1 else ""
    return LibraryError(
        f"{videos[0].title}{others} in {reader.uri} have {count} of {promised} frames: they were removed meanwhile, or "
        "rows are missing; `kinodex maintain --check` says which"
    )


# Columns of a reading of frames, and the tables that hold them.

FRAMES = "frames"
COLUMNS = ("video_id", "title", "frame_no", "time_s", "width_px", "height_px", "jpeg", "vector")
"""All columns that can be read of a frame; `title` is its video's, and `vector` of one space."""
IN_VECTORS = frozenset({"video_id", "title", "frame_no", "time_s", "vector"})
"""Those for which the table of vectors is enough."""
KEY = ("video_id", "frame_no")


PICTURE = "image"
"""The name of what is decoded of `jpeg`; no column of a table."""


def stored_names(columns: Sequence[str]) -> list[str]:
    """List the columns to read for these, of which pictures may be one, each once."""
    names = (columns,) if isinstance(columns, str) else columns
    return list(dict.fromkeys("jpeg" if name == PICTURE else name for name in names))


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice of columns. Rows are those of the table `base`; vectors are joined to them if they are in another."""

    columns: tuple[str, ...]
    base: str
    vectors: str | None
    """The table of vectors, where they are asked for."""

    @property
    def joins_vectors(self) -> bool:
        """True if vectors come from another table than the rows."""
        return self.vectors is not None and self.vectors != self.base

    @property
    def stored(self) -> list[str]:
        """The columns that are read of the base table, those that identify a row first."""
        others = [name for name in self.columns if name not in (*KEY, "title")]
        return [*KEY, *(name for name in others if name != "vector" or not self.joins_vectors)]


def choose(columns: Sequence[str], vectors_table: str) -> Choice:
    """Check the names of columns, and find the table that has the rows; raises QueryError."""
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    unknown = [name for name in names if name not in COLUMNS]
    if unknown or not names or len(set(names)) < len(names):
        got = ", ".join(map(str, names)) or "none"
        raise QueryError(f"got columns {got}; give some of {', '.join(COLUMNS)}, each once")
    if "vector" not in names:
        return Choice(names, FRAMES, None)
    return Choice(names, vectors_table if IN_VECTORS.issuperset(names) else FRAMES, vectors_table)


# State of a library's tables: the version of each, in which many processes read the same rows.

Versions = Mapping[str, int]
"""Tables by name to the version that is read of them; plain numbers, so that JSON can hold it."""


def read_versions(tables: Tables, names: Sequence[str]) -> dict[str, int]:
    """Read the newest version of each table, in this order: those that confirm rows have to come before these rows."""
    return {name: tables.version(name) for name in names}


def checked_versions(versions: Versions, names: Sequence[str]) -> dict[str, int]:
    """Return the versions of these tables; raises QueryError unless exactly theirs are there."""
    if set(versions) != set(names) or not all(isinstance(each, int) for each in versions.values()):
        raise QueryError(
            f"got versions of {', '.join(sorted(versions)) or 'no table'}; give those of {', '.join(names)}: "
            "the `versions` of another dataset with the same columns and space"
        )
    return dict(versions)


class TablesAt:
    """Tables of a library at fixed versions, each opened on first use by the process that reads it."""

    def __init__(self, uri: str, versions: Versions) -> None:
        self.uri = uri
        self.versions = versions
        self._session: Any = None
        self._open: dict[str, LanceDataset] = {}

    def __getitem__(self, name: str) -> LanceDataset:
        """Open a table at its version; raises LibraryError if that state was deleted."""
        if name not in self._open:
            with storage_errors(self.uri):
                self._open[name] = self._opened(name)
        return self._open[name]

    def schema(self, name: str) -> pa.Schema:
        """Return the columns of a table."""
        return self[name].schema

    def _opened(self, name: str) -> LanceDataset:
        newest = lance.dataset(table_place(self.uri, name), session=self._session)
        self._session = self._session or newest.session()
        version = self.versions[name]
        try:
            return newest if version == newest.version else newest.checkout_version(version)
        except OSError as error:
            if Meaning.NO_TABLE not in meanings_of(error):
                raise
            raise LibraryError(
                f"got version {version} of {name} in {self.uri}, which is not there: `kinodex maintain` deletes states "
                "that are older than its --keep-minutes; give no versions, and the newest are read"
            ) from error

    def rows(self, name: str, where: Filter | None, columns: Sequence[str]) -> pa.Table:
        """Read all rows that match a filter, in no particular order."""
        with storage_errors(self.uri):
            return self[name].scanner(list(columns), None if where is None else where.sql).to_table()


# Plan of a reading: which rows of which fragments count, as pieces that many processes can read each on its own.
#
# A fragment is a file of a table; its rows that are not deleted have positions from 0 on. Whether a row counts is
# decided here, once: its video is complete and chosen, and it is the first of its number. So a reader of a piece has
# nothing to look up, and all processes agree. One scan of ids and numbers: about 0.05 s of a core for a million rows.

Pieces = NDArray[np.int64]
"""`[n, 3]`: the number of a fragment, the position of the first row, and the number of rows."""
FRAGMENT_BITS = 32
"""The upper bits of a row's address are the number of its fragment."""


@dataclass(frozen=True)
class FramePlan:
    """The frames of chosen videos at one state of a library; it can be sent to other processes."""

    uri: str
    choice: Choice
    versions: Versions
    pieces: Pieces
    schema: pa.Schema
    """Columns and types of what is read."""
    zeros_s: Mapping[str, float]
    """Presentation times of 0:00, of the videos where that is not 0."""

    @property
    def rows(self) -> int:
        """Number of frames."""
        return int(self.pieces[:, 2].sum())


def plan_frames(
    reader: LibraryReader,
    columns: Sequence[str],
    *,
    videos: Sequence[str] = (),
    space: str | None = None,
    versions: Versions | None = None,
    piece_rows: int = 256,
) -> FramePlan:
    """Plan to read the frames of these videos, or of all, in pieces of at most `piece_rows`.

    `videos` are names or globs. In another space than the library's own, videos without vectors there are left out, or
    refused if they were named. `versions` are those of an earlier plan, for the same rows again.

    Raises QueryError for columns or versions that make no sense, UnknownVideo, SpaceMismatch, and LibraryError for a
    state that was deleted.
    """
    if piece_rows < 1:
        raise QueryError(f"got pieces of {piece_rows} rows; give 1 or more")
    scope = visibility.space_scope(reader.tables, reader.visible, reader.fingerprint, space)
    choice = choose(columns, scope.table)
    scope = scope if choice.vectors else visibility.SpaceScope(scope.visible, scope.table, None)
    ids = reader.ids_named(videos)
    scope.check(ids or ())
    if ids is None and reader.condition is not None:
        ids = tuple(reader.video_ids())
    # tables that say which rows count come first
    names = ["videos", *(["additions"] if scope.other is not None else []), choice.base]
    if choice.vectors and choice.joins_vectors:
        names.append(choice.vectors)
    state = read_versions(reader.tables, names) if versions is None else checked_versions(versions, names)
    tables = TablesAt(reader.uri, state)
    with storage_errors(reader.uri):
        pieces = _pieces(tables[choice.base], _frames_promised(tables, scope, ids), ids, piece_rows)
        return FramePlan(reader.uri, choice, state, pieces, _schema(tables, choice), visibility.late_zeros_s(tables))


def _schema(tables: TablesAt, choice: Choice) -> pa.Schema:
    stored = tables[choice.base].schema
    fields = []
    for name in choice.columns:
        home = tables[choice.vectors].schema if name == "vector" and choice.vectors else stored
        fields.append(pa.field("title", pa.string(), nullable=False) if name == "title" else home.field(name))
    return pa.schema(fields)


def _frames_promised(tables: TablesAt, scope: visibility.SpaceScope, ids: Sequence[str] | None) -> dict[str, int]:
    """Read for each video that counts, by id, how many frames its row in `videos` promises."""
    counts: dict[str, int] = {}
    for where in _of_videos(ids):
        rows = tables.rows("videos", all_of([*where, equal("state", "complete")]), ["video_id", "frames"])
        counts |= dict(zip(rows["video_id"].to_pylist(), rows["frames"].to_pylist(), strict=True))
    if scope.other is None:
        return counts
    added: set[str] = set()
    for where in _of_videos(ids):
        whole = all_of([*where, equal("stage", "vectors"), equal("model", scope.other.digest)])
        added.update(tables.rows("additions", whole, ["video_id"])["video_id"].to_pylist())
    return {id_: count for id_, count in counts.items() if id_ in added}


def _of_videos(ids: Sequence[str] | None) -> list[list[Filter]]:
    """Make filters for the rows of some videos, as many as one can hold each."""
    return [[]] if ids is None else [[one_of("video_id", part)] for part in chunked(ids)]


def _pieces(table: LanceDataset, promised: Mapping[str, int], ids: Sequence[str] | None, piece_rows: int) -> Pieces:
    """Find the rows that count, in the order in which they are stored."""
    fragments = _fragments(table, ids)
    has_more = ids is not None or table.count_rows() != sum(promised.values())
    twice = _stored_twice(fragments, promised) if has_more else frozenset[str]()
    known: set[tuple[str, int]] = set()
    found = []
    for fragment in fragments:
        counts = [_counting(batch, promised, twice, known) for batch in _batches(fragment, KEY)]
        if counts:
            found.append(_cut(fragment.fragment_id, np.concatenate(counts), piece_rows))
    return np.concatenate(found) if found else np.empty((0, 3), np.int64)


def _fragments(table: LanceDataset, ids: Sequence[str] | None) -> list[LanceFragment]:
    """List the fragments that hold rows of these videos, or all."""
    if ids is None:
        return list(table.get_fragments())
    numbers: set[int] = set()
    for part in chunked(ids):
        scan = table.scanner(["video_id"], one_of("video_id", part).sql, with_row_address=True)
        for batch in scan.to_batches():
            numbers.update(np.unique(batch.column("_rowaddr").to_numpy() >> FRAGMENT_BITS).tolist())
    return [fragment for fragment in table.get_fragments() if fragment.fragment_id in numbers]


def _stored_twice(fragments: Sequence[LanceFragment], promised: Mapping[str, int]) -> frozenset[str]:
    """Find videos with more rows than their frames: another run writes them again at this moment."""
    counted: Counter[str] = Counter()
    for fragment in fragments:
        for batch in _batches(fragment, ["video_id"]):
            values = batch.column("video_id").value_counts()
            ids, counts = values.field("values").to_pylist(), values.field("counts").to_pylist()
            counted.update({id_: count for id_, count in zip(ids, counts, strict=True) if id_ in promised})
    return frozenset(id_ for id_, count in counted.items() if count > promised[id_])


def _batches(fragment: LanceFragment, columns: Sequence[str]) -> list[pa.RecordBatch]:
    """Read some small columns of a fragment in the order of its rows."""
    return list(fragment.scanner(columns=list(columns), batch_size=ROWS_PER_BATCH).to_batches())


def _counting(
    batch: pa.RecordBatch, promised: Mapping[str, int], twice: frozenset[str], known: set[tuple[str, int]]
) -> NDArray[np.bool_]:
    """Mark the rows that count; `known` keeps the keys of videos that are stored twice."""
    ids = batch.column("video_id").dictionary_encode()
    names = ids.dictionary.to_pylist()
    indices = ids.indices.to_numpy()
    counts: NDArray[np.bool_] = np.array([name in promised for name in names], np.bool_)[indices]
    if not twice.isdisjoint(names):
        numbers = batch.column("frame_no").to_numpy()
        for row in np.flatnonzero(np.array([name in twice for name in names], np.bool_)[indices]).tolist():
            key = names[indices[row]], int(numbers[row])
            counts[row] = key not in known
            known.add(key)
    return counts


def _cut(fragment_id: int, counts: NDArray[np.bool_], piece_rows: int) -> Pieces:
    """Cut each run of rows that count into pieces of at most `piece_rows`."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], counts, [False]]).astype(np.int8)))
    pieces = [
        (fragment_id, first, min(piece_rows, end - first))
        for start, end in edges.reshape(-1, 2).tolist()
        for first in range(start, end, piece_rows)
    ]
    return np.array(pieces, np.int64).reshape(-1, 3)


# Read the pieces of a plan: columns of the table that holds the rows, with vectors and titles joined to them.

TITLES_KEPT = 10_000


class FrameReader:
    """A reader of a plan's pieces. It opens tables itself, so each process makes its own, after it was started."""

    def __init__(self, plan: FramePlan) -> None:
        self._plan = plan
        self._tables = TablesAt(plan.uri, plan.versions)
        self._titles: dict[str, str] = {}

    def read(self, pieces: Pieces) -> pa.Table:
        """Read some pieces, in this order; raises LibraryError for a frame without its vector, or DamagedRows."""
        with storage_errors(self._plan.uri):
            parts = [self._read_one(*piece) for piece in pieces.tolist()]
        return pa.concat_tables(parts) if parts else self._plan.schema.empty_table()

    def batches(self, pieces: Pieces) -> Iterator[pa.RecordBatch]:
        """Read pieces one after another."""
        for number in range(len(pieces)):
            yield from self.read(pieces[number : number + 1]).to_batches()

    def _read_one(self, fragment_id: int, first: int, rows: int) -> pa.Table:
        choice = self._plan.choice
        base = self._tables[choice.base]
        fragment = base.get_fragment(fragment_id)
        if fragment is None:
            raise LibraryError(f"{self._plan.uri} has no fragment {fragment_id} any more; open the library again")
        columns = damage.with_checksum(choice.stored)
        stored = fragment.scanner(columns=columns, offset=first, limit=rows).to_table()
        damage.check_pictures(stored, self._plan.uri)
        table = moved_table(stored, {id_: -zero_s for id_, zero_s in self._plan.zeros_s.items()})
        if choice.joins_vectors:
            table = table.append_column(self._plan.schema.field("vector"), self._vectors_of(table))
        if choice.vectors is not None:
            damage.check_vectors(table, self._plan.uri)
        if "title" in choice.columns:
            table = table.append_column(self._plan.schema.field("title"), self._titles_of(table))
        return table.select(choice.columns).cast(self._plan.schema)

    def _vectors_of(self, table: pa.Table) -> pa.ChunkedArray:
        """Read the vectors of these frames, in their order."""
        names = table["video_id"].combine_chunks().dictionary_encode()
        ids, of_row = names.dictionary.to_pylist(), names.indices.to_numpy()
        numbers = table["frame_no"].to_numpy()
        # Of all videos of a piece but the first and the last all frames are in it.
        groups = [[ids[0]], ids[1:-1], [ids[-1]]] if len(ids) > 2 else [[name] for name in ids]
        found = pa.concat_tables([self._stored_vectors(group, ids, of_row, numbers) for group in groups if group])
        return vectors_of(row_keys(table, ids), found, ids, self._plan.uri)

    def _stored_vectors(
        self, group: Sequence[str], ids: Sequence[str], of_row: NDArray[np.int32], numbers: NDArray[np.int32]
    ) -> pa.Table:
        """Read the vectors of some videos between the first and the last number that these have here."""
        chosen = numbers[np.isin(of_row, [ids.index(name) for name in group])]
        where = one_of("video_id", group) & at_least("frame_no", int(chosen.min()))
        where &= below("frame_no", int(chosen.max()) + 1)
        assert self._plan.choice.vectors is not None
        return self._tables.rows(self._plan.choice.vectors, where, ["video_id", "frame_no", "vector"])

    def _titles_of(self, table: pa.Table) -> pa.Array:
        """Read the titles of the videos of these frames, in their order."""
        names = table["video_id"].combine_chunks().dictionary_encode()
        ids = names.dictionary.to_pylist()
        if len(self._titles) > TITLES_KEPT:
            self._titles.clear()
        for part in chunked([name for name in ids if name not in self._titles]):
            rows = self._tables.rows("videos", one_of("video_id", part), ["video_id", "title"])
            self._titles |= dict(zip(rows["video_id"].to_pylist(), rows["title"].to_pylist(), strict=True))
        titles = pa.array([self._titles[name] for name in ids], pa.string())
        return pc.take(titles, names.indices)


# Keys of frames as integers, by which vectors are brought to the rows of another table.

Keys = NDArray[np.int64]
"""`[rows]`: the position of a frame's video in a list of ids, then its number."""


def row_keys(table: pa.Table, ids: Sequence[str]) -> Keys:
    """Make the key of each row; all its videos have to be in `ids`."""
    position = {video_id: number for number, video_id in enumerate(ids)}
    names = table["video_id"].combine_chunks().dictionary_encode()
    of_name = np.array([position[name] for name in names.dictionary.to_pylist()], np.int64)
    keys: Keys = of_name[names.indices.to_numpy()] << FRAME_NO_BITS | table["frame_no"].to_numpy()
    return keys


def vectors_of(keys: Keys, found: pa.Table, ids: Sequence[str], uri: str) -> pa.ChunkedArray:
    """Bring the vectors of `found` into the order of `keys`; raises LibraryError for a frame that has none."""
    held = row_keys(found, ids)
    order = np.argsort(held, kind="stable")
    place = np.minimum(np.searchsorted(held, keys, sorter=order), max(len(held) - 1, 0))
    missing = np.flatnonzero(held[order[place]] != keys) if len(held) else np.arange(len(keys))
    if len(missing):
        key = int(keys[missing[0]])
        raise LibraryError(
            f"frame {key & (1 << FRAME_NO_BITS) - 1} of video {ids[key >> FRAME_NO_BITS]} in {uri} has no vector; "
            "`kinodex maintain --check` says what else is missing"
        )
    return found["vector"].take(pa.array(order[place]))


# Shares of a plan: which pieces each process reads in an epoch, none twice, and how many batches that makes.


@dataclass(frozen=True, slots=True)
class Readers:
    """The processes that share a plan: `world_size` ranks, of which each has the same number of workers."""

    world_size: int = 1
    workers: int = 1

    def check(self, rank: int) -> None:
        """Raise QueryError unless this is the number of one of the ranks."""
        if not (self.world_size >= 1 and 0 <= rank < self.world_size):
            raise QueryError(f"got rank {rank} of {self.world_size}; ranks count from 0 to world_size - 1")


@dataclass(frozen=True, slots=True)
class Batching:
    """Size of batches, and how those of a share end."""

    size: int
    drop_last: bool = False
    """Leave out the last batch of a worker if it is not full."""
    even: bool = False
    """Give every rank as many batches as the rank that has fewest."""

    def check(self) -> None:
        """Raise QueryError for a size below 1."""
        if self.size < 1:
            raise QueryError(f"got a batch size of {self.size}; give 1 or more")

    def count(self, rows: int) -> int:
        """Number of batches that these rows make."""
        return rows // self.size if self.drop_last else -(-rows // self.size)


def shares(pieces: Pieces, readers: Readers, seed: tuple[int, ...] | None) -> list[list[NDArray[np.int64]]]:
    """Deal the pieces to the workers of all ranks, `[rank][worker]`: the numbers of its pieces in its order.

    Each piece goes to who has the fewest rows so far, so that shares differ by one piece at most. `seed` shuffles the
    pieces first, the same in every process.
    """
    order = np.arange(len(pieces)) if seed is None else np.random.default_rng(seed).permutation(len(pieces))
    by_rank = [order[dealt] for dealt in _deal(pieces[order, 2], readers.world_size)]
    return [[mine[dealt] for dealt in _deal(pieces[mine, 2], readers.workers)] for mine in by_rank]


def _deal(rows: NDArray[np.int64], hands: int) -> list[NDArray[np.int64]]:
    """Deal pieces of so many rows one after another, each to the hand with the fewest rows."""
    if hands == 1:
        return [np.arange(len(rows))]
    loads = [(0, hand) for hand in range(hands)]
    dealt: list[list[int]] = [[] for _ in range(hands)]
    for number, count in enumerate(rows.tolist()):
        load, hand = heapq.heappop(loads)
        dealt[hand].append(number)
        heapq.heappush(loads, (load + count, hand))
    return [np.array(each, np.int64) for each in dealt]


def batch_counts(pieces: Pieces, dealt: list[list[NDArray[np.int64]]], batching: Batching) -> list[list[int]]:
    """Number of batches of every worker, `[rank][worker]`; with `even` all ranks have the same sum."""
    counts = [[batching.count(int(pieces[mine, 2].sum())) for mine in of_rank] for of_rank in dealt]
    if batching.even:
        least = min(map(sum, counts))
        for of_rank in counts:
            for _ in range(sum(of_rank) - least):
                of_rank[of_rank.index(max(of_rank))] -= 1
    return counts
