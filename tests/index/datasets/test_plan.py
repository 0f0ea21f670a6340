"""A plan has every frame of the complete videos once, whatever else the tables hold, and stays with its state."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from kinodex.index.datasets import FramePlan, FrameReader, plan_frames
from kinodex.index.errors import QueryError, SpaceMismatch, UnknownVideo
from kinodex.index.library import Library
from tests.index.datasets.conftest import ALL, VIDEOS
from tests.support.libraries.random_library import OTHER_DIM, made, other_space, vectors_of, write

KEY = ["video_id", "frame_no"]


def frames_of(plan: FramePlan) -> list[tuple[str, int]]:
    table = FrameReader(plan).read(plan.pieces)
    return sorted(zip(table["video_id"].to_pylist(), table["frame_no"].to_pylist(), strict=True))


@pytest.mark.parametrize("columns", [KEY, [*KEY, "vector"], [*KEY, "jpeg", "vector"]])
def test_only_rows_of_complete_videos_count_and_each_once(patchy: Library, columns: list[str]) -> None:
    plan = plan_frames(patchy, columns, piece_rows=64)
    assert frames_of(plan) == ALL
    assert plan.rows == len(ALL)
    assert plan.pieces[:, 2].max() == 64


def test_pieces_are_of_the_size_that_was_chosen_and_share_no_row(patchy: Library) -> None:
    for piece_rows in (1, 7, 10_000):
        pieces = plan_frames(patchy, KEY, piece_rows=piece_rows).pieces
        rows = [(fragment, first + n) for fragment, first, count in pieces.tolist() for n in range(count)]
        assert len(rows) == len(set(rows)) == len(ALL)
        assert pieces[:, 2].max() <= piece_rows


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
    for columns, words in (
        ([], "got columns none"),
        (["pixels"], "got columns pixels; give some of video_id, title"),
        (["jpeg", "jpeg"], "each once"),
    ):
        with pytest.raises(QueryError, match=words):
            plan_frames(patchy, columns)
    with pytest.raises(QueryError, match="pieces of 0 rows"):
        plan_frames(patchy, KEY, piece_rows=0)
    with pytest.raises(QueryError, match=r"got versions of no table; give those of videos, frames"):
        plan_frames(patchy, KEY, versions={})


def test_a_library_without_videos_is_an_empty_plan(patchy: Library) -> None:
    for name in VIDEOS:
        patchy.writer.discard(name * 4)
    plan = plan_frames(patchy, [*KEY, "vector"])
    assert (plan.rows, frames_of(plan)) == (0, [])
