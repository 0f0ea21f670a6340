"""Requests for the title and the summary of a scene or a chapter: a table of contents is written with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import Field

from kinodex.agent.errors import InvalidReply
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.reply import Reply, described
from kinodex.agent.protocol.request import Request
from kinodex.agent.protocol.videos import Segment
from kinodex.agent.requests.refusals import check_not_refused
from kinodex.agent.requests.repetition import check_not_echoed, check_not_looping

LONGEST_TITLE = 120
"""Characters: a longer one is a summary in the wrong place."""
LONGEST_SUMMARY = 2000
KEY_WORDS = 4
"""Words in a row from the descriptions of the keys, which are shorter than sentences: "at most eight words"."""


class PartSummary(Reply):
    """A title and a summary of a part of a video."""

    model_config = described("An entry of a table of contents of a video.")

    title: str = Field(description="at most eight words that tell this part from the others")
    summary: str = Field(description="one to three sentences")


@dataclass(frozen=True, kw_only=True)
class SummarizePart(Request[PartSummary]):
    """Give a part of a video a title and a summary, by lines about it in `notes`, or by frames.

    The lines of a scene are captions and what is said or written meanwhile; those of a chapter are its scenes.
    """

    Reply = PartSummary
    template: ClassVar[str] = "summarize_part"
    role: ClassVar[str] = "captioner"
    temperature: ClassVar[float] = 0.0
    part: Segment
    level: Literal["scene", "chapter"]
    notes: tuple[Note, ...]
    frames: tuple[ShownFrame, ...] = ()

    def check(self, reply: PartSummary) -> None:
        for name, text, most, form in (
            ("title", reply.title.strip(), LONGEST_TITLE, "at most eight words"),
            ("summary", reply.summary.strip(), LONGEST_SUMMARY, "one to three sentences"),
        ):
            if not text:
                raise InvalidReply(f"the {name} is empty; give a title and a summary")
            check_not_refused(text)
            if len(text) > most:
                raise InvalidReply(f"the {name} has {len(text)} characters; give {form}")
            check_not_looping(text)
            for key in PartSummary.model_fields.values():
                check_not_echoed(text, key.description or "", KEY_WORDS)
