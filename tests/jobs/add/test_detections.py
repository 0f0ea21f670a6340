"""Detections with boxes and tracks, by models of closed and of open vocabulary, stored or for an agent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from kinodex.agent.protocol.frames import ShownFrame
from kinodex.index.library import Library
from kinodex.index.rows import Scope
from kinodex.jobs.detector import detect_with
from kinodex.pipeline.errors import ModelUnusable
from tests.support.command import json_of


@pytest.mark.slow
def test_detections_have_boxes_and_tracks_and_are_found_by_label(kinodex, library, tiny_model):
    made = json_of(
        kinodex, "add", "detections", library.uri, "--model", tiny_model("rt_detr"), "--min-score", 0.5, "--batch", 3
    )
    video = library.videos()[0]
    rows = library.detections(video.video_id)
    assert made["added"] == 3
    assert made["rows"] == sum(len(library.detections(row.video_id)) for row in library.videos())
    numbers = library.vectors(video.video_id)
    assert {(row.frame_no, row.time_s) for row in rows} <= set(
        zip(numbers.frame_no.tolist(), numbers.time_s.tolist(), strict=True)
    )
    tracks = {(row.track_id, row.label) for row in rows}
    assert len(tracks) == len({track for track, _ in tracks}) < len(rows)
    label = rows[0].label
    hits = library.search.detections(label, 0.5, Scope((video.video_id,)), k=50)
    assert {hit.time_s for hit in hits} == {row.time_s for row in rows if row.label == label}


@pytest.mark.slow
def test_an_open_vocabulary_is_an_addition_of_its_own(kinodex, library, tiny_model):
    common = ("detections", library.uri, "--model", tiny_model("owlv2"), "--min-score", 0.02, "--video", "film-1")
    assert json_of(kinodex, "add", *common, "--labels", "Red  Kite, boat")["added"] == 1
    assert json_of(kinodex, "add", *common, "--labels", "boat", "--labels", "red kite")["added"] == 0
    assert json_of(kinodex, "add", *common, "--labels", "cat")["added"] == 1
    video = library.video("film-1")
    rows = library.detections(video.video_id)
    assert {row.label for row in rows} <= {"red kite", "boat", "cat"}
    assert {row.model.partition(" for ")[2] for row in rows} == {"boat, red kite", "cat"}
    assert library.detections(library.video("film-0").video_id) == []
    assert library.search.detections("cat", 0.02)


@pytest.fixture
def frames(library: Library) -> list[ShownFrame]:
    video = library.video("film-0")
    numbers = library.vectors(video.video_id).frame_no.tolist()
    return [ShownFrame(**asdict(frame)) for frame in library.frames(video.video_id, numbers)]


@pytest.mark.slow
def test_a_closed_detector_finds_its_own_labels_and_no_others(
    library: Library, frames: list[ShownFrame], tiny_model: Callable[[str], Path]
) -> None:
    model = str(tiny_model("rt_detr"))
    detect = detect_with(library, model, min_score=0.0)
    found = {label: detect(frames, label.title()) or [] for label in ("boat", "kite", "cat")}
    assert any(found.values())  # of a model with random weights it is open which
    for label, rows in found.items():
        assert {(row.label, row.model, row.video_id) for row in rows} <= {(label, model, frames[0].video_id)}
        assert {row.time_s for row in rows} <= {frame.time_s for frame in frames}
    assert detect(frames, "a word that it does not know") is None
    assert detect([], "boat") == []
    with pytest.raises(ModelUnusable, match="nothing"):
        detect_with(library, "/nowhere/nothing")


def test_an_open_detector_is_asked_for_any_word(
    library: Library, frames: list[ShownFrame], tiny_model: Callable[[str], Path]
) -> None:
    found = detect_with(library, str(tiny_model("owlv2")), min_score=0.0)(frames[:2], "Red Kite")
    assert found
    assert {row.label for row in found} == {"red kite"}
