"""Stored frames are read by number and by time: nearest, shown or exact."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kinodex.index.errors import DamagedRows, LibraryError, TimeOutside
from kinodex.index.store.schema import CHECKSUM, FRAMES, equal, frame_key
from kinodex.index.sweep import audit
from tests.support.libraries.random_library import made, write


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


def test_a_picture_or_checksum_that_changed_is_an_error_and_the_others_are_read(library):
    write(library, made("aaaa", 6, seed=1))
    library.tables.update("frames", equal("frame_no", 2), {CHECKSUM: 1})
    for read in (lambda: library.frames("aaaa", [1, 2]), lambda: library.frames_at("aaaa", [2.4])):
        with pytest.raises(DamagedRows, match=r"the picture of frame 2 of video aaaa .* --check --deep"):
            read()
    assert [frame.frame_no for frame in library.frames("aaaa", [3, 1])] == [3, 1]


def test_a_library_without_checksums_shows_its_pictures(library):
    library.tables.drop("frames")
    library.tables.create("frames", FRAMES.remove(FRAMES.get_field_index(CHECKSUM)))
    write(library, made("aaaa", 3, seed=1))
    assert library.frames("aaaa", [1])[0].jpeg == b"jpeg aaaa 1"


def test_frames_of_videos_whose_keys_collide(library):
    first, second = "video 245650", "video 551243"  # found by search: their hashes agree in 39 bits
    assert frame_key(first, 1) == frame_key(second, 1)
    for video_id in (first, second):
        write(library, made(video_id, 3, seed=1))
    assert library.frames(second, [1])[0].jpeg == f"jpeg {second} 1".encode()


def test_a_film_of_a_thousand_frames_a_second_over_five_hours(library):
    numbers = [3, 2**24 - 1, 2**24, 2**24 + 3, 2**31 - 1]
    rows = [replace(row, frame_no=n) for row, n in zip(made("aaaa", 5, seed=1).frame_rows(), numbers, strict=True)]
    library.writer.add_frames({"aaaa": rows})
    assert library.writer.complete([made("aaaa", 5, seed=1).video_row()]) == ()
    for number in numbers:
        assert library.frames("aaaa", [number])[0].frame_no == number
    assert audit(library).problems == ()
