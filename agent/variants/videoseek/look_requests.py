"""Requests of the three tools to the model that sees: overview, skim and focus (supplement, Figure 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from pydantic import Field

from kinodex.agent.errors import InvalidReply
from kinodex.agent.protocol.frames import ShownFrame, citation_numbers
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.reply import STEP_BY_STEP_TOKENS, Reasoned, Reply, described, read_as
from kinodex.agent.protocol.request import Request
from kinodex.agent.protocol.videos import Segment, Video
from kinodex.agent.replies.values import Numbers, WholeNumber, is_blank
from kinodex.agent.requests.in_parts import InParts, check_numbers
from kinodex.agent.requests.refusals import check_not_refused

SMALL_SIDE_PX = 455
"""The longer side of a 16:9 picture whose shorter one is 256, the size that overview and skim have."""
FRAME_TOKENS = 140
"""Of the 75 words about a frame that is relevant, and the JSON around them."""


class DescribedFrame(Reply):
    """The description of one frame."""

    model_config = described("What one frame shows.")

    frame: WholeNumber = Field(description="its number")
    """Its number among those shown, from 1."""
    description: str = Field(description="what it shows")


class SkimmedFrame(DescribedFrame):
    """The description of one frame, and how it bears on the query (null: it does not)."""

    model_config = described("What one frame shows, and why that bears on the query (null: it does not).")

    relevant: str | None = Field(description="what bears on what is looked for and why, else null")
    _complete = read_as(lambda value: {"relevant": None, **value} if isinstance(value, Mapping) else value)


class DescribedFrames(Reply):
    """One description for each frame."""

    frames: list[DescribedFrame] = Field(description="one for each frame")


class SkimmedFrames(Reply):
    """One description for each frame, with what bears on the query."""

    frames: list[SkimmedFrame] = Field(description="one for each frame")


class Finding(Reasoned):
    """The answer to the query that a clip gives, and the numbers of the frames that show it."""

    found: bool = Field(description="true if the clip shows it")
    answer: str = Field(description="the answer, else empty")
    frames: Numbers = Field(description="numbers of the frames that show it")
    _complete = read_as(lambda value: {"answer": "", "frames": [], **value} if isinstance(value, Mapping) else value)


S = TypeVar("S", bound=DescribedFrames | SkimmedFrames)


@dataclass(frozen=True, kw_only=True)
class LookRequest(InParts[S]):
    """A description of each of some frames of a range, in small pictures; frames that are left out are asked for."""

    role: ClassVar[str] = "vision"
    parts: ClassVar[tuple[str, str, str]] = ("frames", "frames", "frame")
    image_side_px: ClassVar[int | None] = SMALL_SIDE_PX
    frame_tokens: ClassVar[int] = FRAME_TOKENS
    temperature: ClassVar[float] = 1.0
    videos: tuple[Video, ...]
    segment: Segment
    subtitles: tuple[Note, ...]
    frames: tuple[ShownFrame, ...]

    def check(self, reply: S) -> None:
        super().check(reply)
        if self.frames and not any(each.description.strip() for each in reply.frames):
            raise InvalidReply("no frame is described; give one description for each")
        for each in reply.frames:
            check_not_refused(each.description)


@dataclass(frozen=True, kw_only=True)
class OverviewVideo(LookRequest[DescribedFrames]):
    """Describe each of some frames of a whole video (Figure 6a); `subtitles` are all of the video."""

    Reply = DescribedFrames
    template: ClassVar[str] = "videoseek_overview"


@dataclass(frozen=True, kw_only=True)
class SkimRange(LookRequest[SkimmedFrames]):
    """Describe each of some frames of a long range, and how it bears on `query` (Figure 6b)."""

    Reply = SkimmedFrames
    template: ClassVar[str] = "videoseek_skim"
    query: str


@dataclass(frozen=True, kw_only=True)
class FocusClip(Request[Finding]):
    """The answer to `query` from all that is stored of a short clip, in full size (Figure 6c)."""

    Reply = Finding
    template: ClassVar[str] = "videoseek_focus"
    role: ClassVar[str] = "vision"
    full_size: ClassVar[bool] = True
    temperature: ClassVar[float] = 1.0
    reply_tokens: ClassVar[int] = STEP_BY_STEP_TOKENS
    videos: tuple[Video, ...]
    segment: Segment
    query: str
    subtitles: tuple[Note, ...]
    frames: tuple[ShownFrame, ...]

    def check(self, reply: Finding) -> None:
        if reply.found and is_blank(reply.answer):
            raise InvalidReply("the answer is empty; say what was found, or that nothing was")
        check_not_refused(reply.answer)
        if reply.frames:
            check_numbers("frame", sorted(set(reply.frames)), citation_numbers(self.frames)[0])
