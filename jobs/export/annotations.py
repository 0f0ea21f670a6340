"""Moments, captions and detections as annotations for the programs where people look at and correct them."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit
from xml.sax.saxutils import quoteattr

from kinodex.index.library import LibraryReader
from kinodex.index.rows import DetectionRow, ScreenTextRow, StoredFrame, VideoRow
from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.moments import Moment, Target, by_video, digest, moment_facts, target_folder
from kinodex.jobs.export.texts import time_stem, video_stems
from kinodex.redaction import redact_uri

# `kinodex export coco`: detections, or text on screen, as a COCO data set: their stored frames, and one JSON file.
#
# The format is that of COCO's object detection (Lin et al. 2014, cocodataset.org/#format-data): boxes are x, y, width
# and height in pixels of the stored frame. Score, track, model and, of text, what it says are added; readers leave them
# out. A line of text has one box, that of its best reading, in all frames that show it.

T = TypeVar("T")
FILE, IMAGES = "annotations.json", "images"
FRAMES_A_READ = 64


@dataclass(frozen=True, slots=True)
class CocoReport:
    """Counts of what was written."""

    images: int
    annotations: int
    categories: int


class Found(NamedTuple):
    """A box in a frame, and what it says if it is one of text."""

    row: DetectionRow
    text: str | None = None


def export_coco(
    library: LibraryReader,
    moments: Sequence[Moment],
    folder: Path,
    label: str | None = None,
    min_score: float = 0.0,
    text: bool = False,
) -> CocoReport:
    """Write the detections within the moments, of one label or all, and their frames, into a new or empty folder.

    With `text` lines of text on screen are written instead. Raises UsageError where there are none.
    """
    videos = {each.video.video_id: each.video for each in moments}
    stems = video_stems(moments)
    settings = {"label": label, "min_score": min_score, "text": text, **moment_facts(moments)}
    found = {
        video_id: _by_frame(
            _texts(library, group, min_score) if text else _detections(library, group, label, min_score)
        )
        for video_id, group in by_video(moments).items()
    }
    if not any(found.values()):
        what, stage = ("text on screen", "screen_text") if text else ("detection", "detections")
        raise UsageError(f"there is no {what} in these videos and times; `kinodex add {stage}` finds some")
    settings["found"] = digest(found)
    content = _Content()
    with target_folder(folder, settings, dict) as target:
        for video_id, rows in found.items():
            content.add_frames(library, target, videos[video_id], stems[video_id], rows)
        target.write_bytes(FILE, json.dumps(content.document(), ensure_ascii=False))
        target.finish(IMAGES, FILE)
    return CocoReport(len(content.images), len(content.annotations), len(content.categories))


def _detections(
    library: LibraryReader, moments: Sequence[Moment], label: str | None, min_score: float
) -> Iterator[Found]:
    """Read the detections within moments of one video."""
    for each in moments:
        yield from map(Found, library.detections(each.video.video_id, each.start_s, each.end_s, label, min_score))


def _texts(library: LibraryReader, moments: Sequence[Moment], min_score: float) -> Iterator[Found]:
    """Read the lines of text on screen in the same way: in each stored frame that shows them within the moments."""
    numbers, times_s = library.frame_times(moments[0].video.video_id)
    for each in moments:
        for row in library.screen_text(each.video.video_id, each.start_s, each.end_s):
            shown = (times_s >= max(row.start_s, each.start_s)) & (times_s < min(row.end_s, each.end_s))
            for number, time_s in zip(numbers[shown].tolist(), times_s[shown].tolist(), strict=True):
                if row.confidence >= min_score:
                    box = DetectionRow(row.video_id, number, time_s, "text", row.confidence, row.box, None, row.model)
                    yield Found(box, row.text)


def _by_frame(boxes: Iterable[Found]) -> dict[int, list[Found]]:
    """Group boxes by the numbers of their frames, each once."""
    found: dict[int, list[Found]] = {}
    for each in dict.fromkeys(boxes):
        found.setdefault(each.row.frame_no, []).append(each)
    return dict(sorted(found.items()))


@dataclass(slots=True)
class _Content:
    """The lists of the JSON file as they grow."""

    images: list[dict[str, Any]] = field(default_factory=list)
    annotations: list[dict[str, Any]] = field(default_factory=list)
    categories: dict[str, int] = field(default_factory=dict)

    def add_frames(
        self, library: LibraryReader, target: Target, video: VideoRow, stem: str, rows: dict[int, list[Found]]
    ) -> None:
        """Add the frames of a video and what was detected in them."""
        numbers = list(rows)
        runs = (numbers[first : first + FRAMES_A_READ] for first in range(0, len(numbers), FRAMES_A_READ))
        for frame in (frame for run in runs for frame in library.frames(video.video_id, run)):
            name = f"{stem}_{time_stem(frame.time_s)}_{frame.frame_no}.jpg"
            if not target.has(f"{IMAGES}/{name}"):
                target.write_bytes(f"{IMAGES}/{name}", frame.jpeg)
            self.images.append(_image(len(self.images) + 1, name, video, frame))
            for row, text in rows[frame.frame_no]:
                category = self.categories.setdefault(row.label, len(self.categories) + 1)
                made = _annotation(len(self.annotations) + 1, len(self.images), category, row, frame)
                self.annotations.append(made if text is None else made | {"text": text})

    def document(self) -> dict[str, Any]:
        """The whole file."""
        categories = [{"id": number, "name": name, "supercategory": ""} for name, number in self.categories.items()]
        info = {"description": "detections exported by kinodex", "version": "1.0"}
        lists = {"images": self.images, "annotations": self.annotations, "categories": categories}
        return {"info": info, "licenses": [], **lists}


def _image(number: int, name: str, video: VideoRow, frame: StoredFrame) -> dict[str, Any]:
    return {
        "id": number,
        "file_name": name,
        "width": frame.width_px,
        "height": frame.height_px,
        "video_id": video.video_id,
        "video": redact_uri(video.uri),
        "frame_no": frame.frame_no,
        "time_s": frame.time_s,
    }


def _annotation(number: int, image: int, category: int, row: DetectionRow, frame: StoredFrame) -> dict[str, Any]:
    x0, y0, x1, y1 = row.box
    sides = ((x0, frame.width_px), (y0, frame.height_px), (x1 - x0, frame.width_px), (y1 - y0, frame.height_px))
    box = [round(part * size_px, 2) for part, size_px in sides]
    return {
        "id": number,
        "image_id": image,
        "category_id": category,
        "bbox": box,
        "area": round(box[2] * box[3], 2),
        "iscrowd": 0,
        "score": row.score,
        "track_id": row.track_id,
        "model": row.model,
    }


# `kinodex export fiftyone`: moments as a data set that FiftyOne imports: videos with temporal detections.
#
# The format is FiftyOne's own FiftyOneTemporalDetectionDataset: `data.json` names the video files, `labels.json` holds
# the ranges in frames from 1, both ends included. Detections go to it by `kinodex export coco`, which it imports too.

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


# `kinodex export label-studio`: tasks of Label Studio, a video each: moments, detections and text as predictions.
#
# Moments are regions of the time line (`timelinelabels`), detections boxes that follow their thing (`videorectangle`),
# and so are lines of text, whose box is that of their best reading; in frames from 1 and percent of the picture, as the
# documentation of Label Studio's video tags has them. `config.xml` is the interface that these names belong to.

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
