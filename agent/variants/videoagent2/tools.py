"""The five tools of VideoAgent2 (arXiv 2504.04471, section 4.1 and appendix A): captions, things, enlargements, tracks.

Their findings are notes in words, in which every clause and every thing has its own confidence. Images are captioned
by the role "vision"; things are found and followed by `agent.tools.detection`, which takes the place of YOLOv11 and
SAM2. A look that failed (the call cannot be done, the reply was invalid twice, the server refused the pictures)
leaves a note that says so, which is no evidence; "nothing found" says who looked, since likeness alone may miss a
thing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kinodex.agent.errors import AllRejected, InvalidReply, ModelRejected
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.videos import Video
from kinodex.agent.session import Session
from kinodex.agent.tools.captions import caption_spans
from kinodex.agent.tools.detection import WHOLE, Box, Detected, Found, Track, detect, track, zoom
from kinodex.agent.variants.videoagent2.requests import CaptionFrames, Toolbox, ToolCall
from kinodex.agent.videos.environment import Environment

AROUND = 5
"""Frames before and after one in which a thing is looked for too: the paper's alpha."""
MOST_THINGS = 16
"""Named in a note of one frame, the surest first."""
MOST_TRACKS = 8
"""Tracks in the notes of one call, the longest first."""
FAILED = "this look failed and says nothing about the video"
Look = tuple[Note, ...] | str
"""What a tool found, or in words that there is nothing."""


async def run_tool(session: Session, call: ToolCall, toolbox: Toolbox) -> tuple[tuple[Note, ...], str]:
    """Run a checked call; returns its findings, and why it failed ("" if it did not).

    A note for each frame, from "track" one for each thing; one note that says so if nothing is found or the look
    failed. Raises `AllRejected` for a server that refuses every request.
    """
    environment = session.environment
    video = environment.video(call.video)
    if not video.has_pictures:
        return await _read(session, video, call, toolbox), ""
    end_s = min(call.start_s if call.end_s is None or call.tool.startswith("zoom") else call.end_s, video.end_s)
    until_s = end_s if end_s > call.start_s else environment.shown_until(video.video_id, call.start_s)
    try:
        if call.tool == "track":  # appendix A.3
            span_s = call.start_s, until_s
            things = await track(session, video.video_id, call.label or "", *span_s, toolbox.track_frames)
            found: Look = _track_notes(things, call, toolbox) or _nothing(call, things)
        else:
            left = session.account.frames_left
            most = toolbox.frames if left is None else min(toolbox.frames, left)
            count = max(1, min(most, math.ceil(end_s - call.start_s)))  # one a second, as in the paper
            frames = environment.frames_between(video.video_id, call.start_s, end_s, count)
            look = _caption if call.tool.endswith("caption") else _detect
            found = await look(session, frames, call, toolbox)
    except (InvalidReply, ModelRejected) as error:
        if isinstance(error, AllRejected):
            raise
        note = Note(video.video_id, call.start_s, until_s, _source(call), f"{FAILED}: {error}", failed=True)
        return (note,), str(error)
    if isinstance(found, str):  # why there is nothing
        found = (Note(video.video_id, call.start_s, until_s, _source(call), found),)
    return found, ""


async def _read(session: Session, video: Video, call: ToolCall, toolbox: Toolbox) -> tuple[Note, ...]:
    """Return the words of a range of a video without pictures, a line each, instead of captions of frames."""
    environment, end_s = session.environment, call.start_s if call.end_s is None else min(call.end_s, video.end_s)
    count = max(1, min(toolbox.frames, math.ceil(end_s - call.start_s)))
    times_s = environment.times_between(video.video_id, call.start_s, end_s, count)
    spans_s = [(time_s, environment.shown_until(video.video_id, time_s)) for time_s in times_s]
    notes = await caption_spans(session, video.video_id, spans_s)
    return tuple(
        replace(each, source=_source(call), text=each.text + _sure(each.confidence, toolbox), confidence=None)
        for each in notes
    )


async def _caption(session: Session, frames: tuple[ShownFrame, ...], call: ToolCall, toolbox: Toolbox) -> Look:
    """Captions of frames, with a confidence for each clause (appendix A.1)."""
    box = _box(call)
    whole = box == WHOLE
    request = CaptionFrames(
        frames=frames if whole else tuple(zoom(frame, box) for frame in frames),
        box=None if whole else box,
        confidence=toolbox.confidence,
    )
    reply = await session.ask(request)
    if reply is None:
        raise InvalidReply("the model that looks gave no reply that could be read")
    notes = []
    for each in sorted(reply.captions, key=lambda each: each.frame):
        text = "; ".join(clause.text.strip() + _sure(clause.confidence, toolbox) for clause in each.clauses)
        notes.append(_note(session.environment, frames[each.frame - 1], call, text, box))
    return tuple(notes)


async def _detect(session: Session, frames: tuple[ShownFrame, ...], call: ToolCall, toolbox: Toolbox) -> Look:
    """Return the things in frames; one missed there is followed to it from the frames around (appendix A.2).

    Without a label everything that is known there.
    """
    environment, box = session.environment, _box(call)
    around = _around(environment, frames)
    left = session.account.frames_left
    around = around if left is None or len(around) <= left else frames
    found = await detect(session, around, (call.label or "").strip(), box)
    notes = []
    for frame in frames:
        things = sorted(_things_in(frame, found.things), key=lambda each: -each.score)[:MOST_THINGS]
        if things:
            text = _in_place(call, found) + "; ".join(_thing(each, toolbox) for each in things)
            notes.append(_note(environment, frame, call, text, box))
    return tuple(notes) or _nothing(call, found)


def _nothing(call: ToolCall, found: Found[Detected] | Found[Track]) -> str:
    """Say that nothing was found, and who looked: a detector, or likeness alone."""
    if found.source == "index":
        unlike = f"nothing found: no frame there is much like {call.label!r}"
        return f"{unlike}. Only likeness was looked at, by no detector, so it may be there all the same"
    looked = "a detector looked"
    if found.source == "library":
        looked = "the library's detections were looked through" + (f" for {found.label!r}" if found.label else "")
    return f"nothing found, no {call.label or 'thing that is known'}: {looked}"


def _in_place(call: ToolCall, found: Found[Detected] | Found[Track]) -> str:
    return f"{found.label!r} was looked for in place of {call.label!r}: " if found.loose else ""


def _box(call: ToolCall) -> Box:
    if not call.box or not call.tool.startswith("zoom"):
        return WHOLE
    x0, y0, x1, y1 = call.box
    return x0, y0, x1, y1


def _around(environment: Environment, frames: Sequence[ShownFrame]) -> tuple[ShownFrame, ...]:
    times_s = environment.times(frames[0].video_id)
    places = np.searchsorted(times_s, [frame.time_s for frame in frames])
    near = {at for place in places for at in range(max(0, place - AROUND), min(len(times_s), place + AROUND + 1))}
    return environment.frames(frames[0].video_id, times_s[sorted(near)])


def _things_in(frame: ShownFrame, found: Sequence[Detected]) -> list[Detected]:
    """Things seen in a frame, and things seen shortly before and after it, at their place in between."""
    followed: dict[tuple[str, int | None], list[Detected]] = {}
    for each in found:
        if abs(each.frame_no - frame.frame_no) <= AROUND:
            followed.setdefault((each.label, each.track_id), []).append(each)
    things = []
    for (_, track_id), sightings in followed.items():
        before = [each for each in sightings if each.frame_no < frame.frame_no]
        after = [each for each in sightings if each.frame_no > frame.frame_no]
        seen = sightings[len(before) : len(sightings) - len(after)]
        missed = not seen and before and after and track_id is not None
        things += [_between(before[-1], after[0], frame)] if missed else seen
    return things


def _between(before: Detected, after: Detected, frame: ShownFrame) -> Detected:
    """Return a thing on its straight way from one sighting to another, as sure as the less sure of them."""
    box = None
    if before.box and after.box:
        part = (frame.time_s - before.time_s) / (after.time_s - before.time_s)
        x0, y0, x1, y1 = (low + part * (high - low) for low, high in zip(before.box, after.box, strict=True))
        box = (x0, y0, x1, y1)
    score = min(before.score, after.score)
    return replace(before, frame_no=frame.frame_no, time_s=frame.time_s, box=box, score=score)


def _track_notes(found: Found[Track], call: ToolCall, toolbox: Toolbox) -> tuple[Note, ...]:
    """Return a note for each thing followed, with where it was at most `track_frames` times (appendix A.3)."""
    longest = sorted(found.things, key=lambda each: each.start_s - each.end_s)[:MOST_TRACKS]
    notes = []
    for each in sorted(longest, key=lambda each: each.start_s):
        some = each.sightings[:: math.ceil(len(each.sightings) / toolbox.track_frames)]
        text = "; ".join(f"at {sighting.time_s:.1f} s {_thing(sighting, toolbox)}" for sighting in some)
        text = _in_place(call, found) + text
        notes.append(Note(some[0].video_id, each.start_s, each.end_s, _source(call), text))
    return tuple(notes)


def _note(environment: Environment, frame: ShownFrame, call: ToolCall, text: str, box: Box) -> Note:
    where = "" if box == WHOLE else f"in {_box_text(box)}: "
    return Note(frame.video_id, *environment.shown_range(frame), _source(call), where + text)


def _source(call: ToolCall) -> str:
    return f"{call.tool} tool"


def _thing(each: Detected, toolbox: Toolbox) -> str:
    where = f"at {_box_text(each.box)}" if each.box else "somewhere, by likeness alone"
    number = "" if each.track_id is None else f" number {each.track_id}"
    return f"{each.label}{number} {where}{_sure(each.score, toolbox)}"


def _sure(confidence: float | None, toolbox: Toolbox) -> str:
    return f" (confidence {confidence:.2f})" if toolbox.confidence and confidence is not None else ""


def _box_text(box: Box) -> str:
    return f"[{', '.join(f'{side:.2f}' for side in box)}]"
