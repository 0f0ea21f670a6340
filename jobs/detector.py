"""Detector for agents: finds in stored frames, on request, what the library's detections do not hold."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING

from kinodex.index.additions import plain_label
from kinodex.index.library import LibraryReader
from kinodex.index.rows import DetectionRow

if TYPE_CHECKING:
    from kinodex.agent.protocol.frames import ShownFrame
    from kinodex.agent.videos.environment import Detect
    from kinodex.pipeline.models.detector import Detector


BATCH = 4
"""Frames that the model sees at once."""
_THINGS = (
    "person animal dog cat bird horse vehicle car bicycle boat train airplane bag hat shoe clothes food drink bottle "
    "cup plate knife ball toy book paper phone screen computer camera lamp clock chair table bed door window house "
    "tree flower sign text tool box"
)
EVERYDAY_THINGS = tuple(_THINGS.split())
"""What a detector that is asked in words looks for when no label is named."""


def detect_with(library: LibraryReader, model: str, min_score: float = 0.3, device: str = "auto") -> Detect:
    """Make the detector of an `Environment` over a library; `model` is a hub id or a folder.

    A model that knows only its own labels cannot find others. An empty label is all of them, or `EVERYDAY_THINGS` for a
    model that is asked in words. Requests take turns. Raises ModelMissing, WrongModel or NoSuchDevice.
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
    from kinodex.jobs.models import hub_for
    from kinodex.pipeline.errors import WrongModel
    from kinodex.pipeline.models.detector import load_detector

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


def _rows(
    library: LibraryReader, model: str, detector: Detector, frames: Sequence[ShownFrame], label: str
) -> list[DetectionRow]:
    from kinodex.jobs.library import batched, picture_of
    from kinodex.pipeline.models.tracks import find_tracks

    found = [
        [each for each in boxes if not label or plain_label(each.label) == label]
        for pictures in batched([picture_of(frame) for frame in frames], BATCH)
        for boxes in detector.detect(pictures)
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
