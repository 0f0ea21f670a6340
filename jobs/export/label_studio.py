"""`kinodex export label-studio`: tasks of Label Studio, a video each: moments, detections and text as predictions.

Moments are regions of the time line (`timelinelabels`), detections boxes that follow their thing (`videorectangle`),
and so are lines of text, whose box is that of their best reading; in frames from 1 and percent of the picture, as the
documentation of Label Studio's video tags has them. `config.xml` is the interface that these names belong to.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit
from xml.sax.saxutils import quoteattr

from kinodex.index.library import LibraryReader
from kinodex.index.rows import DetectionRow, ScreenTextRow, VideoRow
from kinodex.jobs.export.fiftyone import USUAL_FPS
from kinodex.jobs.export.moments import Moment, by_video, digest, moment_facts
from kinodex.jobs.export.target_folder import target_folder
from kinodex.redaction import redact_uri

T = TypeVar("T")
TASKS, CONFIG = "tasks.json", "config.xml"
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
    and the text on screen within the moments.
    """
    spoken = [each for each in moments if each.source != "detections"] if boxes else list(moments)
    tasks = []
    names: dict[str, dict[str, None]] = {"timeline": {}, "label": {}}
    counts = {"timeline": 0, "label": 0}
    for group in by_video(moments).values():
        video = group[0].video
        results = [_timeline(each, number) for number, each in enumerate(group) if each in spoken]
        if boxes:
            results += _boxes(video, _within(group, library.detections))
            results += _text_boxes(video, _within(group, library.screen_text))
        for each in results:
            kind = "timeline" if each["type"] == "timelinelabels" else "label"
            names[kind] |= dict.fromkeys(each["value"].get("timelinelabels") or each["value"]["labels"])
            counts[kind] += 1
        fps = video.fps or USUAL_FPS
        data = {"video": _url(video, url_prefix), "title": video.title, "video_id": video.video_id, "fps": fps}
        tasks.append({"data": data, "predictions": [{"model_version": "kinodex", "result": results}]})
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


def _url(video: VideoRow, prefix: str | None) -> str:
    if prefix is None:
        return redact_uri(video.uri)
    path = urlsplit(video.uri).path if "://" in video.uri else video.uri
    return prefix + quote(PurePosixPath(path).name)


def _frame(video: VideoRow, time_s: float) -> int:
    """Return the number of the frame that is shown at a time, from 1."""
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


def _within(moments: Sequence[Moment], read: Callable[[str, float, float], Iterable[T]]) -> list[T]:
    """Read the rows within moments of one video, each once."""
    return list(dict.fromkeys(row for each in moments for row in read(each.video.video_id, each.start_s, each.end_s)))


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
        score = max(row.score for row in ordered)
        regions.append(_region(video, f"box-{number + 1}", sequence, ordered[0].label, score))
    return regions


def _text_boxes(video: VideoRow, rows: Sequence[ScreenTextRow]) -> list[dict[str, Any]]:
    """Make a region of each line of text, of the category `text`, with what it says beside it."""
    regions = []
    for number, row in enumerate(rows):
        ends = ((row.start_s, False), (row.end_s, True))
        sequence = [_key_frame(video, time_s, row.box, is_last) for time_s, is_last in ends]
        region = _region(video, f"text-{number + 1}", sequence, "text", row.confidence)
        regions.append(region | {"meta": {"text": [row.text]}})
    return regions


def _region(video: VideoRow, name: str, sequence: list[dict[str, Any]], label: str, score: float) -> dict[str, Any]:
    """Make a box that is shown from its first key frame to its last."""
    extent = {"framesCount": _frame(video, video.end_s) - 1, "duration": round(video.duration_s, 6)}
    return {
        "id": name,
        "type": "videorectangle",
        "from_name": "box",
        "to_name": "video",
        "score": score,
        "value": extent | {"sequence": sequence, "labels": [label]},
    }


def _key_frame(video: VideoRow, time_s: float, box: tuple[float, ...], is_last: bool) -> dict[str, Any]:
    """Return a box at a frame, in percent.

    The box ends with its last one, else Label Studio would show it to the end.
    """
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
