"""Rows of pieces: each with the picture, vector, time and title that belong to its frame."""

from __future__ import annotations

import numpy as np
import pytest

from kinodex.index.datasets import FrameReader, plan_frames, stored_names
from kinodex.index.errors import DamagedRows, LibraryError
from kinodex.index.library import Library
from kinodex.index.store.schema import CHECKSUM, equal
from tests.index.datasets.conftest import ALL, VIDEOS
from tests.support.libraries.random_library import SETTINGS, fingerprint, made

EVERYTHING = ["title", "vector", "jpeg", "frame_no", "time_s", "width_px", "height_px", "video_id"]


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


def test_many_small_videos_in_one_piece_find_their_vectors(tmp_path) -> None:
    library = Library.create(str(tmp_path / "many"), SETTINGS, fingerprint())
    videos = [made(f"{number:04d}", 3, number) for number in range(40)]
    library.writer.add_frames({video.video_id: video.frame_rows() for video in videos})
    assert library.writer.complete([video.video_row() for video in videos]) == ()
    plan = plan_frames(library, ["video_id", "frame_no", "jpeg", "vector"])
    assert len(plan.pieces) == 1
    for row in FrameReader(plan).read(plan.pieces).to_pylist():
        assert np.array_equal(
            np.array(row["vector"], np.float16), videos[int(row["video_id"])].vectors[row["frame_no"]]
        )


def test_batches_are_the_pieces_one_by_one(patchy: Library) -> None:
    plan = plan_frames(patchy, ["frame_no"], piece_rows=100)
    batches = list(FrameReader(plan).batches(plan.pieces))
    assert [batch.num_rows for batch in batches] == plan.pieces[:, 2].tolist()


def test_a_frame_without_its_vector_is_an_error_and_no_other_frames_vector(patchy: Library) -> None:
    patchy.tables.delete(patchy.vectors_table, equal("video_id", "aaaa") & equal("frame_no", 4))
    plan = plan_frames(patchy, ["jpeg", "vector"])
    with pytest.raises(LibraryError, match=r"frame 4 of video aaaa in .* has no vector"):
        FrameReader(plan).read(plan.pieces)


@pytest.mark.parametrize("columns", [["jpeg"], ["jpeg", "vector"], ["image"]])
def test_a_damaged_picture_is_an_error(patchy: Library, columns: list[str]) -> None:
    patchy.tables.update("frames", equal("video_id", "dddd") & equal("frame_no", 4), {CHECKSUM: 1})
    plan = plan_frames(patchy, stored_names(columns))
    with pytest.raises(DamagedRows, match="the picture of frame 4 of video dddd"):
        FrameReader(plan).read(plan.pieces)
    without = plan_frames(patchy, ["frame_no", "width_px"])
    assert FrameReader(without).read(without.pieces).num_rows == len(ALL)
