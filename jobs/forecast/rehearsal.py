"""Rehearse questions: the agent itself runs on the library, and a stand-in answers in the place of the models.

Nothing is sent and nothing is written. Of many questions some are rehearsed, spread evenly, and stand for the rest. A
caption that an agent keeps in the library is paid once, and the next question about that video has other parts of it
captioned. So several questions about a video are rehearsed, and what is kept is expected to grow by as much with each
further question as it did there, until each frame of the video is captioned.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

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
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The settings of one system's rehearsal; `roles` are the endpoints whose prices and names count.

    `has_language` is False if the built-in model is to answer.
    """

    system: str
    agent: str | Variant
    settings: Mapping[str, str | bool | int | float]
    roles: Mapping[str, Role]
    budget: Budget
    rules: AnswerRules = field(default_factory=AnswerRules)
    prior: PriorEvidence | None = None
    has_language: bool = True


def rehearse(
    rehearsal: Rehearsal, tasks: Sequence[Task], environment_of: Callable[[tuple[str, ...]], Environment]
) -> Forecast:
    """Expect the costs of all tasks from a rehearsal of some, one after the other.

    A search is rehearsed twice, once to where it usually ends and once to its last round, and the two are weighed
    (`RESTLESS`). By the built-in model it is rehearsed once, since that is the stand-in.
    """
    some = _choose(tasks)
    share = _restless_share(rehearsal, environment_of(some[0][1])) if some else 0.0
    first = _expect(rehearsal, tasks, some, environment_of, restless=False)
    return _mix(first, _expect(rehearsal, tasks, some, environment_of, restless=True), share) if share else first


def _restless_share(rehearsal: Rehearsal, environment: Environment) -> float:
    if not rehearsal.has_language:  # the built-in model is the stand-in: it ends where the run does
        return 0.0
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
    bills, ledgers = asyncio.run(run_rehearsal(rehearsal, some, environment_of, restless))
    environments = [environment_of(video_ids) for _, video_ids in some]
    kept = [_kept(bill) if each.keep_captions else _Kept() for bill, each in zip(bills, environments, strict=True)]
    frames = sum(each.index_frames for each in environments) / max(1, len(some))
    kept_of_all = _expect_kept(tasks, some, kept, frames)
    share = len(tasks) / max(1, len(some))
    costs = {
        name: share * sum(getattr(ledger, name) - getattr(own, name) for ledger, own in zip(ledgers, kept, strict=True))
        + getattr(kept_of_all, name)
        for name in COSTS
    }
    each = sum(ledger.frames_with_kept for ledger in ledgers) / max(1, len(ledgers))
    return Forecast(rehearsal.system, len(tasks), **costs, frames_a_question=each)


@dataclass(frozen=True, slots=True)
class _Kept:
    """Costs of replies that are kept, by the names of a ledger."""

    calls: float = 0.0
    frames: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    cost: float = 0.0


def _kept(bill: Bill) -> _Kept:
    """Sum up the calls whose replies are kept."""
    usage = sum((bill.usage.get(kind, Usage()) for kind in KEPT_KINDS), Usage())
    calls, frames = (sum(counts[kind] for kind in KEPT_KINDS) for counts in (bill.calls, bill.frames))
    return _Kept(calls, frames, usage.input_tokens, usage.output_tokens, usage.cost)


def _expect_kept(tasks: Sequence[Task], some: Sequence[Task], kept: Sequence[_Kept], frames_a_video: float) -> _Kept:
    """Expect what is kept for all tasks: of each video the first question's, and growth with each further one.

    The growth ends where the kept captions would show more than `frames_a_video`.
    """
    firsts = {video_ids: place for place, (_, video_ids) in reversed(list(enumerate(some)))}.values()
    first = _mean([kept[place] for place in firsts])
    growth = _mean([each for place, each in enumerate(kept) if place not in firsts])
    videos = len({video_ids for _, video_ids in tasks})
    further: float = len(tasks) - videos
    if growth.frames:
        further = min(further, videos * max(0.0, frames_a_video - first.frames) / growth.frames)
    return _Kept(**{name: videos * getattr(first, name) + further * getattr(growth, name) for name in COSTS})


def _mean(kept: Sequence[_Kept]) -> _Kept:
    return _Kept(**{name: sum(getattr(each, name) for each in kept) / max(1, len(kept)) for name in COSTS})


async def run_rehearsal(
    rehearsal: Rehearsal,
    tasks: Sequence[Task],
    environment_of: Callable[[tuple[str, ...]], Environment],
    restless: bool,
) -> tuple[list[Bill], list[Ledger]]:
    """Run the agent on each of these tasks; gives the bill by kind of request, and the ledger, of each task."""
    bills, ledgers = [], []
    captions: list[ClipRow] = []
    described: list[str] = []
    for question, video_ids in tasks:
        bill = Bill(captions=described)
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
        bills.append(bill)
        ledgers.append(answer.ledger)
    return bills, ledgers


def _choose(tasks: Sequence[Task]) -> list[Task]:
    """At most `REHEARSED` tasks: two or more of a video where a video has two on average, of videos spread evenly."""
    by_video: dict[tuple[str, ...], list[Task]] = {}
    for task in tasks:
        by_video.setdefault(task[1], []).append(task)
    several = 2 if len(tasks) >= 2 * len(by_video) else 1
    videos = _spread(list(by_video.values()), REHEARSED // several)
    return [task for of_video in videos for task in _spread(of_video, REHEARSED // len(videos))]


def _spread(items: Sequence[T], count: int) -> list[T]:
    """At most `count` items, spread evenly."""
    if len(items) <= count:
        return list(items)
    return [items[round(at * (len(items) - 1) / max(1, count - 1))] for at in range(count)]
