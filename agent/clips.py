"""Captions of parts of videos, made from stored frames when an agent first needs them, and kept.

A part is any range of a video; `windows` are the consecutive ones of one length that VideoAgent2 captions (section
3.1: 1 frame a second, clips of 4 s). What a captioner said of a part is kept in the library under its name, so it is
asked once, whoever needs it again. Parts are asked coarse to fine over the video, so that captions cut short by a
budget are spread evenly; at most half of what a budget still allows is taken, since whoever wants captions wants to
do something with them. A part whose description cannot be read in two attempts has no caption.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from agent.question import Note, Segment, Video
from agent.requests.describe import DescribeSegment, Summarize
from agent.session import Session

CLIP_S = 4.0
FRAMES_A_CLIP = 4
Span = tuple[float, float]


def windows(video: Video, segment_s: float = CLIP_S) -> list[Span]:
    """The consecutive ranges [start_s, end_s) of `segment_s` that cover a video; the last may be shorter."""
    count = max(1, math.ceil(round(video.duration_s / segment_s, 6)))
    starts_s = [video.start_s + number * segment_s for number in range(count)]
    return list(zip(starts_s, [*starts_s[1:], video.end_s], strict=True))


async def clip_captions(session: Session, video_id: str, segment_s: float = CLIP_S) -> tuple[Note, ...]:
    """Captions of a video's consecutive windows, in order; see `captions_of`."""
    return await captions_of(session, video_id, windows(session.environment.video(video_id), segment_s))


async def captions_of(session: Session, video_id: str, spans_s: Sequence[Span]) -> tuple[Note, ...]:
    """A caption of each of these ranges of a video, in order, without those that cannot be had.

    The role "captioner" is asked, at once, for those that the library does not hold.
    """
    shown = session.environment.frames_of(video_id, spans_s, FRAMES_A_CLIP)
    requests = [
        DescribeSegment(segment=Segment(0, video_id, *span), frames=frames)
        for span, frames in zip(spans_s, shown, strict=True)
    ]
    said = await session.ask_all(requests)
    return tuple(
        Note(video_id, *span, "caption", each.caption.strip(), each.confidence / 100)
        for span, each in zip(spans_s, said, strict=True)
        if each is not None
    )


async def summary(session: Session, video_id: str, captions: Sequence[Note]) -> Note | None:
    """What captions of a video's parts say of it as a whole, by the role "policy"; None if it cannot be read."""
    video = session.environment.video(video_id)
    if not captions:
        return None
    reply = await session.ask(Summarize(videos=(video,), notes=tuple(captions)))
    return None if reply is None else Note(video_id, video.start_s, video.end_s, "summary", reply.summary.strip())
