"""The frame that stands for each range of an answer's evidence: one that a model saw, else the middle one."""

from __future__ import annotations

from kinodex.index.library import Library
from kinodex.web.trace_view import Frame, TraceView, shown_frames

END_S = 1e-6


def evidence_frames(library: Library | None, view: TraceView) -> list[Frame | None]:
    """For each range of the evidence the shown frame nearest to its middle, else the stored one, else None."""
    ranges = view.answer["evidence"] if view.answer else []
    shown = shown_frames(view) if ranges else []
    frames = []
    for each in ranges:
        middle_s = (each["start_s"] + each["end_s"]) / 2
        inside = [
            frame
            for frame in shown
            if frame.video_id == each["video_id"] and each["start_s"] <= frame.time_s < each["end_s"]
        ]
        nearest = min(inside, key=lambda frame: abs(frame.time_s - middle_s), default=None)
        frames.append(nearest or _stored(library, each["video_id"], middle_s))
    return frames


def _stored(library: Library | None, video_id: str, time_s: float) -> Frame | None:
    if library is None:
        return None
    video = library.video(video_id)
    if not video.frames:
        return None
    (frame,) = library.frames_at(video_id, [min(max(time_s, video.start_s), video.end_s - END_S)])
    return Frame(video_id, frame.frame_no, frame.time_s, "")
