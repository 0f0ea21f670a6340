"""Optional stages: seen when complete, begun again without a gap or a double, gone with their video."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kinodex.index.errors import LibraryError
from kinodex.index.library import Library
from kinodex.index.store.indexes import Thresholds, refresh
from tests.support.libraries.random_library import (
    SETTINGS,
    add_stage,
    caption,
    detection,
    empty_library,
    fingerprint,
    made,
    other_space,
    spoken,
    vectors_of,
    write,
    write_all,
)
from tests.support.screen_text.lines import Line

OTHER = other_space()
OFTEN = Thresholds(scalar_rows=5, vector_rows=30, stale_rows=5, stale_lines=5, fragments=2, vector_fragments=2)


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Path:
    library = empty_library(tmp_path_factory.mktemp("original") / "library", SETTINGS, fingerprint())
    write_all(library, [made(video_id, 6, seed=number) for number, video_id in enumerate(("aaaa", "bbbb", "cccc"))])
    library.additions.add_space(OTHER)
    library.additions.discard_leftovers("screen_text", "m1")  # which makes the table
    return Path(library.uri)


@pytest.fixture
def library(original, tmp_path) -> Library:
    return Library.open(str(shutil.copytree(original, tmp_path / "library")))


def add(library: Library, stage: str, model: str, *video_ids: str) -> dict[str, int]:
    """Three rows a video; six vectors. Returns how many."""
    rows: dict[str, list[Any]] = {
        "captions": [caption(n, f"{model} says {n}") for n in range(3)],
        "detections": [detection(n, "Red Kite", 0.5) for n in range(3)],
        "speech": [spoken(n, f"{model} heard {n}") for n in range(3)],
        "screen_text": [Line(n, n + 1.0, f"{model} read {n}") for n in range(3)],
    }
    if stage == "vectors":
        library.additions.add_vectors({id_: vectors_of(6, seed=9) for id_ in video_ids}, OTHER)
        return dict.fromkeys(video_ids, 6)
    add_stage(library, stage, model, dict.fromkeys(video_ids, rows[stage]), complete=False)
    return dict.fromkeys(video_ids, 3)


STAGES = [("captions", "m1"), ("detections", "m1"), ("speech", "m1"), ("screen_text", "m1"), ("vectors", OTHER.digest)]
TWO = STAGES[0], STAGES[-1]


def pending(library: Library, stage: str, model: str) -> list[str]:
    return [row.video_id for row in library.additions.pending(stage, model)]


@pytest.mark.slow
@pytest.mark.parametrize(("stage", "model"), STAGES)
def test_a_stage_is_pending_until_it_is_complete_and_leftovers_are_deleted(library, stage, model):
    counts = add(library, stage, model, "aaaa", "cccc")
    assert pending(library, stage, model) == ["aaaa", "bbbb", "cccc"]
    assert library.additions.complete(stage, model, counts, {"batch": 4}) == ()
    assert pending(library, stage, model) == ["bbbb"]
    if stage != "vectors":
        assert pending(library, stage, "m2") == ["aaaa", "bbbb", "cccc"]
    library.additions.discard(stage, model, "cccc")
    assert pending(library, stage, model) == ["bbbb", "cccc"]
    add(library, stage, model, "bbbb", "cccc")
    assert library.additions.discard_leftovers(stage, model) == 2
    assert library.additions.discard_leftovers(stage, model) == 0
    assert library.additions.complete(stage, model, add(library, stage, model, "bbbb"), {}) == ()
    assert pending(library, stage, model) == ["cccc"]


@pytest.mark.slow
@pytest.mark.parametrize(("stage", "model"), STAGES)
def test_two_runs_on_one_video_are_noticed_and_additions_go_with_their_video(library, stage, model):
    add(library, stage, model, "aaaa")
    counts = add(library, stage, model, "aaaa", "bbbb")
    assert library.additions.complete(stage, model, counts, {}) == ("aaaa",)
    assert pending(library, stage, model) == ["aaaa", "cccc"]
    assert library.additions.complete(stage, model, add(library, stage, model, "aaaa"), {}) == ()
    library.writer.discard("aaaa")
    late = add(library, stage, model, "aaaa")
    assert library.additions.complete(stage, model, late, {}) == ("aaaa",)
    write(library, made("aaaa", 6, seed=0))
    assert pending(library, stage, model) == ["aaaa", "cccc"]
    assert library.additions.complete(stage, model, add(library, stage, model, "aaaa"), {}) == ()


def test_what_cannot_be_added(library):
    with pytest.raises(LibraryError, match=r"'pictures'; it is one of speech, .*, sentences"):
        library.additions.pending("pictures", "m1")
    with pytest.raises(LibraryError, match=f"{OTHER.digest}.*; add it first"):
        library.additions.discard_leftovers("vectors", "nowhere")
    with pytest.raises(ValueError, match=r"not \[6, 24\]"):
        library.additions.add_vectors({"aaaa": vectors_of(6, seed=1, dim=5)}, OTHER)
    with pytest.raises(ValueError, match=r"shape \(5,\)"):
        library.additions.add_captions({"aaaa": [caption(0, "a kite", vector=np.ones(5, np.float16))]}, "m1")


def _ingest(uri: str) -> None:
    library = Library.open(uri)
    for number in range(5):
        write(library, made(f"new{number:02d}", 6, seed=number))
        refresh(library.tables, OFTEN)


def _add_to_all(uri: str, stage: str, model: str, videos: int) -> None:
    """Add as `kinodex add` does, until this many videos have the stage."""
    library = Library.open(uri)
    done = 0
    library.additions.discard_leftovers(stage, model)
    while done < videos:
        for row in library.additions.pending(stage, model)[:2]:
            counts = add(library, stage, model, row.video_id)
            assert library.additions.complete(stage, model, counts, {}) == ()
            done += 1
        refresh(library.tables, OFTEN)


def rows_of(library: Library, stage: str, video_id: str) -> int:
    if stage == "captions":
        return len(library.captions(video_id))
    if stage == "detections":
        return len(library.detections(video_id))
    return len(library.speech(video_id) if stage == "speech" else library.vectors(video_id, OTHER.digest).vectors)


@pytest.mark.slow
def test_stages_are_added_at_once_beside_an_ingest(library):
    """Each in a thread that has the library open for itself; processes: test_annotations, store/test_indexes."""
    with ThreadPoolExecutor() as pool:
        runs = [pool.submit(_ingest, library.uri), *(pool.submit(_add_to_all, library.uri, *each, 8) for each in TWO)]
    assert [run.result() for run in runs] == [None] * 3
    assert len(library.videos()) == 8
    for stage, model in TWO:
        assert pending(library, stage, model) == []
        counts = {row.video_id: rows_of(library, stage, row.video_id) for row in library.videos()}
        assert set(counts.values()) == {6 if stage == "vectors" else 3}, (stage, counts)
