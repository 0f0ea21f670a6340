"""Hits of one video that are as far apart as wanted, among captions and lines of the transcript."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from index.library import Library
from index.rows import Scope
from tests.support.libraries.random_library import SETTINGS, caption, fingerprint, made, unit_vectors, write

MEANINGS = unit_vectors(3, seed=50)
SAID = ((2.0, 3.0, "a kite"), (3.0, 4.0, "a kite, again"), (6.0, 7.0, "one more kite"))
DESCRIBED = ("a kite", "a kite, again", "one more kite")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """A library of one video whose captions begin at 0, 10 and 20 s, and lines at 2, 3 and 6 s."""
    library = Library.create(str(tmp_path_factory.mktemp("gap") / "library"), SETTINGS, fingerprint())
    write(library, made("aaaa", 30, seed=9, lines=SAID))
    rows = [caption(number, text, MEANINGS[number]) for number, text in enumerate(DESCRIBED)]
    library.additions.add_captions({"aaaa": rows}, "m")
    assert library.additions.complete("captions", "m", {"aaaa": len(rows)}, {}) == ()
    return library


@pytest.mark.parametrize("vector", [None, MEANINGS[0].astype(np.float32)])
def test_captions_of_a_video_are_as_far_apart_as_wanted(library: Library, vector: NDArray[np.float32] | None) -> None:
    def times_s(min_gap_s: float) -> set[float]:
        return {hit.time_s for hit in library.search.captions("kite", vector, Scope(("aaaa",)), min_gap_s=min_gap_s)}

    assert times_s(0.0) == times_s(10.0) == {0.0, 10.0, 20.0}
    assert (times_s(15.0), times_s(21.0)) == ({0.0, 20.0}, {0.0})


def test_lines_of_a_video_are_as_far_apart_as_wanted(library: Library) -> None:
    def times_s(min_gap_s: float) -> set[float]:
        return {hit.time_s for hit in library.search.transcript("kite", min_gap_s=min_gap_s)}

    assert times_s(0.0) == {2.0, 3.0, 6.0}
    assert times_s(3.0) in ({2.0, 6.0}, {3.0, 6.0})
    assert len(times_s(5.0)) == 1
