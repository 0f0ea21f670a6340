"""Rounds of requests about the parts of a video, and the rows that are made of their replies."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kinodex.agent.attempts import Outcome
from kinodex.agent.errors import ModelRejected
from kinodex.agent.protocol.request import Request
from kinodex.jobs.add.run import NO_COST, AddedRows


class NotInBatch(ModelRejected):
    """A request that no job has answered yet."""


@dataclass(frozen=True, slots=True)
class Round:
    """So many requests about parts of a video that do not wait for each other; made some at a time: they hold pictures.

    `make` gets their numbers.
    """

    count: int
    make: Callable[[Sequence[int]], Sequence[Request[Any]]]


Rounds = Generator[Round, list[Outcome[Any]], AddedRows]
"""Rounds of one video, each of which is sent the outcomes of its requests; the rows at their end."""
Answer = Callable[[Round], list[Outcome[Any]]]
"""Answers the requests of a round, in order."""


def run_rounds(rounds: Rounds, answer: Answer) -> AddedRows:
    """Have the requests of a video answered; it failed if those of the first round that has any were all refused."""
    usage, any_reply, calls, invalid = NO_COST, False, 0, 0
    try:
        asked = next(rounds)
        while True:
            outcomes = answer(asked)
            usage = sum((each.usage for each in outcomes), usage)
            calls += sum(each.calls for each in outcomes)
            invalid += sum(each.invalid for each in outcomes)
            any_reply = any_reply or any(each.reply is not None for each in outcomes)
            refused = [each.refused for each in outcomes if each.refused is not None]
            if refused and not any_reply:
                rounds.close()
                return AddedRows((), 0, usage=usage, failed=refused[-1], calls=calls, invalid=invalid)
            asked = rounds.send(outcomes)
    except StopIteration as end:
        made: AddedRows = end.value
        return replace(made, usage=usage, calls=calls, invalid=invalid)


def reasons(outcomes: Iterable[Outcome[Any]]) -> str:
    """Return the end of a sentence about parts without a reply: what requests were refused for, or replies lacked."""
    unanswered = [outcome for outcome in outcomes if outcome.reply is None]
    refused = [outcome.refused for outcome in unanswered if outcome.refused is not None]
    complaints = [outcome.complaint for outcome in unanswered if outcome.complaint]
    said = f"; requests refused: {len(refused)}, the last because {refused[-1]}" if refused else ""
    return said + (f"; the last reply could not be used: {complaints[-1]}" if complaints else "")
