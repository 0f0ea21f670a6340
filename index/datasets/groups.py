"""Frames read video by video in time order, in little memory whatever the length of a video."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinodex.index.clocks import moved_table
from kinodex.index.datasets.columns import KEY, Choice, choose
from kinodex.index.datasets.row_keys import row_keys, vectors_of
from kinodex.index.errors import LibraryError
from kinodex.index.library import LibraryReader
from kinodex.index.rows import VideoRow
from kinodex.index.store.filters import MAX_VALUES_PER_FILTER, Filter, at_least, below, chunked, one_of
from kinodex.index.videos import damage, visibility

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
    choice = choose(columns, scope)
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
