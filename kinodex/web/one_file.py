"""All inputs of the viewer as one HTML file to send to somebody, with as many pictures as fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from kinodex.jobs.library import frames_between, shrunk_jpeg
from kinodex.web.page import as_json, whole_page
from kinodex.web.telling_frames import first_telling
from kinodex.web.trace_view import shown_frames
from kinodex.web.viewer_api import ViewerApi

SIDE_PX = 480
JPEG_QUALITY = 82
MOST_PICTURE_BYTES = 24_000_000
MOST_DATA_BYTES = 60_000_000
"""Traces of a run hold every prompt; a browser still opens a file of this size."""
MOST_VIDEOS = 2000

PictureKeys = dict[tuple[int, str, int], None]
"""Pictures, by library, video and frame, in the order in which they matter."""


@dataclass(frozen=True, slots=True)
class OneFile:
    """Page as one file, with counts of the traces of runs and of the pictures that did not fit."""

    text: str
    traces_left_out: int
    pictures_left_out: int


def one_file(api: ViewerApi, data_bytes: int = MOST_DATA_BYTES, picture_bytes: int = MOST_PICTURE_BYTES) -> OneFile:
    """Write the traces and runs, or else the libraries, with their pictures into one page."""
    traces = api.trace_keys()
    runs = range(len(api.inputs.runs))
    alone = not traces and not runs
    libraries = api.home["libraries"] if alone else []
    data: dict[str, Any] = {"home": api.home | {"libraries": libraries}}
    keys: PictureKeys = {}
    for key in traces:
        keys |= _add_trace(api, key, data)
    left_out = 0
    for run in runs:
        left_out += _add_run(api, run, data, keys, data_bytes)
    for library in range(len(libraries)):
        keys |= _add_library(api, library, data)
    pictures = dict(_pictures(api, keys, picture_bytes))
    return OneFile(whole_page(data, pictures), left_out, len(keys) - len(pictures))


def _add_trace(api: ViewerApi, key: str, data: dict[str, Any]) -> PictureKeys:
    shown = api.trace(key)
    data[f"traces/{key}"], data[f"traces/{key}/curves"] = shown, api.curves(key)
    number = shown["library"]
    frames = [] if number is None else [*filter(None, shown["evidence"]), *shown_frames(shown["trace"])]
    return {(number, frame.video_id, frame.frame_no): None for frame in frames}


def _add_run(api: ViewerApi, run: int, data: dict[str, Any], keys: PictureKeys, most_bytes: int) -> int:
    """Add a run's report and as many of its traces as fit, with their pictures; return the count of the others."""
    report = api.run(run) | {"has_page": False}
    data[f"runs/{run}"] = report
    left, left_out = most_bytes, 0
    for item, question in enumerate(report["questions"]):
        for contender, answer in enumerate(question["answers"]):
            if answer is None or not answer["has_trace"]:
                continue
            key = f"r{run}-{contender}-{item}"
            left -= len(as_json(api.view(key))) if left > 0 else 0
            answer["has_trace"] = left > 0
            if left > 0:
                keys |= _add_trace(api, key, data)
            else:
                left_out += 1
    return left_out


def _add_library(api: ViewerApi, number: int, data: dict[str, Any]) -> PictureKeys:
    """Add a library's videos with their words, and the middle frame of each segment; a search needs the server."""
    library = api.inputs.libraries[number]
    data[f"libraries/{number}"] = api.library(number)
    rows = library.videos()[:MOST_VIDEOS]
    listed: list[dict[str, Any]] = []
    data[f"libraries/{number}/videos"] = listed
    data[f"libraries/{number}/failures"] = library.ingest_log.failures()[:MOST_VIDEOS]
    keys: PictureKeys = {}
    for row in rows:
        view = api.video(number, row.video_id)
        spans = [(each.start_s, each.end_s) for each in library.segments(row.video_id)] or [(row.start_s, row.end_s)]
        frames = [each for some in frames_between(library, row, spans, 1) for each in some] if row.frames else []
        poster = first_telling(frames)
        listed.append(asdict(row) | {"poster": poster and poster.frame_no})
        times_s = {frame.frame_no: frame.time_s for frame in frames}
        detected = {label: [no for no in numbers if no in times_s] for label, numbers in view["detected"].items()}
        frames_only = {"frame_nos": list(times_s), "times_s": list(times_s.values()), "detected": detected}
        place = f"libraries/{number}/videos/{row.video_id}"
        data[place] = view | frames_only
        for frame_no in sorted({no for numbers in detected.values() for no in numbers}):
            data[f"{place}/detections/{frame_no}"] = api.detections(number, row.video_id, frame_no)
        keys |= {(number, row.video_id, frame_no): None for frame_no in times_s}
    return keys


def _pictures(api: ViewerApi, keys: Iterable[tuple[int, str, int]], left: int) -> Iterator[tuple[str, bytes]]:
    for number, video_id, frame_no in keys:
        jpeg = shrunk_jpeg(api.inputs.libraries[number].frames(video_id, [frame_no])[0], SIDE_PX, JPEG_QUALITY)
        left -= len(jpeg)
        if left < 0:
            return
        yield f"{number}/{video_id}/{frame_no}", jpeg
