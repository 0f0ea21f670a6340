"""Rehearse questions: the agent itself runs on the library, and a stand-in answers in the place of the models.

Nothing is sent and nothing is written. Of many questions some are rehearsed, spread evenly, and stand for the rest. A
caption that an agent keeps in the library is paid once a video, whatever follows, so captions grow with the videos that
lack them, not with the questions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agent.ask_questions import ask
from agent.core.answer_rules import AnswerRules
from agent.core.budget import Budget, Ledger
from agent.core.protocol import Usage
from agent.core.question import Question
from agent.environment import Environment
from agent.models.role_config import Role
from agent.trace.followup import PriorEvidence
from agent.variants.base import Variant
from agent.variants.registry import find_variant
from index.rows import ClipRow
from jobs.forecast.forecast import COSTS, Forecast
from jobs.forecast.stand_in import Bill, stand_ins
from jobs.forecast.unwritten import without_writing

REHEARSED = 8
"""Questions of a system that are rehearsed at most."""
KEPT_KINDS = ("DescribeSegment", "Summarize")
"""Requests whose replies are kept in the library, so that a video pays for them once."""

HALF_OF_LONG = (0.0, 1 / 2)
RESTLESS = {"eea": (1 / 6, 1 / 2), **dict.fromkeys(("vca", "videoseek", "longvideoagent"), HALF_OF_LONG)}
"""The share of questions for which a search uses all its rounds, in videos of under and over `SHORT_S`: those that come
near to the rule server's on sketch films of less than a minute and of an hour."""
SHORT_S = 300.0

Task = tuple[Question, tuple[str, ...]]
"""A question and the ids of its videos."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The settings of one system's rehearsal; `roles` are the endpoints whose prices and names count."""

    system: str
    agent: str | Variant
    settings: Mapping[str, str | bool | int | float]
    roles: Mapping[str, Role]
    budget: Budget
    rules: AnswerRules = field(default_factory=AnswerRules)
    prior: PriorEvidence | None = None


def rehearse(
    rehearsal: Rehearsal, tasks: Sequence[Task], environment_of: Callable[[tuple[str, ...]], Environment]
) -> Forecast:
    """Expect the costs of all tasks from a rehearsal of some, one after the other.

    A search is rehearsed twice, once to where it usually ends and once to its last round, and the two are weighed
    (`RESTLESS`).
    """
    some = _spread(tasks, REHEARSED)
    share = _restless_share(rehearsal, environment_of(some[0][1])) if some else 0.0
    first = _expect(rehearsal, tasks, some, environment_of, restless=False)
    return _mix(first, _expect(rehearsal, tasks, some, environment_of, restless=True), share) if share else first


def _restless_share(rehearsal: Rehearsal, environment: Environment) -> float:
    name = find_variant(rehearsal.agent).name
    short = max((video.duration_s for video in environment.videos), default=0.0) < SHORT_S
    return RESTLESS.get(name, (0.0, 0.0))[0 if short else 1]


def _mix(first: Forecast, second: Forecast, share: float) -> Forecast:
    names = (*COSTS, "frames_a_question")
    mixed = {name: (1 - share) * getattr(first, name) + share * getattr(second, name) for name in names}
    return replace(first, **mixed)


def _expect(
    rehearsal: Rehearsal,
    tasks: Sequence[Task],
    some: Sequence[Task],
    environment_of: Callable[[tuple[str, ...]], Environment],
    *,
    restless: bool,
) -> Forecast:
    """Rehearse some of the tasks for all."""
    bill, ledgers = asyncio.run(run_rehearsal(rehearsal, some, environment_of, restless))
    kept = _kept(bill, environment_of(some[0][1]).keep_captions if some else False)
    by_question = len(tasks) / max(1, len(some))
    by_video = len({task[1] for task in tasks}) / max(1, len({task[1] for task in some}))

    def expected(total: float, of_kept: float) -> float:
        return (total - of_kept) * by_question + of_kept * by_video

    return Forecast(
        rehearsal.system,
        len(tasks),
        expected(sum(each.calls for each in ledgers), kept.calls),
        expected(sum(each.frames for each in ledgers), kept.frames),
        expected(sum(each.input_tokens for each in ledgers), kept.usage.input_tokens),
        expected(sum(each.output_tokens for each in ledgers), kept.usage.output_tokens),
        expected(sum(each.cost for each in ledgers), kept.usage.cost),
        frames_a_question=sum(each.frames_with_kept for each in ledgers) / max(1, len(ledgers)),
    )


@dataclass(frozen=True, slots=True)
class _Kept:
    calls: int = 0
    frames: int = 0
    usage: Usage = field(default_factory=Usage)


def _kept(bill: Bill, keep_captions: bool) -> _Kept:
    """Sum up the calls whose replies are kept."""
    if not keep_captions:
        return _Kept()
    usage = sum((bill.usage.get(kind, Usage()) for kind in KEPT_KINDS), Usage())
    return _Kept(sum(bill.calls[kind] for kind in KEPT_KINDS), sum(bill.frames[kind] for kind in KEPT_KINDS), usage)


async def run_rehearsal(
    rehearsal: Rehearsal,
    tasks: Sequence[Task],
    environment_of: Callable[[tuple[str, ...]], Environment],
    restless: bool,
) -> tuple[Bill, list[Ledger]]:
    """Run the agent on each of these tasks; gives the bill by kind of request, and the ledger of each task."""
    bill, ledgers = Bill(), []
    captions: list[ClipRow] = []
    for question, video_ids in tasks:
        environment = without_writing(environment_of(video_ids), captions)
        answer = await ask(
            question,
            environment,
            stand_ins(rehearsal.roles, environment, bill, restless=restless),
            agent=rehearsal.agent,
            parameters=rehearsal.settings,
            budget=replace(rehearsal.budget, seconds=None),
            rules=rehearsal.rules,
            seen=rehearsal.prior,
        )
        ledgers.append(answer.ledger)
    return bill, ledgers


def _spread(tasks: Sequence[Task], count: int) -> list[Task]:
    """At most `count` tasks, spread evenly."""
    if len(tasks) <= count:
        return list(tasks)
    return [tasks[round(at * (len(tasks) - 1) / (count - 1))] for at in range(count)]
