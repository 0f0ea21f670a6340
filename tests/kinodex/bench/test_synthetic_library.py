"""A made-up library is whole, made once, and has neighbours to find."""

from __future__ import annotations

import numpy as np
import pytest

from kinodex.bench.search import Size, frame_vectors, make_library, queries, video_id, words
from kinodex.index.errors import SettingsMismatch
from kinodex.index.library import Library
from kinodex.index.sweep import audit

SIZE = Size(videos=12, frames=30, lines=5, dim=16, jpeg_bytes=50)


def test_a_made_library_is_whole_and_made_once(tmp_path):
    told: list[int] = []
    library, _ = make_library(str(tmp_path / "library"), SIZE, told.append)
    assert told == [10, 12]
    assert not audit(library).problems
    assert (library.info().videos, library.info().frames) == (12, 360)
    np.testing.assert_array_equal(library.vectors(video_id(11)).vectors, frame_vectors(11, SIZE))
    pictures = {frame.jpeg for frame in library.frames(video_id(3), range(30))}
    assert {len(jpeg) for jpeg in pictures} == {50}
    assert len(pictures) == 30
    assert len(library.captions(video_id(3))) == len(library.transcript(video_id(3))) == 5
    library.writer.discard(video_id(4))
    make_library(str(tmp_path / "library"), SIZE, told.append)
    assert told[2:] == [12]
    assert Library.open(library.uri).has_video(video_id(4))
    with pytest.raises(SettingsMismatch, match="dim=8"):
        make_library(str(tmp_path / "library"), SIZE._replace(dim=8), told.append)


def test_in_a_narrow_cone_all_frames_are_near_each_other_and_no_query_is_near_a_frame():
    size = Size(videos=200, frames=20, lines=1, dim=64, jpeg_bytes=1, is_cone=True)
    frames = np.concatenate([frame_vectors(number, size) for number in range(size.videos)]).astype(np.float32)
    asked = queries(30, size)
    for each in (frames, asked):
        np.testing.assert_allclose(np.linalg.norm(each, axis=1), 1, atol=2e-3)
    best = (asked @ frames.T).max(axis=1)
    assert best.min() > 0.05 and best.max() < 0.32 and best.max() / best.min() > 2
    assert np.median(frames @ frames[0]) > 0.4
    assert abs(np.median(frame_vectors(0, SIZE) @ frame_vectors(5, SIZE).T)) < 0.4


def test_a_library_keeps_of_its_size_what_it_always_kept():
    assert SIZE.settings == {"videos": 12, "frames": 30, "lines": 5, "dim": 16, "jpeg_bytes": 50}
    assert SIZE._replace(is_cone=True).settings == SIZE.settings | {"is_cone": True}


def test_questions_have_answers(tmp_path):
    library, _ = make_library(str(tmp_path / "library"), SIZE._replace(lines=200), lambda done: None)
    hits = [library.search.frames(query, k=1)[0] for query in queries(20, SIZE)]
    assert min(hit.score for hit in hits) > 0.5
    assert any(library.search.transcript(text) for text in words(20, seed=2))
    assert any(library.search.captions(text) for text in words(20, seed=2))
