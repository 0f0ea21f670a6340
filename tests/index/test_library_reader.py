"""Readers see complete videos, each frame once, and nothing of others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from index.errors import (
    LibraryError,
    TimeOutside,
    UnknownVideo,
)
from index.store.schema import frame_key
from tests.support.libraries.random_library import DIM, SETTINGS, detection, fingerprint, made, write


def test_info_counts_complete_videos(library):
    write(library, made("aaaa", 18, seed=1))
    write(library, made("bbbb", 18, seed=2, lines=((0.0, 1.0, "hello"),)))
    write(library, made("cccc", 18, seed=3), complete=False)
    facts = library.info()
    assert (facts.videos, facts.frames, facts.transcript_lines, facts.failures) == (2, 36, 1, 0)
    assert facts.hours == pytest.approx(36 / 3600)
    assert facts.stored_bytes > 3 * 18 * DIM * 2
    assert (facts.space, facts.space_digest) == ("local-dir:/models/tiny", fingerprint().digest)
    assert facts.settings == SETTINGS


def test_leftovers_are_invisible_and_discarded(library):
    kept, broken = (
        made("aaaa", 10, seed=1, lines=((0.0, 2.0, "kite"),)),
        made("bbbb", 50, 2, lines=((0.0, 2.0, "kite"),)),
    )
    write(library, kept)
    write(library, broken, complete=False)
    assert not library.has_video("bbbb")
    assert [row.video_id for row in library.videos()] == ["aaaa"]
    query = broken.vectors[0].astype(np.float32)
    assert {hit.video_id for hit in library.search.frames(query, k=5)} == {"aaaa"}
    assert len(library.search.frames(query, k=10)) == 10
    assert {hit.video_id for hit in library.search.transcript("kite")} == {"aaaa"}
    for read in (library.vectors, library.segments, library.transcript):
        with pytest.raises(UnknownVideo):
            read("bbbb")
    library.writer.discard("bbbb")
    write(library, broken)
    assert len(library.vectors("bbbb").frame_no) == 50
    assert library.search.frames(query, k=1)[0].video_id == "bbbb"


def test_no_reader_sees_a_frame_twice(library):
    """A run that began before another completed the video appends the same frames again, until it is noticed."""
    video = made("aaaa", 8, seed=1)
    write(library, video)
    write(library, video, complete=False)
    np.testing.assert_array_equal(library.vectors("aaaa").vectors, video.vectors)
    assert len(library.search.frames(video.vectors[2], k=8)) == len(library.frames("aaaa", range(8))) == 8
    assert [frame.frame_no for frame in library.frames_at("aaaa", [0.0, 7.9])] == [0, 7]


def test_frames_by_time(library):
    video = made("aaaa", 10, seed=1, start_s=3.0)
    rows = [row for row in video.frame_rows() if row.frame_no not in (4, 5)]  # a still from 6.0 s on
    library.writer.add_frames({"aaaa": rows})
    library.writer.complete([replace(video.video_row(), frames=len(rows))])

    def times(asked, mode):
        return [frame.time_s for frame in library.frames_at("aaaa", asked, mode)]

    assert times([3.4, 12.9, 7.4, 7.6, 3.4], "nearest") == [3.0, 12.0, 6.0, 9.0, 3.0]
    assert times([3.0, 6.99, 8.99, 9.0, 12.9], "shown") == [3.0, 6.0, 6.0, 9.0, 12.0]
    assert times([4.0, 12.0 + 5e-7], "exact") == [4.0, 12.0]
    assert times([], "nearest") == []
    with pytest.raises(TimeOutside, match=r"got 7.400000 s .* the nearest is at 6.000000 s"):
        times([7.4], "exact")
    for outside in (2.999, 13.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(TimeOutside, match=r"covers \[3.000, 13.000\) s"):
            times([outside], "nearest")
    with pytest.raises(TimeOutside, match="frame 4 "):
        library.frames("aaaa", [3, 4])
    with pytest.raises(LibraryError, match="nearest, exact or shown"):
        times([4.0], "best")


def test_frames_of_videos_whose_keys_collide(library):
    first, second = "video 245650", "video 551243"  # found by search: their hashes agree in 39 bits
    assert frame_key(first, 1) == frame_key(second, 1)
    for video_id in (first, second):
        write(library, made(video_id, 3, seed=1))
    assert library.frames(second, [1])[0].jpeg == f"jpeg {second} 1".encode()


def test_labels_of_detections_are_listed_the_most_frequent_first(library):
    write(library, made("aaaa", 18, seed=1))
    video_id = library.videos()[0].video_id
    assert library.detection_labels(video_id) == []
    rows = [detection(number, label, 0.5) for number, label in enumerate(["cat", "Big  Dog", "big dog", "ant"])]
    library.additions.add_detections({video_id: rows}, "m")
    assert library.detection_labels(video_id) == []  # not complete yet
    library.additions.complete("detections", "m", {video_id: len(rows)}, {})
    assert library.detection_labels(video_id) == ["big dog", "ant", "cat"]
