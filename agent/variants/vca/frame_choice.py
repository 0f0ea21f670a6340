"""The request of VCA without a tree: single frames to see next (VCA, section 4.3, "w/o tree search")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from kinodex.agent.answer_rules import Declining
from kinodex.agent.errors import InvalidReply
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.reply import Reasoned, allowed_actions
from kinodex.agent.protocol.videos import VIDEO_ID_LENGTH, named_video
from kinodex.agent.replies.schema import NULL, Bounds, one_of
from kinodex.agent.replies.values import Seconds
from kinodex.agent.requests.answer import Answered, check_answer, cited_frames, letters, says_answer
from kinodex.agent.requests.run_request import RunRequest

ACTIONS = ("look", "answer", "insufficient_evidence")


class _Look(Reasoned):
    action: Literal["look", "answer", "insufficient_evidence"] = Field(description="what to do next")
    video: str | None = Field(description="id of the video to look at, else null")
    times_s: list[Seconds] = Field(description="times in seconds, if you look")


class FrameChoice(Answered, _Look):
    """See the frames nearest to `times_s` of one video (None: the only one), answer, or give up."""

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        found = {key: each for key, each in value.items() if each is not None}
        if "action" not in found and not (found.get("times_s") and says_answer(found)):  # it may be either
            found["action"] = "look" if found.get("times_s") else "answer"
        return {"video": None, "times_s": [], "option": None, "answer": None, "evidence": []} | found


@dataclass(frozen=True, kw_only=True)
class ChooseFrames(RunRequest[FrameChoice]):
    """Name the times of up to `count` frames to see next, or answer from `frames`, the memory.

    `seen` holds the video and time of every frame shown so far, in the order of showing; `exhausted` the ids of videos
    in which no frame is unseen.
    """

    Reply = FrameChoice
    template: ClassVar[str] = "vca_choose_frames"
    frames: tuple[ShownFrame, ...]
    seen: tuple[tuple[str, float], ...]
    count: int
    declining: Declining = "allowed"
    exhausted: tuple[str, ...] = ()

    @property
    def instead(self) -> str:
        return "name times to look at, or answer"

    def bounds(self) -> Bounds:
        actions = allowed_actions(ACTIONS, self.declining)
        bounds = {"action": one_of(actions), "times_s": {"maxItems": self.count}, "evidence": cited_frames()}
        return {**bounds, **letters(self.question), **({"video": NULL} if len(self.videos) == 1 else {})}

    def check(self, reply: FrameChoice) -> None:
        if reply.action == "look":
            self._check_times(reply)
        elif reply.action == "answer":
            check_answer(self.question, reply)

    def _check_times(self, reply: FrameChoice) -> None:
        video = named_video(self.videos, reply.video)
        if video.video_id in self.exhausted:
            left = [each.video_id[:VIDEO_ID_LENGTH] for each in self.videos if each.video_id not in self.exhausted]
            raise InvalidReply(
                f"all frames of video {video.video_id[:VIDEO_ID_LENGTH]} have been seen; name times of another one "
                f"({', '.join(left)}), or answer"
            )
        outside = [time_s for time_s in reply.times_s if not video.start_s <= time_s < video.end_s]
        if outside:
            raise InvalidReply(f"{outside[0]:g} s is not in the video, {video.start_s:g} s to {video.end_s:g} s")
        if not 1 <= len(reply.times_s) <= self.count:
            raise InvalidReply(f"got {len(reply.times_s)} times; name 1 to {self.count}")
