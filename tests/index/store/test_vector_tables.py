"""Another embedding space over the same frames: seen video by video, searched as the library's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from index.errors import QueryError, SpaceMismatch
from index.library import Library
from index.maintenance.refresh import refresh
from index.maintenance.sweep import audit
from index.rows import Scope
from index.store.indexes import Thresholds
from tests.support.random_library import OTHER_DIM, SETTINGS, fingerprint, found, made, other_space, vectors_of, write

OTHER = other_space()
STORED = {"aaaa": vectors_of(40, seed=10), "bbbb": vectors_of(40, seed=11), "cccc": vectors_of(40, seed=12)}


@pytest.fixture
def library(tmp_path) -> Library:
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    for number, video_id in enumerate(STORED):
        write(library, made(video_id, 40, seed=number))
    library.additions.add_space(OTHER)
    library.additions.add_space(OTHER)
    return library


def add(library: Library, *video_ids: str) -> None:
    library.additions.add_vectors({video_id: STORED[video_id] for video_id in video_ids}, OTHER)
    assert library.additions.complete("vectors", OTHER.digest, dict.fromkeys(video_ids, 40), {}) == ()


def test_spaces_are_known_by_name_and_digest(library):
    assert library.spaces() == Library.open(library.uri).spaces() == (fingerprint(), OTHER)
    add(library, "aaaa")
    for name in (OTHER.name, OTHER.digest):
        np.testing.assert_array_equal(library.vectors("aaaa", name).vectors, STORED["aaaa"].vectors)
    own = library.vectors("aaaa").vectors
    np.testing.assert_array_equal(library.vectors("aaaa", fingerprint().name).vectors, own)
    assert own.shape != (40, OTHER_DIM)
    library.additions.add_space(other_space(weights="c" * 64))
    with pytest.raises(SpaceMismatch, match="give a digest"):
        library.vectors("aaaa", OTHER.name)
    assert len(library.vectors("aaaa", OTHER.digest).frame_no) == 40
    with pytest.raises(SpaceMismatch, match=r"got space nowhere.*other \(.*add vectors"):
        library.search.frames(np.ones(OTHER_DIM), space="nowhere")


def test_a_space_whose_making_was_interrupted_stops_nobody(library):
    (Path(library.uri) / "vectors_half_0123456789ab.lance" / "data").mkdir(parents=True)
    opened = Library.open(library.uri)
    assert opened.spaces() == (fingerprint(), OTHER)
    refresh(opened)
    assert audit(opened).problems == ()


def test_only_videos_with_vectors_there_are_searched(library):
    add(library, "aaaa", "bbbb")
    library.additions.add_vectors({"cccc": STORED["cccc"]}, OTHER)
    query = STORED["cccc"].vectors[7].astype(np.float32)
    hits = library.search.frames(query, k=80, space=OTHER.digest)
    assert {hit.video_id for hit in hits} == {"aaaa", "bbbb"}
    assert len(hits) == 80
    for read in (
        lambda: library.vectors("cccc", OTHER.digest),
        lambda: library.search.frames(query, Scope(("aaaa", "cccc")), space=OTHER.digest),
    ):
        with pytest.raises(SpaceMismatch, match="film cccc has no vectors yet"):
            read()
    with pytest.raises(QueryError, match=r"shape \(24,\)"):
        library.search.frames(query)
    library.additions.complete("vectors", OTHER.digest, {"cccc": 40}, {})
    assert found(library.search.frames(query, k=1, space=OTHER.digest)) == [("cccc", 7)]


def test_an_index_there_finds_the_same(library):
    add(library, *STORED)
    query = STORED["bbbb"].vectors[3].astype(np.float32)
    before = found(library.search.frames(query, k=9, min_gap_s=2.0, space=OTHER.digest))
    refresh(library, Thresholds(scalar_rows=50, vector_rows=100))
    assert found(library.search.frames(query, k=9, min_gap_s=2.0, space=OTHER.digest)) == before
    assert before[0] == ("bbbb", 3)


def test_a_discarded_video_loses_its_vectors_there(library):
    add(library, *STORED)
    library.writer.discard("bbbb")
    query = STORED["bbbb"].vectors[3].astype(np.float32)
    assert {hit.video_id for hit in library.search.frames(query, k=99, space=OTHER.digest)} == {"aaaa", "cccc"}
    write(library, made("bbbb", 40, seed=1))
    assert [row.video_id for row in library.additions.pending("vectors", OTHER.digest)] == ["bbbb"]
    add(library, "bbbb")
    assert found(library.search.frames(query, k=1, space=OTHER.digest)) == [("bbbb", 3)]
