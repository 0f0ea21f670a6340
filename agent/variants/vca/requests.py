"""The request of VCA without a tree: single frames to see next (VCA, section 4.3, "w/o tree search")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import model_validator

from agent.core.protocol import Request, ShownFrame
from agent.core.question import Question, Video, named_video
from agent.errors import InvalidReply
from agent.requests.answer import Answered, check_answer


class FrameChoice(Answered):
    """See the frames nearest to `times_s` of one video (None: the only one), answer, or give up."""

    action: Literal["look", "answer", "insufficient_evidence"]
    video: str | None
    times_s: list[float]

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        found = {key: each for key, each in value.items() if each is not None}
        action = "look" if found.get("times_s") else "answer"
        return {
            "action": action,
            "video": None,
            "times_s": [],
            "option": None,
            "answer": None,
            "evidence": [],
        } | found


@dataclass(frozen=True, kw_only=True)
class ChooseFrames(Request[FrameChoice]):
    """Name the times of up to `count` frames to see next, or answer from `frames`, the memory.

    `seen` holds the video and time of every frame shown so far, in the order of showing.
    """

    Reply = FrameChoice
    template: ClassVar[str] = "choose_frames"
    role: ClassVar[str] = "policy"
    question: Question
    videos: tuple[Video, ...]
    frames: tuple[ShownFrame, ...]
    seen: tuple[tuple[str, float], ...]
    count: int

    def check(self, reply: FrameChoice) -> None:
        if reply.action == "look":
            self._check_times(reply)
        elif reply.action == "answer":
            check_answer(self.question, reply)

    def _check_times(self, reply: FrameChoice) -> None:
        video = named_video(self.videos, reply.video)
        outside = [time_s for time_s in reply.times_s if not video.start_s <= time_s < video.end_s]
        if outside:
            raise InvalidReply(f"{outside[0]:g} s is not in the video, {video.start_s:g} s to {video.end_s:g} s")
        if not 1 <= len(reply.times_s) <= self.count:
            raise InvalidReply(f"got {len(reply.times_s)} times; name 1 to {self.count}")
