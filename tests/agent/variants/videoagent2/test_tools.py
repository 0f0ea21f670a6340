"""The tools of VideoAgent2 in full runs: captions, enlargements, detections, tracks."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from agent.core.protocol import ShownFrame
from agent.variants.videoagent2.requests import Assess, CaptionFrames
from index.library import Library
from index.rows import DetectionRow
from tests.support.libraries.videoagent2_film import (
    call_once,
    kite_library,
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return kite_library(tmp_path_factory.mktemp("videoagent2"))


def test_captions_of_a_range_are_of_a_frame_a_second_and_of_eight_at_most(library: Library) -> None:
    found, model, event = call_once(library, {"tool": "caption", "start_s": 40.0, "end_s": 43.0})
    assert [frame.time_s for frame in model.asked(CaptionFrames)[0].frames] == [40.0, 41.0, 42.0]
    assert found == ["a red kite (confidence 0.90); a desert (confidence 0.60)"] * 3
    assert [(note.start_s, note.end_s, note.source) for note in event.notes][1] == (41.0, 42.0, "caption tool")
    _, model, _ = call_once(library, {"tool": "caption", "start_s": 0.0, "end_s": 1000.0})
    assert [frame.time_s for frame in model.asked(CaptionFrames)[0].frames][::7] == [3.0, 56.0]


def test_zooming_shows_the_part_in_the_box(library: Library) -> None:
    call = {"tool": "zoom_caption", "start_s": 41.0, "end_s": 50.0, "box": [0.5, 0.0, 1.0, 1.0]}
    found, model, _ = call_once(library, call)
    (asked,) = model.asked(CaptionFrames)
    assert asked.box == (0.5, 0.0, 1.0, 1.0)
    (frame,) = asked.frames
    assert frame.time_s == 41.0
    shown = np.asarray(Image.open(io.BytesIO(frame.jpeg)))
    assert shown[5:-5, 5:-5, 2].min() > 200
    assert found == ["in [0.50, 0.00, 1.00, 1.00]: a red kite (confidence 0.90); a desert (confidence 0.60)"]


def test_detections_come_from_the_library_and_a_missed_one_from_the_frames_around(library: Library) -> None:
    found, model, event = call_once(library, {"tool": "detect", "start_s": 20.0, "end_s": 25.0, "label": "boat"})
    assert found[0] == "boat number 7 at [0.20, 0.10, 0.40, 0.50] (confidence 0.70)"
    assert found[2] == "boat number 7 at [0.22, 0.10, 0.42, 0.50] (confidence 0.60)"
    assert [note.start_s for note in event.notes] == [20.0, 21.0, 22.0, 23.0, 24.0]
    assert model.asked(CaptionFrames) == []
    everything, _, _ = call_once(library, {"tool": "detect", "start_s": 24.0})
    assert everything[0].startswith("house number 8 at [0.60, 0.10, 0.80, 0.50] (confidence 0.90); boat number 7 at")


def test_detecting_in_a_part_leaves_out_what_is_elsewhere(library: Library) -> None:
    call = {"tool": "zoom_detect", "start_s": 24.0, "box": [0.5, 0, 1, 1]}
    found, _, _ = call_once(library, call)
    assert found == ["in [0.50, 0.00, 1.00, 1.00]: house number 8 at [0.60, 0.10, 0.80, 0.50] (confidence 0.90)"]


def test_a_thing_is_followed_through_a_range(library: Library) -> None:
    found, _, event = call_once(library, {"tool": "track", "start_s": 15.0, "end_s": 30.0, "label": "boat"})
    assert found == [
        "at 20.0 s boat number 7 at [0.20, 0.10, 0.40, 0.50] (confidence 0.70); "
        "at 21.0 s boat number 7 at [0.21, 0.10, 0.41, 0.50] (confidence 0.71); "
        "at 24.0 s boat number 7 at [0.24, 0.10, 0.44, 0.50] (confidence 0.60)"
    ]
    assert (event.notes[0].start_s, event.notes[0].end_s) == (20.0, 25.0)


def kites_everywhere(frames: tuple[ShownFrame, ...], label: str) -> list[DetectionRow]:
    """A detector that sees one thing in the same place of every frame."""
    return [
        DetectionRow(each.video_id, each.frame_no, each.time_s, label, 0.8, (0.1, 0.2, 0.3, 0.4), 1, "everywhere")
        for each in frames
    ]


def test_what_the_library_does_not_hold_is_looked_for_by_a_detector(library: Library) -> None:
    call = {"tool": "detect", "start_s": 41.0, "label": "kite"}
    found, _, _ = call_once(library, call, detector=kites_everywhere)
    assert found == ["kite number 1 at [0.10, 0.20, 0.30, 0.40] (confidence 0.80)"]
    call = {"tool": "zoom_detect", "start_s": 41.0, "label": "kite", "box": [0.5, 0.5, 1.0, 1.0]}
    found, _, _ = call_once(library, call, detector=kites_everywhere)
    assert found[0].endswith("kite number 1 at [0.55, 0.60, 0.65, 0.70] (confidence 0.80)")


def test_without_a_detector_the_index_says_where_a_thing_is_likely(library: Library) -> None:
    found, _, _ = call_once(library, {"tool": "track", "start_s": 30.0, "end_s": 60.0, "label": "red kite desert"})
    assert any("at 40.0 s red kite desert somewhere, by likeness alone (confidence 0." in text for text in found)
    assert not any("[" in text for text in found)


def test_finding_nothing_is_told_and_so_is_what_cannot_be_done(library: Library) -> None:
    found, model, event = call_once(library, {"tool": "detect", "start_s": 3.0, "label": "boat"})
    assert (found, event.problem) == (["nothing found, no boat"], "")
    assert model.asked(Assess)[1].notes[-1].text == "nothing found, no boat"
    found, _, event = call_once(library, {"tool": "detect", "start_s": 55.0})
    assert event.problem == found[0] == "the library holds no detections there; give a label, the thing to look for"
