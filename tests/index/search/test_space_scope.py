"""A search in another space sees the videos that have vectors there."""

from __future__ import annotations

import pytest

from index.errors import SpaceMismatch
from index.library import Library
from index.search.space_scope import space_scope
from tests.support.random_library import made, other_space, vectors_of, write


def test_videos_with_vectors_in_the_space(library: Library) -> None:
    other = other_space()
    for video_id in ("aaaa", "bbbb"):
        write(library, made(video_id, 4, seed=1))
    library.additions.add_space(other)
    library.additions.add_vectors({"aaaa": vectors_of(4, 1)}, other)
    assert library.additions.complete("vectors", other.digest, {"aaaa": 4}, {}) == ()
    own = space_scope(library.tables, library.visible, library.fingerprint, None)
    there = space_scope(library.tables, library.visible, library.fingerprint, other.name)
    ids = ("aaaa", "bbbb", "nothing")
    assert own.videos(ids).keys() == {"aaaa", "bbbb"}
    assert there.videos(ids).keys() == {"aaaa"}
    own.check(ids)
    there.check(("aaaa",))
    with pytest.raises(SpaceMismatch, match="film bbbb has no vectors yet; run `kinodex add vectors`"):
        there.check(ids)


def test_the_own_space_by_name_is_the_own_space(library: Library) -> None:
    named = space_scope(library.tables, library.visible, library.fingerprint, library.fingerprint.digest)
    assert named.other is None
    with pytest.raises(SpaceMismatch, match=r"got space nothing, and .* holds local-dir:/models/tiny"):
        space_scope(library.tables, library.visible, library.fingerprint, "nothing")
