"""The answer of an agent, and the evidence that it rests on."""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from kinodex.agent.environment import Environment
from kinodex.agent.limits import Ledger
from kinodex.agent.protocol import Note, ShownFrame, citation_numbers

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
    ask for one. An `answered` one with a `reason` is the best so far too: the model could not
    decide how to go on.
    """

    status: Status
    text: str | None
    option: int | None
    evidence: tuple[Evidence, ...]
    rounds: int
    ledger: Ledger
    reason: str = ""
    senseless: bool = False
    """True if the run ended because no reply of its models could be used (`reason` says which model and why)."""
    evidence_cited: bool = True
    """False if the reply named nothing that was shown: then `evidence` is all that the model had before it."""

    supported: bool | None = None
    """With the gate (`AnswerRules.verify`): True if a second look at `evidence` alone came to it; None without one."""
    unverified: str = ""
    """With the gate: the reason why no second look came to anything, in one line; "" if one did."""
    noise: str | None = None
    """Why the search behind it means nothing, where it does: see `LibraryReader.noise`."""

    @property
    def letter(self) -> str | None:
        return None if self.option is None else string.ascii_uppercase[self.option]


# The evidence of an answer: the time ranges of the frames and notes that it cites.

Shown = Sequence[ShownFrame | Note]
"""The basis of an answer: frames that were shown, or notes in words."""


def evidence_ranges(environment: Environment, shown: Shown, cited: Sequence[int]) -> tuple[Evidence, ...]:
    """Time ranges of the frames, then notes, cited by their numbers; of all if none is cited; neighbours joined.

    A citation of something that was never shown is no evidence and is left out.
    """
    ranges: list[Evidence] = []
    found = [
        (each.video_id, each.start_s, each.end_s)
        if isinstance(each, Note)
        else (each.video_id, *environment.shown_range(each))
        for each in cited_items(shown, cited)
    ]
    for video_id, start_s, end_s in sorted(found):
        last = ranges[-1] if ranges else None
        if last and last.video_id == video_id and start_s <= last.end_s:
            ranges[-1] = Evidence(video_id, last.start_s, max(end_s, last.end_s))
        else:
            ranges.append(Evidence(video_id, start_s, end_s))
    return tuple(ranges)


def cited_items(shown: Shown, cited: Sequence[int]) -> Shown:
    """The frames, then notes, cited by their numbers, all if none is cited; a look that failed is never among them."""
    named = [each for number, each in zip(shown_numbers(shown), shown, strict=True) if number in cited] or shown
    return [each for each in named if isinstance(each, ShownFrame) or not each.failed]


def shown_numbers(shown: Shown) -> list[int]:
    frames = [each for each in shown if isinstance(each, ShownFrame)]
    return list(chain(*citation_numbers(frames, shown[len(frames) :])))
