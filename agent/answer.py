"""What an agent hands back."""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agent.environment import Environment
from agent.ledger import Ledger
from agent.model import ShownFrame
from agent.question import Question
from agent.replies import Answered
from agent.requests.answers import chosen_option

Status = Literal["answered", "insufficient_evidence", "budget_exhausted", "invalid"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A time range [start_s, end_s) of a video, all of which was shown to the model that answered."""

    video_id: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with its status, what it rests on and what it cost.

    `option` is the index of the chosen option. `budget_exhausted` marks the best answer so far when a
    budget (named in `reason`) ended the search; text and option are None where there was nothing left to
    ask for one.
    """

    status: Status
    text: str | None
    option: int | None
    evidence: tuple[Evidence, ...]
    rounds: int
    ledger: Ledger
    reason: str = ""

    @property
    def letter(self) -> str | None:
        return None if self.option is None else string.ascii_uppercase[self.option]


def answer_text(question: Question, reply: Answered) -> tuple[str | None, int | None]:
    """The text and option index of a checked reply."""
    option = chosen_option(question, reply)
    return (reply.answer, None) if option is None else (question.options[option], option)


def evidence_of(environment: Environment, shown: Sequence[ShownFrame], cited: Sequence[int]) -> tuple[Evidence, ...]:
    """The times of the cited frames (1 is the first shown), of all shown ones if none is cited; neighbours
    joined.

    A citation of something that was never shown is no evidence and is left out.
    """
    frames = [shown[number - 1] for number in sorted(set(cited)) if 1 <= number <= len(shown)] or shown
    ranges: list[Evidence] = []
    for frame in sorted(frames, key=lambda frame: (frame.video_id, frame.time_s)):
        start_s, end_s = environment.shown_range(frame)
        last = ranges[-1] if ranges else None
        if last and last.video_id == frame.video_id and start_s <= last.end_s:
            ranges[-1] = Evidence(frame.video_id, last.start_s, max(end_s, last.end_s))
        else:
            ranges.append(Evidence(frame.video_id, start_s, end_s))
    return tuple(ranges)
