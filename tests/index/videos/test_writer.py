"""Rows of videos that are written come back, are counted by video, and a video is complete with exactly its rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kinodex.index.errors import LeaseLost
from kinodex.index.library import Library
from kinodex.index.rows import SegmentRow
from kinodex.index.sweep import audit
from kinodex.pipeline.sample import FrameRow
from tests.support.libraries.random_library import DIM, made, write


def test_what_is_written_comes_back(library):
    video = made("a1b2c3d4", 30, seed=1, start_s=2.5, lines=((3.0, 4.0, "a dog barks"), (9.0, 11.0, "it stops")))
    library.writer.add_frames({video.video_id: video.frame_rows()[:20]})
    library.writer.add_frames({video.video_id: video.frame_rows()[20:]})
    segments = [SegmentRow("", 0, 2.5, 12.0, "shot"), SegmentRow("", 0, 12.0, 32.5, "window")]
    library.writer.add_segments({video.video_id: segments})
    library.writer.add_transcript({video.video_id: video.transcript()})
    assert library.writer.complete([replace(video.video_row(), segments=2)]) == ()

    again = Library.open(library.uri)
    assert again.videos() == [replace(video.video_row(), segments=2)]
    stored = again.vectors(video.video_id)
    np.testing.assert_array_equal(stored.vectors, video.vectors)
    assert stored.vectors.dtype == np.float16
    np.testing.assert_array_equal(stored.time_s, video.times_s)
    np.testing.assert_array_equal(stored.frame_no, np.arange(30))
    frames = again.frames(video.video_id, [7, 3, 29])
    assert [(f.frame_no, f.time_s, f.jpeg) for f in frames] == [
        (7, 9.5, b"jpeg a1b2c3d4 7"),
        (3, 5.5, b"jpeg a1b2c3d4 3"),
        (29, 31.5, b"jpeg a1b2c3d4 29"),
    ]
    assert [(s.segment_no, s.start_s, s.end_s, s.kind) for s in again.segments(video.video_id)] == [
        (0, 2.5, 12.0, "shot"),
        (1, 12.0, 32.5, "window"),
    ]
    assert again.transcript(video.video_id) == video.transcript()
    assert [line.text for line in again.transcript(video.video_id, 4.0, 9.0)] == []
    assert [line.text for line in again.transcript(video.video_id, 3.9, 9.1)] == ["a dog barks", "it stops"]
    assert [line.text for line in again.transcript(video.video_id, start_s=5.0)] == ["it stops"]


def test_two_runs_on_one_video_are_noticed(library):
    video, other = made("aaaa", 5, seed=1), made("bbbb", 5, seed=2)
    write(library, video, complete=False)
    write(library, video, complete=False)
    write(library, other, complete=False)
    assert library.writer.complete([video.video_row(), other.video_row()]) == ("aaaa",)
    assert library.video_ids() == {"bbbb"}
    assert [row.video_id for row in library.videos()] == ["bbbb"]
    assert audit(library).problems == ()
    write(library, video)
    assert len(library.vectors("aaaa").frame_no) == 5


def test_a_video_is_complete_with_exactly_its_rows(library):
    video = made("aaaa", 5, seed=1, lines=((0.0, 1.0, "hello"),))
    segments = [SegmentRow("", 0, 0.0, 5.0, "shot")]
    row = replace(video.video_row(), segments=1)
    for wrong in (
        replace(row, frames=6),
        replace(row, segments=0),
        replace(row, segments=2),
        replace(row, transcript_lines=0),
    ):
        write(library, video, complete=False)
        library.writer.add_segments({"aaaa": segments})
        assert library.writer.complete([wrong]) == ("aaaa",)
    rows = video.frame_rows()
    library.writer.add_frames({"aaaa": [*rows[:4], rows[0]]})  # five rows, though not those five
    assert library.writer.complete([replace(video.video_row(), transcript_lines=0)]) == ("aaaa",)
    assert library.writer.complete([]) == ()
    assert library.videos() == []
    assert audit(library).problems == ()


def test_many_videos_in_one_commit(library):
    videos = [made(f"{n:04d}", n + 1, seed=n, lines=((0.0, 1.0, f"line {n}"),)) for n in range(9)]
    library.writer.add_frames({video.video_id: video.frame_rows() for video in videos})
    library.writer.add_transcript({video.video_id: video.transcript() for video in videos})
    library.writer.add_segments({video.video_id: [SegmentRow("", 0, 0.0, 1.0, "shot")] * 2 for video in videos})
    assert library.writer.complete([replace(video.video_row(), segments=2) for video in videos]) == ()
    for video in videos:
        np.testing.assert_array_equal(library.vectors(video.video_id).vectors, video.vectors)
        assert [row.segment_no for row in library.segments(video.video_id)] == [0, 1]
    library.writer.discard(*(video.video_id for video in videos[:5]))
    assert [row.video_id for row in library.videos()] == ["0005", "0006", "0007", "0008"]
    assert [hit.video_id for hit in library.search.transcript("line", k=20)] == ["0005", "0006", "0007", "0008"]


def test_a_range_of_frames_is_taken_out(library):
    video = made("aaaa", 10, seed=1)
    library.writer.add_frames({"aaaa": video.frame_rows(), "bbbb": video.frame_rows()})
    library.writer.discard_frames("aaaa", 3, 5)
    library.writer.discard_frames("aaaa", 8, None)
    assert (
        library.writer.complete([replace(video.video_row(), frames=6), replace(video.video_row(), video_id="bbbb")])
        == ()
    )
    assert library.vectors("aaaa").frame_no.tolist() == [0, 1, 2, 5, 6, 7]
    assert [frame.frame_no for frame in library.frames_at("aaaa", [4.4, 9.0])] == [5, 7]


def test_completing_again_replaces_the_row(library):
    video = made("aaaa", 5, seed=1)
    write(library, video)
    library.writer.complete([video.video_row(title="renamed")])
    assert [row.title for row in library.videos()] == ["renamed"]


def test_vectors_of_another_size_are_a_programming_error(library):
    row = FrameRow(0, 0.0, 1, 1, b"", np.ones(DIM + 1, np.float16))
    with pytest.raises(ValueError, match="33"):
        library.writer.add_frames({"aaaa": [row]})


def test_a_run_that_may_not_show_videos_any_more_shows_none(library: Library) -> None:
    """The check is the last thing before the rows, for whatever comes before it may take long."""
    library.writer.note_rows()
    video = made("aaaa", 2, seed=1)
    write(library, video, complete=False)

    def check() -> None:
        raise LeaseLost("taken over")

    with pytest.raises(LeaseLost):
        library.writer.complete([video.video_row()], check)
    assert library.video_ids() == set()
    assert library.writer.complete([video.video_row()]) == ()
    assert library.video_ids() == {"aaaa"}
