"""Moments as a time line of OpenTimelineIO (its native JSON, .otio): clips one after another, each with a marker."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from index.redact import redact_uri
from jobs.export.moments.moment import Moment
from jobs.export.texts.edl import source_frames
from jobs.export.texts.timecode import FrameRate

MEDIA = "DEFAULT_MEDIA"


def otio_text(
    moments: Sequence[Moment], rate: FrameRate, title: str = "kinodex", timecodes: Mapping[str, str] | None = None
) -> str:
    """Write a time line with a track of pictures; source ranges are counted as `edl_text` does."""
    track = _item("Track.1", "moments", kind="Video", children=[_clip(each, rate, timecodes or {}) for each in moments])
    stack = _item("Stack.1", "tracks", children=[track])
    timeline = {
        "OTIO_SCHEMA": "Timeline.1",
        "metadata": {},
        "name": title,
        "global_start_time": None,
        "tracks": stack,
    }
    return json.dumps(timeline, ensure_ascii=False, indent=2) + "\n"


def _clip(moment: Moment, rate: FrameRate, timecodes: Mapping[str, str]) -> dict[str, Any]:
    video = moment.video
    source = _range(moment, rate, timecodes)
    whole = replace(moment, start_s=video.start_s, end_s=video.end_s)
    about = {"video_id": video.video_id, "label": moment.label, "score": moment.score, "source": moment.source}
    reference = {
        "OTIO_SCHEMA": "ExternalReference.1",
        "metadata": {},
        "name": video.title,
        "available_range": _range(whole, rate, timecodes),
        "available_image_bounds": None,
        "target_url": _url(video.uri),
    }
    marker = {
        "OTIO_SCHEMA": "Marker.2",
        "metadata": {},
        "name": moment.label,
        "color": "GREEN",
        "marked_range": source,
        "comment": moment.label,
    }
    clip = _item("Clip.2", video.title, source_range=source, markers=[marker] if moment.label else [])
    return clip | {
        "metadata": {"kinodex": about},
        "media_references": {MEDIA: reference},
        "active_media_reference_key": MEDIA,
    }


def _item(schema: str, name: str, **fields: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {"metadata": {}, "source_range": None, "effects": [], "markers": [], "enabled": True}
    return {"OTIO_SCHEMA": schema, "name": name} | usual | fields


def _range(moment: Moment, rate: FrameRate, timecodes: Mapping[str, str]) -> dict[str, Any]:
    """A range of frames: at least one."""
    start, end = source_frames(moment, rate, timecodes)
    length = max(end - start, 1)
    return {"OTIO_SCHEMA": "TimeRange.1", "start_time": _time(start, rate), "duration": _time(length, rate)}


def _time(frame: int, rate: FrameRate) -> dict[str, Any]:
    return {"OTIO_SCHEMA": "RationalTime.1", "rate": rate.fps, "value": float(frame)}


def _url(uri: str) -> str:
    """Address of a video: of a path of this machine as a file URL."""
    return redact_uri(uri) if "://" in uri else Path(uri).absolute().as_uri()
