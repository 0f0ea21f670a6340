"""Requests: frozen dataclasses of inputs, each of which a model answers in its own way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal

from pydantic import BaseModel

from kinodex.agent.answer_rules import Declining
from kinodex.agent.protocol.frames import Detail, ShownFrame, citation_numbers
from kinodex.agent.protocol.reply import R
from kinodex.agent.protocol.videos import VIDEO_ID_LENGTH
from kinodex.agent.replies.lengths import finite
from kinodex.agent.replies.schema import Bounds, Schema, bound_schema, plainest, strict_schema, without_reasoning


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """The number of the attempt: a cache or a trace must not answer the second attempt with the first."""

    attempt: int = 0
    complaint: str = ""
    """The fault of the reply to the attempt before, in one line for the model."""
    bad_reply: str = ""
    """That reply, as it was received; a language model is shown it again."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A later message of a conversation, of the model ("assistant") or to it ("user").

    With the name of a `tool` it is a call, as JSON with the tool's name, or the result of the call before it.
    """

    speaker: Literal["assistant", "user"]
    text: str
    tool: str = ""


WARMER = 0.3
"""Added to the temperature with each attempt: the same question asked in the same way has the same reply."""
WARMEST = 1.0


class Request(Attempt, Generic[R]):
    """A typed request: a frozen dataclass of inputs, which a model answers in its own way."""

    Reply: type[R]
    template: ClassVar[str]
    """File stem in agent/templates; or, for requests from elsewhere, the template itself, of several lines."""
    role: ClassVar[str]
    """The model that answers if there are several: one of `kinodex.agent.models.roles.ROLES`."""
    temperature: ClassVar[float] = 0.5
    form: ClassVar[Literal["json", "text", "tools"]] = "json"
    """The form of the reply. "text": in the words that the template asks for, read by `Reply.from_text`.
    "tools": as one call of one of `tools`, where the endpoint has native tool calls, else as JSON."""
    tools: ClassVar[tuple[type[BaseModel], ...]] = ()
    """The arguments of each tool, distinguished by a field `tool` with one literal value, the tool's name."""
    tool_choice: ClassVar[str] = "required"
    """"required": one of the tools; the name of one: that one; "none": a text. Servers put tools before the messages:
    requests of one conversation offer the same, so that a prefix cache serves them."""
    image_side_px: ClassVar[int | None] = None
    """Frames with a longer side are scaled down to it; None: to the role's limit."""
    full_size: ClassVar[bool] = False
    """True if frames are sent as they are stored, without the role's limit."""
    detail: ClassVar[Detail] = "auto"
    """The `ShownFrame.detail` of frames that have none of their own; "auto": the role's."""
    any_text: ClassVar[bool] = False
    """True if any text is a valid reply, which then does not show that the model makes sense."""
    declining: Declining = "allowed"
    """A field of requests that may be answered by "insufficient_evidence"."""
    stop: ClassVar[tuple[str, ...]] = ()
    """Texts that end a reply of form "text": a model that is sampled in this process stops after one."""
    reply_tokens: ClassVar[int] = 0
    """Tokens that a reply may need, beside those for its frames: what a prompt asks to be reasoned step by step."""
    frame_tokens: ClassVar[int] = 0
    """Tokens that a reply may need for each frame; the role's `max_tokens` are raised to what all need."""
    is_kept: ClassVar[bool] = False
    """True if replies are kept in the library, so that a video pays for them once."""
    frames: tuple[ShownFrame, ...] = ()
    """Shown with the request: by video and in time order, or in that of their labels."""
    turns: tuple[Turn, ...] = ()
    """The conversation since the first message, which is the rendered template."""

    def schema(self, *, reasoning: bool = True) -> Schema:
        """Return the JSON schema of this request's reply in strict mode, in the order in which it is to be written."""
        schema = finite(bound_schema(strict_schema(self.Reply), self.bounds()))
        return schema if reasoning else without_reasoning(schema)

    def bounds(self) -> Bounds:
        """Bounds of the reply's schema by these inputs; what would change with each request, `check` refuses."""
        return {}

    def example(self) -> Mapping[str, Any]:
        """Return a plain reply that fits the schema and these inputs, as JSON values: what a dry run assumes."""
        inputs: dict[str, Any] = {
            name: getattr(self, name, ()) for name in ("segments", "listed", "notes", "clips", "moments")
        }
        segments = [*inputs["segments"], *(candidate.segment for candidate in inputs["listed"])]
        known: dict[str, Sequence[Any]] = {
            "segment": [each.number for each in segments],
            "cluster": range(1, len(inputs["notes"]) + 1),
            "frame": citation_numbers(self.frames)[0],
            "clips": [each.number for each in inputs["clips"]],
            "moment": [each.number for each in inputs["moments"]],
        }
        for video in getattr(self, "videos", ())[:1]:
            middle_s = video.start_s + video.duration_s / 2
            times = {"start_s": [middle_s], "end_s": [min(video.end_s, middle_s + 8)], "times_s": [middle_s]}
            known |= {"video": [video.video_id[:VIDEO_ID_LENGTH]], **times}
        if getattr(getattr(self, "question", None), "options", ()):
            known["answer"] = [None]
        example: Mapping[str, Any] = plainest(self.schema(), known)
        return example

    def sampled_at(self, temperature: float | None) -> float:
        """Return the temperature of this attempt, from that of a role, None for the request's own."""
        first = self.temperature if temperature is None else temperature
        return max(first, min(WARMEST, first + WARMER * self.attempt))

    def interpret(self, reply: R) -> R:
        """Interpret a reply that a model wrote in text: put it on the scale that was asked for, say."""
        return reply

    def check(self, reply: R) -> None:
        """Raise `InvalidReply` if a well-formed reply is impossible for these inputs."""

    def missing(self, reply: R) -> Request[R] | None:
        """Return the request for what a checked reply leaves out, and for nothing else; None if it is whole."""
        return None

    @property
    def asks_for_rest(self) -> bool:
        """True if what a reply leaves out is asked for."""
        return type(self).missing is not Request.missing

    def join(self, reply: R, rest: R) -> R:
        """Return one reply of a reply and that to the request for what it leaves out."""
        return reply

    @property
    def instead(self) -> str:
        """The thing to do instead of "insufficient_evidence" where that is not allowed."""
        return "give the answer that the evidence supports best"

    def pattern(self) -> str:
        """Return a regular expression for replies of form "text", for constrained decoding; "" if any text is one."""
        return ""

    def refusal(self) -> str:
        """Complain about a reply that gives up where `declining` does not allow it."""
        yet = " yet: there is more to look at" if self.declining == "later" else ""
        return f"insufficient_evidence is not accepted{yet}; {self.instead}"

    def in_words(self, text: str) -> R | None:
        """Return the reply in a text without a JSON object, if it is unambiguous."""
        return None
