"""Candidate pairs: by a few frames of each video, in memory and through the library's own search."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kinodex.index.library import Library
from kinodex.jobs.duplicates import PARTNERS, best_partners, pairs_by_index, pairs_in_memory, probe_places
from tests.support.duplicates.walks import DIM, shot, timeline, walk
from tests.support.libraries.random_library import SETTINGS, MadeVideo, fingerprint, write

FILMS = {name: walk(60, seed) for name, seed in (("a", 1), ("b", 2), ("c", 3))}
FRAMES = {
    "a": shot(FILMS["a"], 0, 60),
    "a cut": shot(FILMS["a"], 20, 50, noise=0.05),
    "b": shot(FILMS["b"], 0, 60),
    "c": shot(FILMS["c"], 0, 60),
}


def nothing(done: int) -> None:
    """Progress that nobody follows."""


@pytest.mark.parametrize(("frames", "duration_s", "count"), [(3, 3.0, 3), (60, 60.0, 8), (3600, 3600.0, 120)])
def test_frames_that_look_for_others_are_spread_evenly(frames: int, duration_s: float, count: int) -> None:
    places = probe_places(frames, duration_s, 30.0)
    assert len(places) == len(set(places.tolist())) == count
    assert 0 <= places.min() <= places.max() < frames
    assert np.ptp(np.diff(places)) <= 1


def test_only_the_film_and_its_cut_are_a_pair() -> None:
    lines = {name: timeline(units) for name, units in FRAMES.items()}
    assert pairs_in_memory(lines, 30.0, set(lines), nothing) == [("a", "a cut")]
    assert pairs_in_memory(lines, 30.0, {"a cut"}, nothing) == [("a", "a cut")]
    assert pairs_in_memory(lines, 30.0, {"b"}, nothing) == []


def test_the_index_finds_them_too(tmp_path: Path) -> None:
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint(dim=DIM))
    for name, units in FRAMES.items():
        write(library, MadeVideo(name.replace(" ", "-"), units.astype(np.float16)))
    counts: list[int] = []
    pairs = pairs_by_index(library, sorted(library.video_ids()), 30.0, None, counts.append)
    assert ("a", "a-cut") in pairs
    assert counts == [1, 2, 3, 4]


def test_a_video_keeps_its_best_partners_alone() -> None:
    votes = {("hub", f"video {n:03}"): n for n in range(1, 41)}
    assert best_partners(votes, least=1) == sorted(votes), "each is the best partner of the other one"
    both = votes | {(f"video {n:03}", f"wideo {m:03}"): 99 for n in range(1, 41) for m in range(PARTNERS)}
    kept = [pair for pair in best_partners(both, least=1) if pair[0] == "hub"]
    assert [pair[1] for pair in kept] == [f"video {n:03}" for n in range(21, 41)]
    assert best_partners({("a", "b"): 1}, least=2) == []
