"""Detections in frames, with tracks from frame to frame, by a local model."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.jobs.add.run import AddedRows, check_settings, hub_for
from kinodex.jobs.errors import check_packages
from kinodex.jobs.library import BATCHES_AHEAD, stored_pictures
from kinodex.pipeline.sample import prefetch

if TYPE_CHECKING:
    from kinodex.pipeline.models.detector import Box, Detector


class NewDetection(NamedTuple):
    """A row of detections; see kinodex.index.additions.DetectionLike."""

    frame_no: int
    time_s: float
    label: str
    score: float
    box: Box
    track_id: int


@dataclass(frozen=True, slots=True)
class Detections:
    """Settings of the addition. With `labels` the detector has to be one that finds any words."""

    detector: str
    labels: tuple[str, ...] = ()
    min_score: float = 0.3
    batch: int = 4
    """Frames that the model gets at once."""
    device: str = "auto"
    name: str = "detections"

    @property
    def model(self) -> str:
        """The detector's name, with its labels if it has any: other labels are another addition."""
        return f"{self.detector} for {', '.join(sorted(self.labels))}" if self.labels else self.detector

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"detector": self.detector, "labels": list(self.labels), "min_score": self.min_score}

    def prepare(self, library: Library) -> None:
        check_packages("scipy")  # which follows things from frame to frame
        check_settings(library, self, "min_score")
        _detector(self.detector, self.labels, self.min_score, self.device)

    def rows_of(self, library: Library, video: VideoRow) -> AddedRows:
        from kinodex.pipeline.models.detector import find_tracks

        detector = _detector(self.detector, self.labels, self.min_score, self.device)
        frames, found = [], []
        with closing(prefetch(stored_pictures(library, video, self.batch), BATCHES_AHEAD)) as batches:
            for batch in batches:
                frames += [(frame.frame_no, frame.time_s) for frame, _ in batch]
                found += detector.detect([picture for _, picture in batch])
        cuts_s = [segment.start_s for segment in library.segments(video.video_id) if segment.kind == "shot"]
        tracks = find_tracks(found, [time_s for _, time_s in frames], cuts_s)
        rows = [
            NewDetection(frame_no, time_s, each.label, each.score, each.box, track_id)
            for (frame_no, time_s), boxes, track_ids in zip(frames, found, tracks, strict=True)
            for each, track_id in zip(boxes, track_ids, strict=True)
        ]
        return AddedRows(rows, len(rows))

    def write(self, library: Library, rows: Mapping[str, Any]) -> None:
        library.additions.add_detections(rows, self.model)


@lru_cache(maxsize=1)
def _detector(name: str, labels: tuple[str, ...], min_score: float, device: str) -> Detector:
    from kinodex.pipeline.models.detector import load_detector

    with hub_for(name):
        return load_detector(name, labels, min_score, device)
