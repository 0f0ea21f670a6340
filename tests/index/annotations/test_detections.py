"""Detections of a video: in order, by label, and the frames and labels without them."""

from __future__ import annotations

from tests.support.libraries.random_library import detection, made, write


def test_labels_of_detections_are_listed_the_most_frequent_first(library):
    write(library, made("aaaa", 18, seed=1))
    video_id = library.videos()[0].video_id
    assert library.detection_labels(video_id) == []
    rows = [detection(number, label, 0.5) for number, label in enumerate(["cat", "Big  Dog", "big dog", "ant"])]
    library.additions.add_detections({video_id: rows}, "m")
    assert library.detection_labels(video_id) == []  # not complete yet
    library.additions.complete("detections", "m", {video_id: len(rows)}, {})
    assert library.detection_labels(video_id) == ["big dog", "ant", "cat"]


def test_detections_are_read_by_time_label_and_score_and_frames_by_label(library):
    write(library, made("aaaa", 18, seed=1))
    rows = [
        detection(number, label, score) for number, label, score in ((3, "cat", 0.9), (1, "dog", 0.4), (5, "cat", 0.5))
    ]
    assert library.detections("aaaa") == [] and library.detected_frames("aaaa") == {}
    library.additions.add_detections({"aaaa": rows}, "m")
    library.additions.complete("detections", "m", {"aaaa": len(rows)}, {})
    assert [(each.frame_no, each.label) for each in library.detections("aaaa")] == [(1, "dog"), (3, "cat"), (5, "cat")]
    assert [each.frame_no for each in library.detections("aaaa", 3.0, 5.0)] == [3]
    assert [each.frame_no for each in library.detections("aaaa", label="Cat", min_score=0.6)] == [3]
    assert {label: frames.tolist() for label, frames in library.detected_frames("aaaa").items()} == {
        "cat": [3, 5],
        "dog": [1],
    }
