"""The run of a plan: its items solved by its contenders, every result written at once.

Whatever ends a run, the same command continues it: an item that has a result is not solved again. A contender that gets
as many frames as another one needed starts when that one is done with all items. An item that the endpoint cannot
bear is one item's failure; the endpoint is gone when different ones fail in a row. Whatever ends a run, no further
item begins, and those in progress are awaited and kept: they are paid for.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean

from kinodex.agent.errors import ModelRejected, NoUsableReply
from kinodex.index.durations import duration
from kinodex.jobs.batch import Batch, Limits
from kinodex.jobs.eval import folder
from kinodex.jobs.eval.contenders import Contender
from kinodex.jobs.eval.items import Item
from kinodex.jobs.eval.plan import check_same
from kinodex.jobs.eval.results import ItemInput, ItemResult, Solve, SolvedItem
from kinodex.jobs.json_files import write_whole
from kinodex.jobs.models import run_now

MAX_FRAMES = 256
Key = tuple[str, str]
"""A contender's name and an item's id."""
Job = tuple[Contender, ItemInput]
OnResult = Callable[[ItemResult], None]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Limits of a run. `items` are in progress together; after `max_errors` items without an answer the run ends.

    `retry_errors` solves the failed items of earlier runs again, and those without one usable reply; after
    `max_senseless` of these in a row, of one contender, the run ends. `stop_at_cost` is what a run may cost, with what
    the items in progress are expected to: as much as the costliest of that contender, of which the first goes alone.
    """

    items: int = 64
    max_errors: int = 20
    retry_errors: bool = False
    stop_at_cost: float | None = None
    max_senseless: int = 10


def items_for(requests: int) -> int:
    """Return the number of items in progress that keep this many requests in flight.

    While one is prepared, another waits.
    """
    return 2 * requests


@dataclass(slots=True)
class Tally:
    """Items by contender: `total`, and `done` with those of earlier runs; the other figures are of this run alone."""

    total: Mapping[str, int]
    done: Counter[str]
    fresh: int = 0
    errors: int = 0
    cost: float = 0.0
    senseless: Counter[str] = field(default_factory=Counter)
    """Items in a row without one usable reply, by contender."""
    began: float = field(default_factory=time.monotonic)

    def count(self, result: ItemResult) -> None:
        """Add a result of this run."""
        self.done[result.contender] += 1
        self.fresh += 1
        self.errors += bool(result.error)
        self.cost += result.ledger.cost
        self.senseless[result.contender] = self.senseless[result.contender] + 1 if result.senseless else 0

    @property
    def complete(self) -> bool:
        """True if every contender has a result for every item."""
        return self.done.total() == sum(self.total.values())

    def summary(self) -> str:
        """Summarize the run in one line."""
        done, total = self.done.total(), sum(self.total.values())
        started = [name for name in self.total if 0 < self.done[name] < self.total[name]]
        counts = [f"{done:,} of {total:,} answers", *(f"{name} {self.done[name]:,}" for name in started)]
        return ", ".join([*counts, *filter(None, [self.cost_and_time()])])

    def cost_and_time(self) -> str:
        """Describe the cost of this run, its items without an answer, and the time left."""
        parts = [f"cost {self.cost:.2f}"] if self.cost else []
        if self.errors:
            parts.append(f"{self.errors:,} without an answer")
        if self.fresh and not self.complete:
            left = sum(self.total.values()) - self.done.total()
            parts.append(f"{duration((time.monotonic() - self.began) * left / self.fresh)} left")
        return ", ".join(parts)


Show = Callable[[Tally], AbstractContextManager[OnResult]]
"""Shows a run as it goes on: a context that gives a function which counts each result, and shows the end."""


def unseen(tally: Tally) -> AbstractContextManager[OnResult]:
    """Count results, and show nothing."""
    return nullcontext(tally.count)


def run(
    plan: folder.RunPlan,
    items: Sequence[Item],
    solver: AbstractAsyncContextManager[Solve],
    out: Path,
    options: RunOptions,
    show: Show = unseen,
) -> None:
    """Solve all items of a plan that have no result yet, and write the results into the folder `out`.

    Raises `UsageError` if `out` holds another run or cannot be written, and what ends a run (`_RunState`); all results
    until then are kept.
    """
    # First: of two runs that begin at once, the writer's plan counts.
    with folder.open_for_append(out / folder.ANSWERS) as append:
        if (out / folder.PLAN).exists():
            check_same(folder.read_plan(out), plan, out)
        else:
            folder.begin_run(out, plan, items)
        earlier = folder.read_results(out)
        kept = [each for each in earlier if not is_asked_again(each, options.retry_errors)]
        done = {(each.contender, each.item_id): each for each in kept}
        failed = {(each.contender, each.item_id) for each in earlier if each.unreachable}
        tally = Tally({each.name: len(items) for each in plan.contenders}, Counter(each.contender for each in kept))
        with show(tally) as on_result:
            if not tally.complete:  # a solver would load models for nothing
                asking = frozenset(each.name for each in plan.contenders if each.find_variant().roles)
                state = _RunState(options, out, done, failed, asking, append, on_result, tally)
                run_now(_solve_all(plan, items, solver, state))
    _write_submissions(plan, items, list(done.values()), out)


def is_asked_again(result: ItemResult, retry_errors: bool = False) -> bool:
    """Return True for a result of an earlier run that the next one asks for again.

    A server that failed may do better.
    """
    return result.unreachable or (retry_errors and bool(result.error or result.senseless))


@dataclass(slots=True)
class _RunState:
    """The destinations of results: into `done`, into the file, and to the progress display.

    `failed` are items to which the endpoint gave no reply in an earlier run, `asking` the names of the contenders that
    ask the models of the run: those of others say nothing of an endpoint.
    """

    options: RunOptions
    out: Path
    done: dict[Key, ItemResult]
    failed: set[Key]
    asking: frozenset[str]
    append: OnResult
    on_result: OnResult
    tally: Tally
    batch: Batch[Job] = field(init=False)

    def __post_init__(self) -> None:
        """Learn from the results of earlier runs what an item may cost, and that the endpoint gave replies."""
        limits = Limits(self.options.items, self.options.stop_at_cost)
        self.batch = Batch(limits, "questions", "all answers are kept", kind=lambda job: job[0].name)
        for each in self.done.values():
            if not each.error:
                self.batch.purse.learn(each.contender, each.ledger.cost)
            if each.contender in self.asking and (each.error or each.ledger.calls) and not each.unreachable:
                self.batch.heard()

    def keep(self, job: Job, solved: SolvedItem) -> None:
        """Write a result, and find out if it is the one too many that ends the run."""
        result = solved.result
        if solved.trace is not None:
            write_whole(folder.trace_file(self.out, result.contender, result.item_id), solved.trace)
        self.append(result)
        self.done[result.contender, result.item_id] = result
        self.on_result(result)
        self.batch.spend(job, result.ledger.cost, is_typical=not result.error)
        if result.unreachable:
            self.batch.unheard(result.item_id, result.error)
        elif result.contender in self.asking and (
            result.error or result.ledger.calls > result.ledger.cached_calls  # else nothing was sent
        ):
            self.batch.heard()
        if one_too_many := self._one_too_many(result):
            self.batch.stop(one_too_many)

    def _one_too_many(self, result: ItemResult) -> ModelRejected | NoUsableReply | None:
        if self.tally.errors >= self.options.max_errors:
            return ModelRejected(
                f"{self.tally.errors} questions got no answer, the last because: {result.error}; all answers are kept: "
                "correct that and run again with --retry-errors, or raise --max-errors"
            )
        if self.tally.senseless[result.contender] >= self.options.max_senseless:
            return NoUsableReply(
                f"{result.contender} got no usable reply to {self.options.max_senseless} questions in a row; the last: "
                f"{result.reason}; all answers are kept: correct that and run again with --retry-errors, or raise "
                "--max-senseless"
            )
        return None


async def _solve_all(
    plan: folder.RunPlan, items: Sequence[Item], solver: AbstractAsyncContextManager[Solve], state: _RunState
) -> None:
    inputs = [ItemInput(each.item_id, each.question, plan.items[each.item_id]) for each in items]
    async with solver as solve:
        for must_wait in (False, True):
            contenders = [each for each in plan.contenders if (each.frames_of is not None) == must_wait]
            matched = [_with_equal_frames(each, state.done) for each in contenders]
            jobs = [(each, one) for each in matched for one in inputs if (each.name, one.item_id) not in state.done]
            jobs.sort(key=lambda job: (job[0].name, job[1].item_id) in state.failed)
            await state.batch.run_here(jobs, lambda job: solve(*job), state.keep)


def _with_equal_frames(contender: Contender, done: Mapping[Key, ItemResult]) -> Contender:
    """Give a control the frames that the contender it follows needed on average, at most `MAX_FRAMES`.

    Frames behind kept captions count, whichever item paid for them; of videos without pictures, captions do.
    """
    if contender.frames_of is None:
        return contender
    ledgers = [each.ledger for each in done.values() if each.contender == contender.frames_of and not each.error]
    needed = fmean(ledger.frames_with_kept for ledger in ledgers) if ledgers else 1.0
    return replace(contender, settings={**contender.settings, "frames": min(max(1, round(needed)), MAX_FRAMES)})


def _write_submissions(plan: folder.RunPlan, items: Sequence[Item], results: Sequence[ItemResult], out: Path) -> None:
    """Write a file a contender as the benchmark's server takes it, if the benchmark does not publish its answers."""
    if all(each.truth.known for each in items):
        return
    for contender in plan.contenders:
        chosen = {each.item_id: each.option for each in results if each.contender == contender.name}
        content = {each.item_id: -1 if (option := chosen.get(each.item_id)) is None else option for each in items}
        write_whole(out / f"submission-{folder.slug(contender.name)}.json", json.dumps(content, indent=1).encode())
