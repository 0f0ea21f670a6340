"""Requests of VideoSeek's three tools to the model that sees: overview, skim and focus (supplement, Figure 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeVar

from pydantic import Field, model_validator

from agent.core.protocol import Reasoned, Reply, Request, ShownFrame, citation_numbers, described
from agent.core.question import Note, Segment, Video
from agent.core.reply_schema import Bounds, exactly
from agent.core.reply_values import Numbers, WholeNumber, is_blank
from agent.errors import InvalidReply
from agent.requests.parts import check_numbers, join_parts, missing_frames
from agent.requests.refusals import check_not_refused

SMALL_SIDE_PX = 455
"""The longer side of a 16:9 picture whose shorter one is 256, the size that overview and skim have."""


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

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, value: object) -> object:
        return {"relevant": None, **value} if isinstance(value, Mapping) else value


class DescribedFrames(Reply):
    """One description for each frame."""

    frames: list[DescribedFrame] = Field(description="one for each frame")


class SkimmedFrames(Reply):
    """One description for each frame, with what bears on the query."""

    frames: list[SkimmedFrame] = Field(description="one for each frame")


class Finding(Reasoned):
    """The answer to the query that a clip gives, and the numbers of the frames that show it."""

    found: bool = Field(description="true if the clip shows it")
    answer: str = Field(description="the answer in few words, else empty")
    frames: Numbers = Field(description="numbers of the frames that show it")

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, value: object) -> object:
        return {"answer": "", "frames": [], **value} if isinstance(value, Mapping) else value


S = TypeVar("S", DescribedFrames, SkimmedFrames)


@dataclass(frozen=True, kw_only=True)
class LookRequest(Request[S]):
    """A description of each of some frames of a range, in small pictures; frames that are left out are asked for."""

    role: ClassVar[str] = "vision"
    image_side_px: ClassVar[int | None] = SMALL_SIDE_PX
    temperature: ClassVar[float] = 1.0
    videos: tuple[Video, ...]
    segment: Segment
    subtitles: tuple[Note, ...]
    frames: tuple[ShownFrame, ...]

    def bounds(self) -> Bounds:
        return {"frames": exactly(len(self.frames))}

    def check(self, reply: S) -> None:
        _check_described(self.frames, reply.frames)

    def missing(self, reply: S) -> Self | None:
        rest = missing_frames(self.frames, _numbers(reply.frames))
        return replace(self, frames=rest) if rest else None

    def join(self, reply: S, rest: S) -> S:
        return reply.model_copy(update=_join(self.frames, reply.frames, rest.frames))


@dataclass(frozen=True, kw_only=True)
class OverviewVideo(LookRequest[DescribedFrames]):
    """Describe each of some frames of a whole video (Figure 6a); `subtitles` are all of the video."""

    Reply = DescribedFrames
    template: ClassVar[str] = "videoseek_overview"

    def example(self) -> Mapping[str, Any]:
        return {"frames": _example_frames(self.frames)}


@dataclass(frozen=True, kw_only=True)
class SkimRange(LookRequest[SkimmedFrames]):
    """Describe each of some frames of a long range, and how it bears on `query` (Figure 6b)."""

    Reply = SkimmedFrames
    template: ClassVar[str] = "videoseek_skim"
    query: str

    def example(self) -> Mapping[str, Any]:
        relevant = ("the ball is in play, so it has not gone yet", None)
        frames = _example_frames(self.frames)
        return {"frames": [{**each, "relevant": relevant[at % len(relevant)]} for at, each in enumerate(frames)]}


@dataclass(frozen=True, kw_only=True)
class FocusClip(Request[Finding]):
    """The answer to `query` from all that is stored of a short clip, in full size (Figure 6c)."""

    Reply = Finding
    template: ClassVar[str] = "videoseek_focus"
    role: ClassVar[str] = "vision"
    full_size: ClassVar[bool] = True
    temperature: ClassVar[float] = 1.0
    videos: tuple[Video, ...]
    segment: Segment
    query: str
    subtitles: tuple[Note, ...]
    frames: tuple[ShownFrame, ...]

    def example(self) -> Mapping[str, Any]:
        why = "The ball is on the grass behind the net in the last frame."
        return {
            "reasoning": why,
            "found": True,
            "answer": "behind the goal",
            "frames": citation_numbers(self.frames)[0][-1:],
        }

    def check(self, reply: Finding) -> None:
        if reply.found and is_blank(reply.answer):
            raise InvalidReply("the answer is empty; say what was found, or that nothing was")
        check_not_refused(reply.answer)
        if reply.frames:
            check_numbers("frame", sorted(set(reply.frames)), citation_numbers(self.frames)[0])


def _example_frames(frames: Sequence[ShownFrame]) -> list[dict[str, object]]:
    said = ("A boy in a red shirt kicks a ball on a meadow.", "Spectators stand under umbrellas in front of a tent.")
    numbers = enumerate(citation_numbers(frames)[0])
    return [{"frame": number, "description": said[at % len(said)]} for at, number in numbers]


def _check_described(shown: Sequence[ShownFrame], described: Sequence[DescribedFrame]) -> None:
    """A reply may leave frames out, but not describe unknown ones, one twice, or none."""
    check_numbers("frame", _numbers(described), citation_numbers(shown)[0])
    if shown and not any(each.description.strip() for each in described):
        raise InvalidReply("no frame is described; give one description for each")
    for each in described:
        check_not_refused(each.description)


def _numbers(described: Sequence[DescribedFrame]) -> list[int]:
    return [each.frame for each in described]


D = TypeVar("D", bound=DescribedFrame)


def _join(frames: Sequence[ShownFrame], first: Sequence[D], rest: Sequence[D]) -> dict[str, list[D]]:
    left = citation_numbers(missing_frames(frames, _numbers(first)))[0]
    return {"frames": join_parts("frame", first, rest, citation_numbers(frames)[0], left)}
