"""Captions of single stored frames, for agents that read a video frame by frame instead of seeing it."""

from __future__ import annotations

from collections.abc import Iterable

from agent.core.question import Note
from agent.session import Session, at_once
from agent.tools.captions import captions_of

FrameTime = tuple[str, float]
"""A stored frame by its video and its time in seconds."""


async def frame_captions(session: Session, frames: Iterable[FrameTime]) -> dict[FrameTime, Note]:
    """A caption of each frame, for the time until the next stored one; those that cannot be had are left out."""
    spans_s: dict[str, list[tuple[float, float]]] = {}
    for video_id, time_s in sorted(set(frames)):
        spans_s.setdefault(video_id, []).append((time_s, session.environment.shown_until(video_id, time_s)))
    notes = await at_once([captions_of(session, video_id, spans) for video_id, spans in spans_s.items()])
    return {(note.video_id, note.start_s): note for each in notes for note in each}


def in_order(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Notes by video and in time order, each once."""
    return tuple(sorted(set(notes), key=lambda note: (note.video_id, note.start_s, note.end_s, note.text)))
