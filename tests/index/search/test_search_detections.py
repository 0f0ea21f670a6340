"""Detections: by label, time and score, of all models that looked, each frame once."""

from __future__ import annotations

import pytest

from index.errors import QueryError, UnknownVideo
from index.library import Library
from index.rows import DetectionRow, Scope
from index.store.indexes import Thresholds, refresh
from tests.support.random_library import SETTINGS, detection, fingerprint, made, write


@pytest.fixture
def library(tmp_path) -> Library:
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    for number, video_id in enumerate(("aaaa", "bbbb", "cccc")):
        write(library, made(video_id, 20, seed=number))
    add(
        library,
        "closed",
        "aaaa",
        [detection(3, "Dog", 0.5, 1), detection(4, "dog", 0.75, 1), detection(4, "cat", 0.25)],
    )
    add(library, "closed", "bbbb", [detection(9, "dog", 0.875)])
    add(library, "open", "aaaa", [detection(4, "dog", 0.625), detection(12, "  Red  kite", 0.5)])
    library.additions.add_detections({"cccc": [detection(1, "dog", 1.0)]}, "closed")
    return library


def add(library: Library, model: str, video_id: str, rows) -> None:
    library.additions.add_detections({video_id: rows}, model)
    assert library.additions.complete("detections", model, {video_id: len(rows)}, {}) == ()


def found(hits):
    return [(hit.video_id, hit.frame_no, hit.score) for hit in hits]


def test_detections_of_a_video(library):
    rows = library.detections("aaaa")
    assert [(row.time_s, row.label, row.score, row.model) for row in rows] == [
        (3.0, "dog", 0.5, "closed"),
        (4.0, "dog", 0.75, "closed"),
        (4.0, "dog", 0.625, "open"),
        (4.0, "cat", 0.25, "closed"),
        (12.0, "red kite", 0.5, "open"),
    ]
    assert rows[0] == DetectionRow("aaaa", 3, 3.0, "dog", 0.5, (0.125, 0.25, 0.5, 0.75), 1, "closed")
    assert [row.label for row in library.detections("aaaa", 4.0, 12.0, min_score=0.5)] == ["dog", "dog"]
    assert [row.time_s for row in library.detections("aaaa", label=" RED kite ")] == [12.0]
    assert library.detections("cccc") == []


def test_frames_with_a_label_best_first(library):
    hits = library.search.detections("DOG")
    assert found(hits) == [("bbbb", 9, 0.875), ("aaaa", 4, 0.75), ("aaaa", 3, 0.5)]
    best = hits[0]
    assert (best.time_s, best.end_s, best.text, best.source) == (9.0, 10.0, "dog", "detection")
    assert found(library.search.detections("dog", k=1)) == [("bbbb", 9, 0.875)]
    assert found(library.search.detections("dog", min_score=0.8)) == [("bbbb", 9, 0.875)]
    assert found(library.search.detections("dog", scope=Scope(("aaaa",), end_s=4.0))) == [("aaaa", 3, 0.5)]
    assert found(library.search.detections("dog", min_gap_s=2.0)) == [("bbbb", 9, 0.875), ("aaaa", 4, 0.75)]
    assert library.search.detections("zebra") == []


def test_indexes_change_no_result(library):
    library.additions.discard_leftovers("detections", "closed")
    add(library, "closed", "cccc", [detection(n % 20, ("dog", "cat", "cow")[n % 3], n / 512) for n in range(400)])
    labels = ("dog", "cat", "cow", "red kite")
    before = [library.search.detections(label, k=7) for label in labels]
    refresh(library.tables, Thresholds(scalar_rows=100, fragments=1))
    assert [library.search.detections(label, k=7) for label in labels] == before
    assert before[2][0].score == 398 / 512
    assert len(library.detections("cccc", label="cow")) == 133


def test_searches_that_cannot_be_run(library):
    with pytest.raises(QueryError, match="empty query"):
        library.search.detections("")
    with pytest.raises(UnknownVideo, match="nobody"):
        library.search.detections("dog", scope=Scope(("nobody",)))
