"""Readers see complete videos, each frame once, and nothing of others."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from kinodex.index.errors import LibraryError, UnknownVideo
from kinodex.index.library import Library
from kinodex.index.rows import ClipRow
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


@pytest.mark.parametrize("scheme", ["", "file-object-store://"])
def test_a_library_that_was_made_again_with_as_many_commits_is_another(tmp_path, scheme):
    place = tmp_path / "library"
    with_clips = Library.create(str(place), SETTINGS, fingerprint())
    write(with_clips, made("aaaa", 3, seed=1))
    with_clips.clips.add([ClipRow("aaaa", "m", 0.0, 1.0, "a kite", None, 2)])
    reader = Library.open(f"{scheme}{place}")
    assert [row.video_id for row in reader.videos()] == ["aaaa"]
    assert len(reader.vectors("aaaa").frame_no) == 3 and reader.tables.has("clips")
    shutil.rmtree(place)
    write(Library.create(str(place), SETTINGS, fingerprint()), made("bbbb", 5, seed=2))
    assert [row.video_id for row in reader.videos()] == ["bbbb"]
    assert not reader.has_video("aaaa")
    assert len(reader.vectors("bbbb").frame_no) == 5 and not reader.tables.has("clips")
    shutil.rmtree(place)
    write(Library.create(str(place), SETTINGS | {"fps": 2.0}, fingerprint()), made("cccc", 5, seed=3))
    for _ in range(2):
        with pytest.raises(LibraryError, match="made again with another model or settings; open it again"):
            reader.videos()
