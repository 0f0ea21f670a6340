"""The answer of an agent: its checks, and the evidence that it rests on."""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from agent.core.budget import Ledger
from agent.core.protocol import ShownFrame
from agent.core.question import Note, Question
from agent.environment import Environment
from agent.errors import BadAnswer
from agent.requests.answer import Answered, chosen_option

Shown = Sequence[ShownFrame | Note]
"""The basis of an answer: frames that were shown, or notes in words."""
Status = Literal["answered", "insufficient_evidence", "budget_exhausted", "invalid"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A time range [start_s, end_s) of a video that was shown, in frames or notes, to the model that answered."""

    video_id: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with its status, what it rests on and what it cost.

    `option` is the index of the chosen option. `budget_exhausted` marks the best answer so far when a
    budget (named in `reason`) ended the search; text and option are None if no budget was left to
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


ANSWER = TypeAdapter(Answer)


def validate_answer(answer: object, question: Question, environment: Environment) -> Answer:
    """Return an agent's answer if it is one to a question about the environment's videos.

    Raises `BadAnswer` with the fault: stored as it is, such an answer could not be read again.
    """
    fault = f"{type(answer).__name__} instead of an Answer"
    if isinstance(answer, Answer):
        try:
            read: Answer = ANSWER.validate_python(asdict(answer))
        except ValidationError as error:
            first = error.errors()[0]
            fault = f"{'.'.join(map(str, first['loc']))} {str(first['input'])[:60]!r}: {first['msg']}"
        else:
            fault = _mismatch(read, question, {video.video_id for video in environment.videos})
            if not fault:
                return read
    raise BadAnswer(f"the agent returned {fault}; return the result of `session.conclude` or `session.answer`")


def _mismatch(answer: Answer, question: Question, videos: set[str]) -> str:
    if answer.option is not None and not 0 <= answer.option < len(question.options):
        return f"option {answer.option} of {len(question.options)}, counted from 0"
    wrong = next((it for it in answer.evidence if it.video_id not in videos or not it.start_s <= it.end_s), None)
    return f"{wrong}, which is no part of a video of this question" if wrong else ""


def answer_text(question: Question, reply: Answered) -> tuple[str | None, int | None]:
    """The text and option index of a checked reply."""
    option = chosen_option(question, reply)
    return (reply.answer, None) if option is None else (question.options[option], option)


def evidence_ranges(environment: Environment, shown: Shown, cited: Sequence[int]) -> tuple[Evidence, ...]:
    """Time ranges of the cited frames or notes (1 is the first shown), of all if none is cited; neighbours joined.

    A citation of something that was never shown is no evidence and is left out.
    """
    cited_items = [shown[number - 1] for number in sorted(set(cited)) if 1 <= number <= len(shown)] or shown
    ranges: list[Evidence] = []
    for video_id, start_s, end_s in sorted(_range(environment, each) for each in cited_items):
        last = ranges[-1] if ranges else None
        if last and last.video_id == video_id and start_s <= last.end_s:
            ranges[-1] = Evidence(video_id, last.start_s, max(end_s, last.end_s))
        else:
            ranges.append(Evidence(video_id, start_s, end_s))
    return tuple(ranges)


def _range(environment: Environment, shown: ShownFrame | Note) -> tuple[str, float, float]:
    if isinstance(shown, Note):
        return shown.video_id, shown.start_s, shown.end_s
    return shown.video_id, *environment.shown_range(shown)
