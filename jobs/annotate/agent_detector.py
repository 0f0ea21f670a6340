"""Detector for agents: finds in stored frames, on request, what the library's detections do not hold."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING

from index.annotations.additions import plain_label
from index.library import Library
from index.rows import DetectionRow, StoredFrame
from jobs.annotate.stage import hub_for
from jobs.stored_frames import picture_of

if TYPE_CHECKING:
    from agent.core.protocol import ShownFrame
    from agent.environment import Detect
    from pipeline.models.detector import Detector

BATCH = 4
"""Frames that the model sees at once."""
_THINGS = (
    "person animal dog cat bird horse vehicle car bicycle boat train airplane bag hat shoe clothes food drink bottle "
    "cup plate knife ball toy book paper phone screen computer camera lamp clock chair table bed door window house "
    "tree flower sign text tool box"
)
EVERYDAY_THINGS = tuple(_THINGS.split())
"""What a detector that is asked in words looks for when no label is named."""


def detect_with(library: Library, model: str, min_score: float = 0.3, device: str = "auto") -> Detect:
    """Make the detector of an `Environment` over a library; `model` is a hub id or a folder.

    A model that knows only its own labels cannot find others. An empty label is all of them, or `EVERYDAY_THINGS` for a
    model that is asked in words. Requests take turns. Raises ModelMissing, WrongModel
    or NoSuchDevice.
    """
    detector = _load(model, min_score, device)
    turn = Lock()

    def detect(frames: Sequence[ShownFrame], label: str) -> list[DetectionRow] | None:
        for_label = _for_label(detector, plain_label(label))
        if for_label is None or not frames:
            return None if for_label is None else []
        with turn:
            return _rows(library, model, for_label, frames, plain_label(label))

    return detect


def _load(model: str, min_score: float, device: str) -> Detector:
    from pipeline.errors import WrongModel
    from pipeline.models.detector import load_detector

    with hub_for(model):
        try:
            return load_detector(model, (), min_score, device)
        except WrongModel as error:
            try:
                return load_detector(model, ("thing",), min_score, device)
            except WrongModel:
                raise error from None


def _for_label(detector: Detector, label: str) -> Detector | None:
    if detector.open_vocabulary:
        return detector.with_labels([label] if label else EVERYDAY_THINGS)
    return detector if not label or label in map(plain_label, detector.labels) else None


def _stored(frame: ShownFrame) -> StoredFrame:
    return StoredFrame(frame.video_id, frame.frame_no, frame.time_s, frame.width_px, frame.height_px, frame.jpeg)


def _rows(
    library: Library, model: str, detector: Detector, frames: Sequence[ShownFrame], label: str
) -> list[DetectionRow]:
    from pipeline.models.tracking import find_tracks

    pictures = [picture_of(_stored(frame)) for frame in frames]
    found = [
        [each for each in boxes if not label or plain_label(each.label) == label]
        for first in range(0, len(frames), BATCH)
        for boxes in detector.detect(pictures[first : first + BATCH])
    ]
    cuts_s = [each.start_s for each in library.segments(frames[0].video_id) if each.kind == "shot"]
    tracks = find_tracks(found, [frame.time_s for frame in frames], cuts_s)
    return [
        DetectionRow(
            frame.video_id, frame.frame_no, frame.time_s, plain_label(each.label), each.score, each.box, track_id, model
        )
        for frame, boxes, track_ids in zip(frames, found, tracks, strict=True)
        for each, track_id in zip(boxes, track_ids, strict=True)
    ]
