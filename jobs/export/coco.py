"""`kinodex export coco`: detections, or text on screen, as a COCO data set: their frames, and one JSON file.

The format is that of COCO's object detection (Lin et al. 2014, cocodataset.org/#format-data): boxes are x, y, width
and height in pixels of the stored frame. Score, track, model and, of text, what it says are added; readers leave them
out. A line of text has one box, that of its best reading, in all frames that show it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from kinodex.index.library import LibraryReader
from kinodex.index.rows import DetectionRow, StoredFrame, VideoRow
from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.file_names import time_stem, video_stems
from kinodex.jobs.export.moments import Moment, by_video, digest, moment_facts
from kinodex.jobs.export.target_folder import Target, target_folder
from kinodex.redaction import redact_uri

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
        """Return the whole file."""
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
