"""A run of an evaluation: its questions asked of its contenders, every answer kept as soon as it is there.

Whatever ends a run, the same command goes on with it: what has a record is not asked again. A contender that gets as
many frames as another one needed begins when all of that one's questions are answered.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from agent.errors import ModelRejected
from agent.session import at_once
from jobs.benchmarks.sample import Sample
from jobs.errors import CostReached
from jobs.evaluation.run.make_plan import check_same
from jobs.evaluation.run.progress import Tally, Tell, asking_progress
from jobs.evaluation.run.results import SampleResult
from jobs.evaluation.run.run_folder import (
    ANSWERS,
    Plan,
    appending,
    begin_run,
    plan_or_none,
    read_records,
    slug,
    trace_file,
    write_whole,
)
from jobs.evaluation.run.solve import SampleInput, Solve, SolvedSample
from jobs.evaluation.run.systems import System

if TYPE_CHECKING:
    from rich.console import Console

MOST_FRAMES = 256
Key = tuple[str, str]
"""A contender's name and a question's id."""
Job = tuple[System, SampleInput]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """`questions` are under way together. After `max_errors` that got no answer the run ends.

    `retry_errors` asks those of earlier runs once more. When answers have cost `stop_at_cost` since it began, no other
    question begins.
    """

    questions: int = 64
    max_errors: int = 20
    retry_errors: bool = False
    stop_at_cost: float | None = None


def under_way(requests: int) -> int:
    """Questions under way together so that so many requests always are: while one is prepared, another is out."""
    return 2 * requests


def run(
    plan: Plan,
    items: Sequence[Sample],
    who_asks: AbstractAsyncContextManager[Solve],
    out: Path,
    console: Console,
    how: RunOptions,
) -> None:
    """Ask all that is planned and not yet answered, keep the records in the folder `out`, and report.

    Raises `UsageError` if `out` holds another run, is written by another process or cannot be, `ModelError` if the
    endpoint is gone or refuses too much, `CostReached` where it is to stop; all answers until then are kept.
    """
    with appending(out / ANSWERS) as append:  # first: of two that begin here at once, the plan is of who writes
        begun = plan_or_none(out)
        if begun is None:
            begin_run(out, plan, items)
        else:
            check_same(begun, plan, out)
        kept = [each for each in read_records(out) if not (how.retry_errors and each.error)]
        done = {(each.contender, each.item_id): each for each in kept}
        tally = Tally({each.name: len(items) for each in plan.contenders}, Counter(each.contender for each in kept))
        with asking_progress(console, tally) as tell, _told_at_the_end(console, tally, out):
            if not tally.complete:  # whoever asks would load models for nothing
                asyncio.run(_ask_all(plan, items, who_asks, _Asking(how, out, done, append, tell, tally)))
    _write_submissions(plan, items, list(done.values()), out)


@contextmanager
def _told_at_the_end(console: Console, tally: Tally, out: Path) -> Iterator[None]:
    """Say what there is, whatever ended it."""
    try:
        yield
    finally:
        console.print(f"{tally.told()}; kept in {out}", soft_wrap=True, markup=False)


@dataclass(frozen=True, slots=True)
class _Asking:
    """Where answers go: into `done` by contender and question, to the file, to whoever watches."""

    how: RunOptions
    out: Path
    done: dict[Key, SampleResult]
    append: Callable[[SampleResult], None]
    tell: Tell
    tally: Tally

    def keep(self, outcome: SolvedSample) -> None:
        """Keep an answer; raises `ModelRejected` if it is one more error than is borne."""
        record = outcome.record
        if outcome.trace is not None:
            write_whole(trace_file(self.out, record.contender, record.item_id), outcome.trace)
        self.append(record)
        self.done[record.contender, record.item_id] = record
        self.tell(record)
        if self.tally.errors >= self.how.max_errors:
            raise ModelRejected(
                f"{self.tally.errors} questions got no answer, the last because: {record.error}; all answers are kept: "
                "correct that and run again with --retry-errors, or raise --max-errors"
            )

    @property
    def spent(self) -> bool:
        return self.how.stop_at_cost is not None and self.tally.cost >= self.how.stop_at_cost

    def check_cost(self) -> None:
        """Raise `CostReached` where questions are left that are not to be begun."""
        if self.spent and not self.tally.complete:
            raise CostReached(
                f"this run cost {self.tally.cost:.4g}, and --stop-at-cost is {self.how.stop_at_cost:g}; "
                "all answers are kept: run again to go on, for as much again"
            )


async def _ask_all(
    plan: Plan, items: Sequence[Sample], who_asks: AbstractAsyncContextManager[Solve], asking: _Asking
) -> None:
    questions = [SampleInput(item.item_id, item.question, plan.items[item.item_id]) for item in items]
    async with who_asks as ask:
        for must_wait in (False, True):
            contenders = [each for each in plan.contenders if (each.frames_of is not None) == must_wait]
            await _ask_some(
                ask, _jobs([_equalled(each, asking.done) for each in contenders], questions, asking), asking
            )
            asking.check_cost()


def _equalled(contender: System, done: dict[Key, SampleResult]) -> System:
    """A contender with the frames that it is to get: as many as the other one needed on average.

    Those behind kept captions count, whoever paid for them; of videos without pictures, captions count as frames. An
    agent that has whole videos captioned needs thousands, which no model takes at once: `MOST_FRAMES` are the most.
    """
    if contender.frames_of is None:
        return contender
    bills = [each.ledger for each in done.values() if each.contender == contender.frames_of and not each.error]
    needed = fmean(bill.frames_with_kept for bill in bills) if bills else 1.0
    return replace(contender, settings={**contender.settings, "frames": min(max(1, round(needed)), MOST_FRAMES)})


def _jobs(contenders: Sequence[System], questions: Sequence[SampleInput], asking: _Asking) -> list[Job]:
    return [
        (contender, asked)
        for contender in contenders
        for asked in questions
        if (contender.name, asked.item_id) not in asking.done
    ]


async def _ask_some(ask: Solve, jobs: Sequence[Job], asking: _Asking) -> None:
    waiting: Iterator[Job] = iter(jobs)

    async def work() -> None:
        while not asking.spent and (job := next(waiting, None)) is not None:
            asking.keep(await ask(*job))

    await at_once([work() for _ in range(min(asking.how.questions, len(jobs)))])


def _write_submissions(plan: Plan, items: Sequence[Sample], records: Sequence[SampleResult], out: Path) -> None:
    """Where a benchmark keeps its answers to itself, a file a contender as its server takes it."""
    if all(item.truth.known for item in items):
        return
    for contender in plan.contenders:
        chosen = {each.item_id: each.option for each in records if each.contender == contender.name}
        content = {item.item_id: -1 if (option := chosen.get(item.item_id)) is None else option for item in items}
        write_whole(out / f"submission-{slug(contender.name)}.json", json.dumps(content, indent=1).encode())
