"""Detections in frames, with tracks from frame to frame, by a local model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.jobs.add.run import AddedRows
from kinodex.jobs.add.stage import StageWork
from kinodex.jobs.add.stages import Detections
from kinodex.jobs.errors import check_packages
from kinodex.jobs.library import BATCHES_AHEAD, stored_pictures
from kinodex.jobs.models import hub_for
from kinodex.pipeline.prefetch import prefetch

if TYPE_CHECKING:
    from kinodex.pipeline.models.boxes import Box
    from kinodex.pipeline.models.detector import Detector


class NewDetection(NamedTuple):
    """A row of detections; see kinodex.index.additions.DetectionLike."""

    frame_no: int
    time_s: float
    label: str
    score: float
    box: Box
    track_id: int


@dataclass(frozen=True, slots=True)
class DetectionFinder(StageWork[Detections]):
    """Things in the frames of a library's videos. With labels the detector has to be one that finds any words."""

    detector: Detector

    @classmethod
    @contextmanager
    def open(cls, stage: Detections, library: Library) -> Iterator[DetectionFinder]:
        """Load the detector."""
        from kinodex.pipeline.models.detector import load_detector

        check_packages("scipy")  # which follows things from frame to frame
        with hub_for(stage.model):
            detector = load_detector(stage.model, stage.labels, stage.min_score, stage.device)
        yield cls(stage, library, detector)

    def rows_of(self, video: VideoRow) -> AddedRows:
        from kinodex.pipeline.models.tracks import find_tracks

        frames, found = [], []
        with closing(prefetch(stored_pictures(self.library, video, self.stage.batch), BATCHES_AHEAD)) as batches:
            for batch in batches:
                frames += [(frame.frame_no, frame.time_s) for frame, _ in batch]
                found += self.detector.detect([picture for _, picture in batch])
        cuts_s = [segment.start_s for segment in self.library.segments(video.video_id) if segment.kind == "shot"]
        tracks = find_tracks(found, [time_s for _, time_s in frames], cuts_s)
        rows = [
            NewDetection(frame_no, time_s, each.label, each.score, each.box, track_id)
            for (frame_no, time_s), boxes, track_ids in zip(frames, found, tracks, strict=True)
            for each, track_id in zip(boxes, track_ids, strict=True)
        ]
        return AddedRows(rows, len(rows))

    def write(self, rows: Mapping[str, Any]) -> None:
        self.library.additions.add_detections(rows, self.model)
