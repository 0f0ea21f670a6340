"""A plan has every frame of the complete videos once, whatever else the tables hold, and stays with its state."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from kinodex.index.datasets.groups import frames_by_video
from kinodex.index.datasets.plan import FramePlan, plan_frames
from kinodex.index.datasets.reader import FrameReader
from kinodex.index.datasets.shares import Batching, Readers, batch_counts, shares
from kinodex.index.datasets.versions import TablesAt, checked_versions, read_versions
from kinodex.index.errors import LibraryError, QueryError, SpaceMismatch, UnknownVideo
from kinodex.index.library import Library
from kinodex.index.maintain import maintain
from kinodex.index.store.filters import equal
from tests.index.conftest import ALL, VIDEOS
from tests.support.libraries.random_library import OTHER_DIM, made, other_space, vectors_of, write

KEY = ["video_id", "frame_no"]


def frames_of(plan: FramePlan) -> list[tuple[str, int]]:
    table = FrameReader(plan).read(plan.pieces)
    return sorted(zip(table["video_id"].to_pylist(), table["frame_no"].to_pylist(), strict=True))


def test_only_rows_of_complete_videos_count_and_each_once(patchy: Library) -> None:
    for columns in (KEY, [*KEY, "vector"], [*KEY, "jpeg", "vector"]):
        plan = plan_frames(patchy, columns, piece_rows=64)
        assert (frames_of(plan), plan.rows, plan.pieces[:, 2].max()) == (ALL, len(ALL), 64), columns
    for piece_rows in (1, 7, 10_000):
        pieces = plan_frames(patchy, KEY, piece_rows=piece_rows).pieces
        rows = [(fragment, first + n) for fragment, first, count in pieces.tolist() for n in range(count)]
        assert len(rows) == len(set(rows)) == len(ALL)
        assert pieces[:, 2].max() <= piece_rows
    batches = list(FrameReader(plan).batches(plan.pieces))
    assert [batch.num_rows for batch in batches] == plan.pieces[:, 2].tolist()


def test_chosen_videos_are_read_and_no_others(patchy: Library) -> None:
    assert frames_of(plan_frames(patchy, KEY, videos=["film aaaa"])) == [key for key in ALL if key[0] == "aaaa"]
    several = plan_frames(patchy, [*KEY, "jpeg"], videos=["film [ab]*"])
    assert frames_of(several) == [key for key in ALL if key[0] in ("aaaa", "bbbb")]
    with pytest.raises(UnknownVideo, match="cccc"):
        plan_frames(patchy, KEY, videos=["cccc"])


def test_a_plan_keeps_to_its_state_in_another_process_too(patchy: Library) -> None:
    plan = plan_frames(patchy, KEY)
    write(patchy, made("ffff", 3, 7))
    patchy.writer.discard("bbbb")
    assert frames_of(pickle.loads(pickle.dumps(plan))) == ALL
    again = plan_frames(patchy, KEY, versions=plan.versions)
    assert np.array_equal(again.pieces, plan.pieces)
    then, now = (TablesAt(patchy.uri, each) for each in (plan.versions, read_versions(patchy.tables, ["videos"])))
    assert ["ffff" in each.rows("videos", None, KEY[:1])[KEY[0]].to_pylist() for each in (then, now)] == [False, True]
    later = plan_frames(patchy, KEY)
    assert frames_of(later) == sorted([key for key in ALL if key[0] != "bbbb"] + [("ffff", n) for n in range(3)])


def test_another_space_has_the_videos_that_have_vectors_there(patchy: Library) -> None:
    patchy.additions.add_space(other_space())
    vectors = {"aaaa": vectors_of(9, 4, OTHER_DIM), "bbbb": vectors_of(4, 5, OTHER_DIM)}
    patchy.additions.add_vectors(vectors, other_space())
    assert patchy.additions.complete("vectors", other_space().digest, {"aaaa": 9}, {}) == ()
    plan = plan_frames(patchy, [*KEY, "jpeg", "vector"], space=other_space().name)
    assert frames_of(plan) == [key for key in ALL if key[0] == "aaaa"]
    assert plan.schema.field("vector").type.list_size == OTHER_DIM
    with pytest.raises(SpaceMismatch, match="film bbbb has no vectors yet"):
        plan_frames(patchy, [*KEY, "vector"], videos=["bbbb"], space=other_space().name)


def test_what_makes_no_sense_is_refused(patchy: Library) -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        ({"columns": []}, "got columns none"),
        ({"columns": ["pixels"]}, "got columns pixels; give some of video_id, title"),
        ({"columns": ["jpeg", "jpeg"]}, "each once"),
        ({"columns": KEY, "piece_rows": 0}, "pieces of 0 rows"),
        ({"columns": KEY, "versions": {}}, "got versions of no table; give those of videos, frames"),
    ]
    for options, words in refused:
        with pytest.raises(QueryError, match=words):
            plan_frames(patchy, **options)
    for bad in ({"videos": 1}, {"videos": 1, "frames": "2"}, {"videos": 1, "frames": 2, "runs": 3}):
        with pytest.raises(QueryError, match="give those of videos, frames"):
            checked_versions(bad, ["videos", "frames"])  # type: ignore[arg-type]
    assert checked_versions({"frames": 3, "videos": 2}, ["videos", "frames"]) == {"videos": 2, "frames": 3}
    with pytest.raises(QueryError, match="got rank 2 of 2; ranks count from 0"):
        Readers(2).check(2)
    with pytest.raises(QueryError, match="a batch size of 0"):
        Batching(0).check()
    for name in VIDEOS:
        patchy.writer.discard(name * 4)
    plan = plan_frames(patchy, [*KEY, "vector"])
    assert (plan.rows, frames_of(plan)) == (0, []), "a library without videos"


# Frames video by video: in order, each once, with what belongs to it, in tables of a bounded size.

COLUMNS = ["video_id", "frame_no", "title", "jpeg", "vector"]
ORDER = ["dddd", "bbbb", "aaaa"]


@pytest.mark.slow
@pytest.mark.parametrize("batch_rows", [8, 100, 10_000])
def test_frames_come_in_the_order_of_videos_and_numbers(patchy: Library, batch_rows: int) -> None:
    tables = list(frames_by_video(patchy, COLUMNS, ORDER, batch_rows=batch_rows))
    assert max(table.num_rows for table in tables) <= batch_rows
    rows = [row for table in tables for row in table.to_pylist()]
    by_id = {video.video_id: video for video in VIDEOS.values()}
    assert [(row["video_id"], row["frame_no"]) for row in rows] == [
        (video_id, number) for video_id in ORDER for number in range(len(by_id[video_id].vectors))
    ]
    for row in rows:
        assert (row["title"], row["jpeg"]) == (
            f"film {row['video_id']}",
            f"jpeg {row['video_id']} {row['frame_no']}".encode(),
        )
        assert np.array_equal(np.array(row["vector"], np.float16), by_id[row["video_id"]].vectors[row["frame_no"]])


def test_a_video_that_is_gone_or_lacks_rows_is_an_error(patchy: Library) -> None:
    with pytest.raises(LibraryError, match=r"video cccc is not in .* any more"):
        list(frames_by_video(patchy, COLUMNS, ["aaaa", "cccc"]))
    patchy.tables.delete("frames", equal("video_id", "dddd") & equal("frame_no", 5))
    patchy.tables.delete("frames", equal("video_id", "bbbb") & equal("frame_no", 1))
    with pytest.raises(LibraryError, match=r"film dddd in .* have 699 of 700 frames"):
        list(frames_by_video(patchy, ["jpeg"], ["dddd"], batch_rows=50))
    with pytest.raises(LibraryError, match=r"film aaaa and 1 more in .* have 12 of 13 frames"):
        list(frames_by_video(patchy, ["jpeg"], ["aaaa", "bbbb"]))
    with pytest.raises(SpaceMismatch, match="got space"):
        list(frames_by_video(patchy, ["vector"], ["aaaa"], space=other_space().name))


# Rows of pieces: each with the picture, vector, time and title that belong to its frame.

EVERYTHING = ["title", "vector", "jpeg", "frame_no", "time_s", "width_px", "height_px", "video_id"]


@pytest.mark.slow
@pytest.mark.parametrize("piece_rows", [5, 10_000])
def test_every_row_has_what_belongs_to_its_frame(patchy: Library, piece_rows: int) -> None:
    plan = plan_frames(patchy, EVERYTHING, piece_rows=piece_rows)
    table = FrameReader(plan).read(plan.pieces)
    assert table.schema.names == EVERYTHING
    assert table.num_rows == len(ALL)
    by_id = {video.video_id: video for video in VIDEOS.values()}
    for row in table.to_pylist():
        video, number = by_id[row["video_id"]], row["frame_no"]
        assert row["jpeg"] == f"jpeg {video.video_id} {number}".encode()
        assert np.array_equal(np.array(row["vector"], np.float16), video.vectors[number])
        assert (row["title"], row["time_s"]) == (f"film {video.video_id}", float(number))
        assert (row["width_px"], row["height_px"]) == (64, 36)


def test_a_frame_without_its_vector_is_an_error_and_no_other_frames_vector(patchy: Library) -> None:
    patchy.tables.delete(patchy.vectors_table, equal("video_id", "aaaa") & equal("frame_no", 4))
    plan = plan_frames(patchy, ["jpeg", "vector"])
    with pytest.raises(LibraryError, match=r"frame 4 of video aaaa in .* has no vector"):
        FrameReader(plan).read(plan.pieces)


# Shares: every piece goes to one worker of one rank, nearly as many rows to each, the same in every process.


def pieces(count: int, seed: int = 1) -> np.ndarray:
    rows = np.random.default_rng(seed).integers(1, 256, count)
    return np.stack([np.arange(count), np.zeros(count, np.int64), rows], axis=1)


def test_every_piece_is_dealt_once_and_loads_are_even() -> None:
    for world, workers in ((1, 1), (1, 3), (4, 1), (3, 5)):
        stock = pieces(200)
        dealt = shares(stock, Readers(world, workers), (7, 2))
        assert sorted(number for rank in dealt for mine in rank for number in mine.tolist()) == list(range(200))
        loads = [int(stock[mine, 2].sum()) for rank in dealt for mine in rank]
        assert max(loads) - min(loads) <= 2 * stock[:, 2].max()
    few = shares(pieces(2), Readers(2, 3), (0, 0))  # some have nothing
    assert sum(len(mine) for rank in few for mine in rank) == 2


@pytest.mark.parametrize("drop_last", [False, True])
def test_even_ranks_have_as_many_batches_each(drop_last: bool) -> None:
    stock = pieces(37)
    dealt = shares(stock, Readers(4, 3), (5, 5))
    free = batch_counts(stock, dealt, Batching(10, drop_last))
    even = batch_counts(stock, dealt, Batching(10, drop_last, even=True))
    assert {sum(rank) for rank in even} == {min(map(sum, free))}
    assert len({sum(rank) for rank in free}) > 1
    assert all(0 <= some <= all_ for a, b in zip(even, free, strict=True) for some, all_ in zip(a, b, strict=True))


# Tables at fixed versions: the rows of then, or a clear word that they are gone.


@pytest.mark.slow
def test_a_state_that_was_deleted_is_said_to_be(patchy: Library) -> None:
    plan = plan_frames(patchy, ["frame_no"])
    write(patchy, made("ffff", 3, 7))
    maintain(patchy, 0.0)
    with pytest.raises(LibraryError, match=r"got version \d+ of \w+ in .* which is not there.*--keep-minutes"):
        plan_frames(patchy, ["frame_no"], versions=plan.versions)
