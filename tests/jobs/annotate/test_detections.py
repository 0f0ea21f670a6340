"""Detections with boxes and tracks, by models of closed and of open vocabulary."""

from __future__ import annotations

from kinodex.index.rows import Scope
from tests.support.command import json_of


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
