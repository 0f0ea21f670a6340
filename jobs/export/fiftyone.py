"""`kinodex export fiftyone`: moments as a data set that FiftyOne imports: videos with temporal detections.

The format is FiftyOne's own FiftyOneTemporalDetectionDataset: `data.json` names the video files, `labels.json` holds
the ranges in frames from 1, both ends included. Detections go to it by `kinodex export coco`, which it imports too.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kinodex.jobs.export.moments import Moment, by_video, digest, moment_facts
from kinodex.jobs.export.target_folder import target_folder
from kinodex.redaction import redact_uri

DATA, LABELS = "data.json", "labels.json"
USUAL_FPS = 25.0
EXACT_S = 1e-6
LONGEST = 1000
"""Characters of a label."""


def export_fiftyone(
    moments: Sequence[Moment], folder: Path, times_s: Mapping[str, Sequence[float]] | None = None
) -> int:
    """Write the moments into a folder that is new or empty; returns the number of videos.

    FiftyOne opens the videos where they were when they were indexed. `times_s` are the presentation times of all frames
    by video id, where the file is known; else frames are counted by their rate.
    """
    groups = by_video(moments)
    data = {video_id: redact_uri(group[0].video.uri) for video_id, group in groups.items()}
    known = times_s or {}
    labels = {id_: [_detection(each, known.get(id_, ())) for each in group] for id_, group in groups.items()}
    settings = {**moment_facts(moments), "frames": digest(labels)}
    with target_folder(folder, settings, dict) as target:
        for name, value in ((DATA, data), (LABELS, {"labels": labels})):
            target.write_bytes(name, json.dumps(value, ensure_ascii=False, indent=2))
        target.finish(LABELS, DATA)
    return len(groups)


def _detection(moment: Moment, times_s: Sequence[float]) -> dict[str, Any]:
    support = _shown_frames(moment, times_s) if times_s else _frames_by_rate(moment)
    row: dict[str, Any] = {"label": (moment.label or moment.source)[:LONGEST], "support": support}
    if moment.score is not None:
        row["confidence"] = moment.score
    return row | {"attributes": {"source": moment.source, "start_s": moment.start_s, "end_s": moment.end_s}}


def _shown_frames(moment: Moment, times_s: Sequence[float]) -> list[int]:
    """Numbers of the first and the last frame that is shown within a moment."""
    first = max(bisect_right(times_s, moment.presentation_start_s + EXACT_S), 1)
    return [first, max(bisect_left(times_s, moment.presentation_end_s - EXACT_S), first)]


def _frames_by_rate(moment: Moment) -> list[int]:
    fps = moment.video.fps or USUAL_FPS
    count = max(round(moment.video.duration_s * fps), 1)
    first = min(max(round((moment.start_s - moment.video.start_s) * fps), 0) + 1, count)
    return [first, min(max(round((moment.end_s - moment.video.start_s) * fps), first), count)]
