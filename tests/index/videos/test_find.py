"""A video is found by any of its names, several by a glob."""

from __future__ import annotations

import pytest

from index.errors import (
    QueryError,
    UnknownVideo,
)
from index.library import Library
from tests.support.random_library import made, write


def test_a_video_by_any_of_its_names(library):
    for video_id, title in (("abcd1111", "cake"), ("abcd2222", "boat"), ("ef001111", "boat")):
        write(library, made(video_id, 2, seed=1), title)
    assert library.video("abcd1111").title == "cake"
    assert library.video("ef00").video_id == "ef001111"
    assert library.video("cake.mp4").video_id == library.video("/films/cake.mp4").video_id == "abcd1111"
    with pytest.raises(UnknownVideo, match=r"'abcd', which is a name of 2 videos: .*abcd1111.*abcd2222"):
        library.video("abcd")
    with pytest.raises(UnknownVideo, match=r"boat.*abcd2222.*ef001111"):
        library.video("boat")
    with pytest.raises(UnknownVideo, match="none of the 3 here, such as cake"):
        library.video("cakes")
    with pytest.raises(UnknownVideo, match="'ef0'"):
        library.video("ef0")
    with pytest.raises(UnknownVideo, match="' OR '1'='1"):
        library.vectors("' OR '1'='1")
    with pytest.raises(QueryError, match="udcff', which is not UTF-8"):
        Library.open(library.uri).video("\udcff")


def test_videos_by_globs(library):
    for video_id, title in (("abcd1111", "cake"), ("abcd2222", "boat"), ("ef001111", "boat")):
        write(library, made(video_id, 2, seed=1), title)

    def ids(*names):
        return [row.video_id for row in library.videos_named(names)]

    assert ids("b*") == ["abcd2222", "ef001111"]
    assert ids("films/*.mp4") == ids("/films/*") == ["abcd2222", "ef001111", "abcd1111"]
    assert ids("ef001111", "b?at", "cake") == ["ef001111", "abcd2222", "abcd1111"]
    with pytest.raises(UnknownVideo, match=r"'x\*', which is none of the 3 here"):
        ids("cake", "x*")
    write(library, made("ef002222", 2, seed=1), "c[abc]ke")
    assert ids("c[abc]ke") == ["ef002222"], "not the one that it would match as a glob"
