"""Complete videos are looked up by id, by name and in a space, and again whenever the tables change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kinodex.index.errors import DamagedRows, LibraryError, QueryError, TimeOutside, UnknownVideo
from kinodex.index.library import Library
from kinodex.index.store.filters import equal
from kinodex.index.store.schema import CHECKSUM
from kinodex.index.videos.visibility import MANY, VisibilityCache
from tests.support.libraries.random_library import made, write


def test_a_reader_sees_what_another_handle_completes_and_reads_what_is_asked_for(library):
    reader, visible = Library.open(library.uri), VisibilityCache(library.tables)
    assert reader.videos() == []
    for video_id in ("aaaa", "bbbb"):
        write(library, made(video_id, 4, seed=1))
    assert reader.has_video("aaaa")
    assert visible.videos(["aaaa", "nothing"]).keys() == {"aaaa"}
    assert visible.videos(["bbbb"]).keys() == {"bbbb"}
    assert visible.videos().keys() == {"aaaa", "bbbb"}
    assert visible.videos([f"{number}" for number in range(MANY + 1)]) == {}
    library.writer.discard("aaaa")
    assert not reader.has_video("aaaa")


TITLES = {"abcd1111": "cake", "abcd2222": "boat", "ef001111": "boat"}


def test_a_video_by_any_of_its_names(library):
    for video_id, title in TITLES.items():
        write(library, made(video_id, 2, seed=1), title)
    names = {"abcd1111": "abcd1111", "ef00": "ef001111", "cake.mp4": "abcd1111", "/films/cake.mp4": "abcd1111"}
    names["CAK"] = "abcd1111"  # the one title that holds it, in any case
    assert {name: library.video(name).video_id for name in names} == names
    for name, says in {
        "abcd": r"'abcd', which is a name of 2 videos: .*abcd1111.*abcd2222",
        "boat": r"boat.*abcd2222.*ef001111",
        "cakes": "none of the 3 here, such as cake",
        "ef0": "'ef0'",
        "oat": r"'oat', which is in the titles of 2 videos: boat.*; give an id",
        "ak": r"'ak', which is none",
        "' OR '1'='1": "' OR '1'='1",
    }.items():
        with pytest.raises(UnknownVideo, match=says):
            library.video(name)
    with pytest.raises(UnknownVideo, match=r"'cak', which is none of the 3 here"):
        library.videos_named(["cak"], whole_name=True)
    with pytest.raises(QueryError, match="udcff', which is not UTF-8"):
        Library.open(library.uri).video("\udcff")


def test_videos_by_globs_and_by_both_forms_of_accents(library):
    """MacOS writes accents as marks of their own."""

    def ids(*names):
        return [row.video_id for row in library.videos_named(names)]

    for video_id, title in TITLES.items():
        write(library, made(video_id, 2, seed=1), title)
    assert ids("b*") == ["abcd2222", "ef001111"]
    assert ids("films/*.mp4") == ids("/films/*") == ["abcd2222", "ef001111", "abcd1111"]
    assert ids("ef001111", "b?at", "cake") == ["ef001111", "abcd2222", "abcd1111"]
    with pytest.raises(UnknownVideo, match=r"'x\*', which is none of the 3 here"):
        ids("cake", "x*")
    write(library, made("ef002222", 2, seed=1), "c[abc]ke")
    assert ids("c[abc]ke") == ["ef002222"], "not the one that it would match as a glob"
    write(library, made("ef003333", 2, seed=1), "Besanc\u0327on e\u0301te\u0301")
    for typed in ("Besançon été", "Besanc\u0327on e\u0301te\u0301", "Besanc\u0327", "Besanç*"):
        assert ids(typed) == ["ef003333"], typed


# Stored frames are read by number and by time: nearest, shown or exact.


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
