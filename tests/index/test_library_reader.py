"""Readers see complete videos, each frame once, and nothing of others."""

from __future__ import annotations

import numpy as np
import pytest

from index.errors import (
    UnknownVideo,
)
from tests.support.libraries.random_library import DIM, SETTINGS, fingerprint, made, write


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
