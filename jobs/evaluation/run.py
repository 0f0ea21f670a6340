"""A run of an evaluation: its questions asked of its contenders, every answer kept as soon as it is there.

Whatever ends a run, the same command goes on with it: what has a record is not asked again. A contender that gets as
many frames as another one needed begins when all of that one's questions are answered.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from agent.errors import ModelRejected
from agent.session import at_once
from jobs.benchmarks.item import Item
from jobs.evaluation.asking import Ask, Asked, Outcome, Setting, asker
from jobs.evaluation.contenders import Contender
from jobs.evaluation.folder import ANSWERS, appending, begin_run, plan_or_none, read_records, slug, trace_file
from jobs.evaluation.folder import write_whole as write
from jobs.evaluation.plan import Plan
from jobs.evaluation.planning import Wanted, check_same, planned
from jobs.evaluation.progress import Tally, Tell, asking_progress
from jobs.evaluation.record import Record

if TYPE_CHECKING:
    from rich.console import Console

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class How:
    """`at_once` questions are under way together, here or (`ray`) on so many `workers` of the cluster at `address`.

    After `max_errors` questions that got no answer the run ends. `retry_errors` asks those of earlier runs once more.
    """

    at_once: int = 32
    ray: bool = False
    workers: int | None = None
    address: str | None = None
    max_errors: int = 20
    retry_errors: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """One question for one contender."""

    contender: Contender
    asked: Asked


def run(wanted: Wanted, setting: Setting, how: How, out: Path, console: Console) -> None:
    """Ask all that is wanted and not yet answered, and keep the records in the folder `out`.

    Raises `UsageError` if `out` holds another run or is written by another process, `ModelError` if the endpoint is
    gone or refuses too much; all answers until then are kept.
    """
    plan, items = planned(wanted, setting)
    begun = plan_or_none(out)
    if begun is None:
        begin_run(out, plan, items)
    else:
        check_same(begun, plan, out)
    with appending(out / ANSWERS) as append:
        done = {(each.contender, each.item_id): each for each in read_records(out) if not (how.retry_errors and each.error)}
        counted = Counter(contender for contender, _ in done)
        tally = Tally({each.name: len(items) for each in plan.contenders}, counted)
        with asking_progress(console, tally) as tell:
            asking = _Asking(how, out, done, append, tell, tally)
            asyncio.run(_ask_all(plan, items, setting, asking))
    _write_submissions(plan, items, list(done.values()), out)


@dataclass(frozen=True, slots=True)
class _Asking:
    """Where answers go: into `done` by contender and question, to the file, to whoever watches."""

    how: How
    out: Path
    done: dict[Key, Record]
    append: Callable[[Record], None]
    tell: Tell
    tally: Tally

    def keep(self, job: Job, outcome: Outcome) -> None:
        """Keep an answer; raises `ModelRejected` if it is one more error than is borne."""
        record = outcome.record
        if outcome.trace is not None:
            write(trace_file(self.out, record.contender, record.item_id), outcome.trace)
        self.append(record)
        self.done[record.contender, record.item_id] = record
        self.tell(record)
        if self.tally.errors >= self.how.max_errors:
            raise ModelRejected(
                f"{self.tally.errors} questions got no answer, the last because: {record.error}; all answers are kept: "
                "correct that and run again with --retry-errors, or raise --max-errors"
            )


async def _ask_all(plan: Plan, items: Sequence[Item], setting: Setting, asking: _Asking) -> None:
    questions = [Asked(item.item_id, item.question, plan.items[item.item_id]) for item in items]
    async with _whoever_asks(setting, asking.how) as ask:
        for waiting in (False, True):
            contenders = [each for each in plan.contenders if (each.frames_of is not None) == waiting]
            await _ask_some(
                ask, _jobs([_equalled(each, asking.done) for each in contenders], questions, asking), asking
            )


def _whoever_asks(setting: Setting, how: How) -> AbstractAsyncContextManager[Ask]:
    if not how.ray:
        return asker(setting)
    from jobs.evaluation.ray_tasks import ray_asker

    return ray_asker(setting, how.workers, how.address)


def _equalled(contender: Contender, done: dict[Key, Record]) -> Contender:
    """A contender with the frames that it is to get: as many as the other one needed on average."""
    if contender.frames_of is None:
        return contender
    needed = [record.ledger.frames for record in done.values() if record.contender == contender.frames_of]
    return replace(contender, settings={**contender.settings, "frames": max(1, round(fmean(needed)))})


def _jobs(contenders: Sequence[Contender], questions: Sequence[Asked], asking: _Asking) -> list[Job]:
    return [
        Job(contender, asked)
        for contender in contenders
        for asked in questions
        if (contender.name, asked.item_id) not in asking.done
    ]


async def _ask_some(ask: Ask, jobs: Sequence[Job], asking: _Asking) -> None:
    waiting: Iterator[Job] = iter(jobs)

    async def work() -> None:
        for job in waiting:
            asking.keep(job, await ask(job.contender, job.asked))

    await at_once([work() for _ in range(min(asking.how.at_once, len(jobs)))])


def _write_submissions(plan: Plan, items: Sequence[Item], records: Sequence[Record], out: Path) -> None:
    """Where a benchmark keeps its answers to itself, a file a contender as its server takes it."""
    if all(item.truth.known for item in items):
        return
    for contender in plan.contenders:
        chosen = {each.item_id: each.option for each in records if each.contender == contender.name}
        content = {item.item_id: -1 if (option := chosen.get(item.item_id)) is None else option for item in items}
        write(out / f"submission-{slug(contender.name)}.json", json.dumps(content, indent=1).encode())
