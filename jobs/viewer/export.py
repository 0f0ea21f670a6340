"""Everything that was given as one HTML file that can be sent to somebody, with as many pictures as it should carry."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from index.library import Library
from index.rows import StoredFrame
from jobs.stored_frames import frames_between, picture_of
from jobs.viewer.api import Collection
from jobs.viewer.html import as_json, whole_page
from jobs.viewer.trace_view import shown_frames

SIDE_PX = 480
JPEG_QUALITY = 82
MOST_PICTURE_BYTES = 24_000_000
MOST_DATA_BYTES = 60_000_000
"""Traces of a run hold every prompt; a browser still opens a file with so many."""
MOST_VIDEOS = 2000

Wanted = dict[tuple[int, str, int], None]
"""Pictures, by library, video and frame, in the order in which they matter."""


@dataclass(frozen=True, slots=True)
class OneFile:
    """The page, and how many traces of runs and how many pictures were left out because it would grow too large."""

    text: str
    traces_left_out: int
    pictures_left_out: int


def one_file(
    collection: Collection, data_bytes: int = MOST_DATA_BYTES, picture_bytes: int = MOST_PICTURE_BYTES
) -> OneFile:
    """The traces and runs, else the libraries, that were given, with their pictures."""
    traces = collection.trace_keys()
    runs = range(len(collection.given.runs))
    alone = not traces and not runs
    libraries = collection.home["libraries"] if alone else []
    data: dict[str, Any] = {"home": collection.home | {"libraries": libraries}}
    wanted: Wanted = {}
    for key in traces:
        wanted |= _take_trace(collection, key, data)
    left_out = 0
    for run in runs:
        left_out += _take_run(collection, run, data, wanted, data_bytes)
    for library in range(len(libraries)):
        wanted |= _take_library(collection, library, data)
    pictures = dict(_pictures(collection, wanted, picture_bytes))
    return OneFile(whole_page(data, pictures), left_out, len(wanted) - len(pictures))


def _take_trace(collection: Collection, key: str, data: dict[str, Any]) -> Wanted:
    told = collection.trace(key)
    data[f"traces/{key}"], data[f"traces/{key}/curves"] = told, collection.curves(key)
    number = told["library"]
    frames = [] if number is None else shown_frames(told["trace"])
    return {(number, frame.video_id, frame.frame_no): None for frame in frames}


def _take_run(collection: Collection, run: int, data: dict[str, Any], wanted: Wanted, most_bytes: int) -> int:
    """The report and as many traces as fit, with their pictures; gives how many do not."""
    told = collection.run(run) | {"has_page": False}
    data[f"runs/{run}"] = told
    left, left_out = most_bytes, 0
    for item, question in enumerate(told["questions"]):
        for contender, answer in enumerate(question["answers"]):
            if answer is None or not answer["has_trace"]:
                continue
            key = f"r{run}-{contender}-{item}"
            left -= len(as_json(collection.view(key))) if left > 0 else 0
            answer["has_trace"] = left > 0
            if left > 0:
                wanted |= _take_trace(collection, key, data)
            else:
                left_out += 1
    return left_out


def _take_library(collection: Collection, number: int, data: dict[str, Any]) -> Wanted:
    """The videos with their words, and the frame in the middle of each segment; a search needs the server."""
    library = collection.given.libraries[number]
    data[f"libraries/{number}"] = collection.library(number)
    data[f"libraries/{number}/videos"] = rows = library.videos()[:MOST_VIDEOS]
    data[f"libraries/{number}/failures"] = library.failures()[:MOST_VIDEOS]
    wanted: Wanted = {}
    for row in rows:
        view = collection.video(number, row.video_id)
        frames = _one_a_segment(library, row.video_id) if row.frames else []
        kept = {frame.frame_no: frame.time_s for frame in frames}
        seen = [each for each in view["detections"] if each.frame_no in kept]
        frames_only = {"frame_nos": list(kept), "times_s": list(kept.values()), "detections": seen}
        data[f"libraries/{number}/videos/{row.video_id}"] = view | frames_only
        wanted |= {(number, row.video_id, frame_no): None for frame_no in kept}
    return wanted


def _one_a_segment(library: Library, video_id: str) -> list[StoredFrame]:
    row = library.video(video_id)
    spans = [(each.start_s, each.end_s) for each in library.segments(video_id)] or [(row.start_s, row.end_s)]
    return [frame for frames in frames_between(library, row, spans, 1) for frame in frames]


def _pictures(collection: Collection, wanted: Iterable[tuple[int, str, int]], left: int) -> Iterator[tuple[str, bytes]]:
    """JPEGs by the names that the page knows them by, as many as fit."""
    for number, video_id, frame_no in wanted:
        jpeg = _small(collection.given.libraries[number].frames(video_id, [frame_no])[0])
        left -= len(jpeg)
        if left < 0:
            return
        yield f"{number}/{video_id}/{frame_no}", jpeg


def _small(frame: StoredFrame) -> bytes:
    """The frame's own JPEG, encoded anew only if it is too large."""
    if max(frame.width_px, frame.height_px) <= SIDE_PX:
        return frame.jpeg
    picture, smaller = picture_of(frame), io.BytesIO()
    picture.thumbnail((SIDE_PX, SIDE_PX))
    picture.save(smaller, "JPEG", quality=JPEG_QUALITY)
    return smaller.getvalue()
