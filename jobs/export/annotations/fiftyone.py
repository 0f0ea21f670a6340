"""`kinodex export fiftyone`: moments as a data set that FiftyOne imports: videos with temporal detections.

The format is FiftyOne's own FiftyOneTemporalDetectionDataset: `data.json` names the video files, `labels.json` holds
the ranges in frames from 1, both ends included. Detections go to it by `kinodex export coco`, which it imports too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from index.redact import redact_uri
from index.rows import VideoRow
from jobs.export.moments.moment import Moment, by_video
from jobs.export.target_folder import target_folder

DATA, LABELS = "data.json", "labels.json"
USUAL_FPS = 25.0
LONGEST = 1000
"""Characters of a label."""


def export_fiftyone(moments: Sequence[Moment], folder: Path) -> int:
    """Write the moments into a folder that is new or empty; returns the number of videos. Raises as `target_folder`.

    FiftyOne opens the videos where they were when they were indexed.
    """
    groups = by_video(moments)
    data = {video_id: redact_uri(group[0].video.uri) for video_id, group in groups.items()}
    labels = {video_id: [_detection(each) for each in group] for video_id, group in groups.items()}
    with target_folder(folder, {"moments": len(moments)}, dict) as target:
        for name, value in ((DATA, data), (LABELS, {"labels": labels})):
            target.write_bytes(name, json.dumps(value, ensure_ascii=False, indent=2))
        target.finish(LABELS, DATA)
    return len(groups)


def _detection(moment: Moment) -> dict[str, Any]:
    fps = moment.video.fps or USUAL_FPS
    first = max(round(moment.start_s * fps), 0) + 1
    last = min(max(round(moment.end_s * fps), first), _frames(moment.video, fps))
    row: dict[str, Any] = {"label": (moment.label or moment.source)[:LONGEST], "support": [first, max(last, first)]}
    if moment.score is not None:
        row["confidence"] = moment.score
    return row | {"attributes": {"source": moment.source, "start_s": moment.start_s, "end_s": moment.end_s}}


def _frames(video: VideoRow, fps: float) -> int:
    return max(round(video.end_s * fps), 1)
