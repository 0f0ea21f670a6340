"""`kinodex export label-studio`: tasks of Label Studio, a video each: moments, detections and text as predictions.

Moments are regions of the time line (`timelinelabels`), detections boxes that follow their thing (`videorectangle`),
and so are lines of text, whose box is that of their best reading; in frames from 1 and percent of the picture, as Label
Studio's documentation of its video tags has them. `config.xml` is the labelling interface that these names belong to.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, urlsplit
from xml.sax.saxutils import quoteattr

from index.library_reader import LibraryReader
from index.redact import redact_uri
from index.rows import DetectionRow, ScreenTextRow, VideoRow
from jobs.export.moments.moment import Moment, by_video, digest, moment_facts
from jobs.export.target_folder import target_folder

TASKS, CONFIG = "tasks.json", "config.xml"
USUAL_FPS = 25.0
CATEGORIES = ("range", "detection")
"""Sources whose labels are categories; of others the text stands beside the region, whose category is its source."""


@dataclass(frozen=True, slots=True)
class TaskReport:
    """Counts of what was written."""

    tasks: int
    moments: int
    boxes: int


def export_label_studio(
    library: LibraryReader, moments: Sequence[Moment], folder: Path, url_prefix: str | None, boxes: bool
) -> TaskReport:
    """Write `tasks.json` and `config.xml` into a folder that is new or empty.

    Videos are named by their addresses, or by `url_prefix` and the name of the file. `boxes` adds the detections
    and the text on screen within the moments. Raises UsageError as `target_folder` does.
    """
    spoken = [each for each in moments if each.source != "detection"] if boxes else list(moments)
    tasks = []
    names: dict[str, dict[str, None]] = {"timeline": {}, "label": {}}
    counts = {"timeline": 0, "label": 0}
    for group in by_video(moments).values():
        video = group[0].video
        results = [_timeline(each, number) for number, each in enumerate(group) if each in spoken]
        if boxes:
            results += _boxes(video, _within(library, group))
            results += _text_boxes(video, _text_within(library, group))
        for each in results:
            kind = "timeline" if each["type"] == "timelinelabels" else "label"
            names[kind] |= dict.fromkeys(each["value"].get("timelinelabels") or each["value"]["labels"])
            counts[kind] += 1
        tasks.append(_task(video, results, url_prefix))
    settings = {"boxes": boxes, "prefix": url_prefix, **moment_facts(moments), "tasks": digest(tasks)}
    with target_folder(folder, settings, dict) as target:
        target.write_bytes(TASKS, json.dumps(tasks, ensure_ascii=False, indent=2) + "\n")
        target.write_bytes(CONFIG, config_xml(names["timeline"], names["label"]))
        target.finish(CONFIG, TASKS)
    return TaskReport(len(tasks), counts["timeline"], counts["label"])


def config_xml(timeline: Iterable[str], labels: Iterable[str]) -> str:
    """Write the labelling interface with these categories of the time line and of boxes."""
    ranges = "".join(f"    <Label value={quoteattr(name)}/>\n" for name in timeline)
    boxes = "".join(f"    <Label value={quoteattr(name)}/>\n" for name in labels)
    parts = ['<View>\n  <Header value="$title"/>\n']
    if ranges:
        parts.append(f'  <TimelineLabels name="timeline" toName="video">\n{ranges}  </TimelineLabels>\n')
    parts.append('  <Video name="video" value="$video" framerate="$fps"/>\n')
    if boxes:
        parts.append(f'  <Labels name="label" toName="video">\n{boxes}  </Labels>\n')
        parts.append('  <VideoRectangle name="box" toName="video"/>\n')
    return "".join([*parts, "</View>\n"])


def _task(video: VideoRow, results: Sequence[dict[str, Any]], url_prefix: str | None) -> dict[str, Any]:
    fps = video.fps or USUAL_FPS
    data = {"video": _url(video, url_prefix), "title": video.title, "video_id": video.video_id, "fps": fps}
    return {"data": data, "predictions": [{"model_version": "kinodex", "result": list(results)}]}


def _url(video: VideoRow, prefix: str | None) -> str:
    if prefix is None:
        return redact_uri(video.uri)
    path = urlsplit(video.uri).path if "://" in video.uri else video.uri
    return prefix + quote(PurePosixPath(path).name)


def _frame(video: VideoRow, time_s: float) -> int:
    """Number of the frame that is shown at a time, from 1."""
    return max(round(time_s * (video.fps or USUAL_FPS)), 0) + 1


def _timeline(moment: Moment, number: int) -> dict[str, Any]:
    start, end = _frame(moment.video, moment.start_s), _frame(moment.video, moment.end_s) - 1
    is_category = moment.source in CATEGORIES and moment.label
    category = moment.label if is_category else moment.source
    region: dict[str, Any] = {
        "id": f"moment-{number + 1}",
        "type": "timelinelabels",
        "from_name": "timeline",
        "to_name": "video",
        "value": {"ranges": [{"start": start, "end": max(end, start)}], "timelinelabels": [category]},
    }
    if moment.score is not None:
        region["score"] = moment.score
    if moment.label and not is_category:
        region["meta"] = {"text": [moment.label]}
    return region


def _within(library: LibraryReader, moments: Sequence[Moment]) -> list[DetectionRow]:
    """Read the detections within moments of one video, each once."""
    video_id = moments[0].video.video_id
    rows = (row for each in moments for row in library.detections(video_id, each.start_s, each.end_s))
    return list(dict.fromkeys(rows))


def _boxes(video: VideoRow, rows: Sequence[DetectionRow]) -> list[dict[str, Any]]:
    """Make a region of each track, and of each detection without one."""
    tracks: dict[tuple[object, ...], list[DetectionRow]] = {}
    for number, row in enumerate(rows):
        alone = ("alone", number) if row.track_id is None else ("track", row.track_id)
        tracks.setdefault((row.model, row.label, *alone), []).append(row)
    regions = []
    for number, track in enumerate(tracks.values()):
        ordered = sorted(track, key=lambda row: row.time_s)
        sequence = [_key_frame(video, row.time_s, row.box, is_last=row is ordered[-1]) for row in ordered]
        regions.append(
            {
                "id": f"box-{number + 1}",
                "type": "videorectangle",
                "from_name": "box",
                "to_name": "video",
                "score": max(row.score for row in ordered),
                "value": _extent(video) | {"sequence": sequence, "labels": [ordered[0].label]},
            }
        )
    return regions


def _text_within(library: LibraryReader, moments: Sequence[Moment]) -> list[ScreenTextRow]:
    """Read the lines of text on screen within moments of one video, each once."""
    video_id = moments[0].video.video_id
    rows = (row for each in moments for row in library.screen_text.rows(video_id, each.start_s, each.end_s))
    return list(dict.fromkeys(rows))


def _text_boxes(video: VideoRow, rows: Sequence[ScreenTextRow]) -> list[dict[str, Any]]:
    """Make a region of each line of text, of the category `text`, with what it says beside it."""
    regions = []
    for number, row in enumerate(rows):
        ends = ((row.start_s, False), (row.end_s, True))
        sequence = [_key_frame(video, time_s, row.box, is_last) for time_s, is_last in ends]
        regions.append(
            {
                "id": f"text-{number + 1}",
                "type": "videorectangle",
                "from_name": "box",
                "to_name": "video",
                "score": row.confidence,
                "meta": {"text": [row.text]},
                "value": _extent(video) | {"sequence": sequence, "labels": ["text"]},
            }
        )
    return regions


def _extent(video: VideoRow) -> dict[str, Any]:
    return {"framesCount": _frame(video, video.end_s) - 1, "duration": round(video.duration_s, 6)}


def _key_frame(video: VideoRow, time_s: float, box: tuple[float, ...], is_last: bool) -> dict[str, Any]:
    """A box at a frame, in percent; the box ends with its last one, else Label Studio would show it to the end."""
    x0, y0, x1, y1 = (100 * part for part in box)
    frame = _frame(video, time_s)
    return {
        "frame": frame,
        "time": round((frame - 1) / (video.fps or USUAL_FPS), 6),
        "enabled": not is_last,
        "rotation": 0,
        "x": round(x0, 4),
        "y": round(y0, 4),
        "width": round(x1 - x0, 4),
        "height": round(y1 - y0, 4),
    }
