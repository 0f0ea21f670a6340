"""The tools of VideoSeek that look at the video (supplement, A.2 and Figures 6 to 8): overview, skim and focus."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from kinodex.agent.errors import InvalidReply
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.reply import R
from kinodex.agent.protocol.videos import Segment, Video
from kinodex.agent.session import Session
from kinodex.agent.variants.videoseek.look_requests import FocusClip, OverviewVideo, SkimRange
from kinodex.agent.variants.videoseek.step_requests import Action, Limits

MOMENT_S = 1.0
"""Of a clip that a call gives as one time."""


class Tools:
    """The tools within their limits; each reads what is said in its range, unless without `subtitles`.

    The replies of the model behind a tool become notes: of overview and skim one a frame, of focus one for all cited.
    """

    def __init__(self, session: Session, limits: Limits, *, subtitles: bool = True) -> None:
        self.session, self.environment, self.account = session, session.environment, session.account
        self.limits = limits
        self._kinds = ("speech",) if subtitles else ()

    async def use(self, action: Action) -> tuple[Note, ...]:
        """Run the tool of a call. Raises `InvalidReply` for a call that it does not take, or if it finds nothing."""
        videos = self.environment.videos
        video = videos[0] if len(videos) == 1 else self.environment.video(action.video)
        if action.tool == "overview":
            return await self._overview(video)
        part, query = self._part(video, action), (action.query or "").strip()
        return await (self._skim(part, query) if action.tool == "skim" else self._focus(part, query))

    def said(self, video_id: str, start_s: float, end_s: float) -> tuple[Note, ...]:
        """Quote the subtitles of [start_s, end_s) of a video."""
        return self.environment.lines(video_id, self._kinds, start_s, end_s)

    def _part(self, video: Video, action: Action) -> Segment:
        """Return the range that a call names, inside its video; raises `InvalidReply` if the tool does not take it."""
        assert action.start_s is not None and action.end_s is not None, "Act.check lets no such call pass"
        least, most = self.limits.skim_least_s, self.limits.focus_most_s
        start_s, end_s = _inside(video, action.start_s, action.end_s, least if action.tool == "skim" else MOMENT_S)
        named = f"{start_s:.1f} s to {end_s:.1f} s"
        if start_s >= end_s:
            whole = f"{video.start_s:.1f} s to {video.end_s:.1f} s"
            raise InvalidReply(f"{action.start_s:.1f} s to {action.end_s:.1f} s is no part of the video, {whole}")
        length_s = round(end_s - start_s, 3)
        if action.tool == "skim" and length_s < min(least, round(video.duration_s, 3)):
            raise InvalidReply(f"{named} is too short for skim, which takes at least {least} s")
        if action.tool == "focus" and length_s > most:
            raise InvalidReply(f"{named} is too long for focus, which takes at most {most} s")
        return Segment(self.account.rounds, video.video_id, start_s, end_s)

    async def _overview(self, video: Video) -> tuple[Note, ...]:
        whole = Segment(self.account.rounds, video.video_id, video.start_s, video.end_s)
        request = OverviewVideo(**self._inputs(whole, self.limits.overview_frames))
        reply = _valid(await self.session.ask(request))
        described = sorted(reply.frames, key=lambda each: each.frame)
        return tuple(self._note("overview", request.frames, [each.frame], each.description) for each in described)

    async def _skim(self, part: Segment, query: str) -> tuple[Note, ...]:
        request = SkimRange(**self._inputs(part, self.limits.skim_frames), query=query)
        reply = _valid(await self.session.ask(request))
        notes = []
        for each in sorted(reply.frames, key=lambda each: each.frame):
            why = f"Relevant: {each.relevant}" if each.relevant and each.relevant.strip() else ""
            notes.append(self._note("skim", request.frames, [each.frame], f"{each.description} {why}"))
        return tuple(notes)

    async def _focus(self, part: Segment, query: str) -> tuple[Note, ...]:
        a_second = math.ceil(round(part.end_s - part.start_s, 3))
        request = FocusClip(**self._inputs(part, a_second), query=query)
        reply = _valid(await self.session.ask(request))
        finding = f"{query} {reply.answer}" if reply.found else f"{query} Nothing here bears on that."
        return (self._note("focus", request.frames, reply.frames if reply.found else [], finding),)

    def _inputs(self, part: Segment, count: int) -> dict[str, Any]:
        """Inputs of a request about a part: up to `count` frames, as the budget allows, and what is quoted of it."""
        left = self.account.frames_left
        count = count if left is None else min(count, left)
        return {
            "videos": (self.environment.video(part.video_id),),
            "segment": part,
            "subtitles": self.said(part.video_id, part.start_s, part.end_s),
            "frames": self.environment.frames_between(part.video_id, part.start_s, part.end_s, count),
        }

    def _note(self, tool: str, shown: Sequence[ShownFrame], cited: Sequence[int], text: str) -> Note:
        """Return a note on the frames of these numbers, on all that were shown if there are none."""
        frames = [shown[number - 1] for number in sorted(cited)] or shown
        end_s = self.environment.shown_until(frames[-1].video_id, frames[-1].time_s)
        return Note(frames[0].video_id, frames[0].time_s, end_s, tool, text)


def _inside(video: Video, start_s: float, end_s: float, least_s: float) -> tuple[float, float]:
    """Return a range cut to its video.

    What that makes too short, and a single moment, is widened back into the video.
    """
    low_s, high_s = max(start_s, video.start_s), min(end_s, video.end_s)
    wide_enough = end_s - start_s >= least_s and low_s < high_s
    moment = start_s == end_s and video.start_s <= start_s <= video.end_s and least_s == MOMENT_S
    if high_s - low_s < least_s and (wide_enough or moment):
        low_s = max(video.start_s, min(low_s, video.end_s - least_s))
        high_s = min(video.end_s, low_s + least_s)
    return low_s, high_s


def _valid(reply: R | None) -> R:
    if reply is None:
        raise InvalidReply("the tool gave nothing that could be read")
    return reply
