"""A run of an evaluation: its plan, and its items solved by its contenders, every result written at once.

Whatever ends a run, the same command continues it: an item that has a result is not solved again. A contender that gets
as many frames as another one needed starts when that one is done with all items. An item that the endpoint cannot
bear is one item's failure; the endpoint is gone when different ones fail in a row. Whatever ends a run, no further
item begins, and those in progress are awaited and kept: they are paid for.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields, replace
from importlib.metadata import version
from pathlib import Path
from statistics import fmean

from kinodex.agent.catalogue import check_fit
from kinodex.agent.errors import ModelRejected, NoUsableReply
from kinodex.agent.variants.settings import with_settings
from kinodex.index.durations import duration
from kinodex.index.kinds import KindName
from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.jobs.batch import Batch, Limits
from kinodex.jobs.errors import UsageError, check_packages
from kinodex.jobs.eval import folder
from kinodex.jobs.eval.benchmarks import annotation_files, read_benchmark
from kinodex.jobs.eval.contenders import Contender, ItemInput, ItemResult, RunContext, Solve, SolvedItem
from kinodex.jobs.eval.items import (
    Item,
    Subset,
    check_own,
    complete_items,
    draw_items,
    match_videos,
    read_id_map,
    select_items,
)
from kinodex.jobs.json_files import write_whole
from kinodex.jobs.models import (
    ModelChoice,
    check_known_world,
    check_sight,
    describe_models,
    describe_prices,
    local_contents,
    run_now,
)
from kinodex.jobs.open import find_filled_space

# The plan: the items whose videos the library holds, the contenders, their models and limits.

MAY_DIFFER = {"title", "annotations", "questions", "missing", "problems", "index_cost"}
"""Fields of a plan in which two equal runs may differ: where files are, and what else the library holds."""
FIELD_LABELS = {
    "annotations_sha256": "hash of the annotations",
    "contenders": "list of agents",
    "keep_captions": "keeping captions",
    "models": "list of models",
    "items": "set of questions",
    "rules": "rules of answers",
    "at_once": "number of requests at once",
    "prices": "list of prices",
    "contents": "content of the files that answer",
    "hide": "list of hidden lines",
}
"""Names of a plan's fields in messages, where a field's own name is no plain word."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The items of a benchmark that a run asks, and its contenders. `id_map` is a file with the library's names."""

    benchmark: str
    annotations: Path
    contenders: tuple[Contender, ...]
    id_map: Path | None = None
    limit: int | None = None
    seed: int = 0
    subset: Subset = field(default_factory=Subset)
    where: str | None = None
    """Only questions about videos for which this condition holds."""


def make_plan(request: RunRequest, context: RunContext) -> tuple[folder.RunPlan, tuple[Item, ...]]:
    """Make the plan of a run, and select its items, in the benchmark's order, completed as `complete_items` does.

    Raises `UsageError` if no item is left or the library lacks the space, `SpaceMismatch` if a video has no vectors in
    it, and the error of an agent that cannot run like this.
    """
    benchmark = read_benchmark(request.benchmark, request.annotations)
    library = Library.open(context.library)
    rows = {row.video_id: row for row in library.videos()}
    id_map = None if request.id_map is None else read_id_map(request.id_map)
    candidates = select_items(benchmark.items, request.subset)
    matches = match_videos(candidates, list(rows.values()), id_map, benchmark.episodes)
    check_own(matches, benchmark.name, list(rows.values()))
    allowed = library.where(request.where).video_ids()
    known = [each for each in candidates if each.video in matches.videos]
    found = [each for each in known if allowed.issuperset(matches.videos[each.video])]
    if known and not found:
        raise UsageError(f"{request.annotations} asks about no video for which {request.where} holds; widen it")
    items = draw_items(found, request.limit, request.seed)
    if not items:
        raise UsageError(
            f"{context.library} holds none of the {len(matches.missing)} videos that {request.annotations} asks about; "
            f"`kinodex eval check {request.benchmark} {request.annotations} {context.library}` gives the reasons, and "
            "--map FILE can name the videos"
        )
    video_ids = {each.item_id: matches.videos[each.video] for each in items}
    videos = [rows[each] for each in dict.fromkeys(each for ids in video_ids.values() for each in ids)]
    completed, problems = complete_items(items, video_ids, rows, id_map)
    space = library.space() if context.space is None else find_filled_space(library, context.space, videos)
    captions = library.additions.counts("captions")
    for contender in request.contenders:
        _check_system(contender, context.choice, space, videos)
    _check_leaves_something(library, context.hide, videos)
    models = describe_models(context.choice)
    files = annotation_files(request.benchmark, request.annotations)
    captioned = sum(captions.get(row.video_id, 0) for row in videos)
    hours, frames = sum(row.duration_s for row in videos) / 3600, sum(row.frames for row in videos)
    plan = folder.RunPlan(
        benchmark=benchmark.name,
        title=benchmark.title,
        annotations=str(request.annotations),
        annotations_sha256=hashlib.sha256(b"".join(each.read_bytes() for each in files)).hexdigest(),
        scoring=benchmark.scoring,
        library=library.uri,
        space=str(space),
        contenders=request.contenders,
        models=models if context.detector is None else {**models, "detector": context.detector},
        budget=context.budget,
        hide=context.hide,
        keep_captions=context.keep_captions,
        limit=request.limit,
        seed=request.seed,
        questions=len(benchmark.items),
        items=video_ids,
        missing=matches.missing,
        problems=(*benchmark.problems, *problems),
        index_cost=folder.IndexCost(len(videos), hours, frames, captioned),
        version=version("kinodex"),
        part=str(request.subset),
        rules=context.rules,
        at_once=context.choice.at_once if context.choice.may_use_endpoints else None,
        prices=describe_prices(context.choice),
        states=library.additions.states([row.video_id for row in videos], space.digest),
        contents=local_contents(context.choice, context.detector),
    )
    return plan, completed


def check_same(begun: folder.RunPlan, now: folder.RunPlan, run: Path) -> None:
    """Raise `UsageError` unless the run that a folder holds asks the same as the plan of now."""
    names = [each.name for each in fields(folder.RunPlan) if each.name not in MAY_DIFFER]
    different = [name for name in names if folder.comparable(begun, name) != folder.comparable(now, name)]
    if different:
        changes = "; ".join(_change(begun, now, name) for name in different)
        raise UsageError(
            f"{run} holds another run: {changes}; give the same options to continue it, or another --out for a new run"
        )


def _check_system(contender: Contender, choice: ModelChoice, space: Fingerprint, videos: Sequence[VideoRow]) -> None:
    """Refuse at once what would end the run in the middle of it, or make its answers nonsense."""
    agent = contender.find_variant()
    check_sight(choice, agent)
    if agent.roles:
        check_known_world(choice, space, has_pictures=any(row.frames for row in videos))
    with_settings(agent.parameters(max(row.duration_s for row in videos)), contender.settings)
    check_fit(agent, has_language=choice.has_language, unpictured=[row.title for row in videos if row.frames == 0])


def _check_leaves_something(library: Library, hide: Sequence[KindName], videos: Sequence[VideoRow]) -> None:
    """Refuse to hide all that the library holds of a video: without frames, agents read its captions or transcript."""
    words: tuple[KindName, ...] = ("captions", "speech")
    left = [kind for kind in words if kind not in hide]
    empty = [row for row in (videos if hide else ()) if row.frames == 0 and not library.lines.rows(row.video_id, left)]
    if empty:
        raise UsageError(
            f"got --hide {' --hide '.join(hide)}, but of {len(empty)} of the {len(videos)} videos, such as "
            f"{empty[0].title}, the library holds neither frames nor other words; hide less, or import captions"
        )


def _change(begun: folder.RunPlan, now: folder.RunPlan, name: str) -> str:
    if name == "states":
        changed = sorted(id_ for id_, state in begun.states.items() if now.states.get(id_) != state)
        return f"{len(changed)} of the videos changed in the library since, such as {changed[0]}"
    label = FIELD_LABELS.get(name, name)
    was, is_now = _in_words(begun, name), _in_words(now, name)
    return f"{label} was {was} and is now {is_now}" if was != is_now else f"{label} is not the same ({was})"


def _in_words(plan: folder.RunPlan, name: str) -> str:
    value = getattr(plan, name)
    if name == "contenders":
        return ", ".join(each.name + (f" (code {each.code})" if each.code else "") for each in plan.contenders)
    if name == "models":
        return ", ".join(f"{role}: {model}" for role, model in plan.models.items())
    if name == "hide":
        return ", ".join(plan.hide) or "empty"
    if name == "budget":
        limits = [(limit.name, getattr(plan.budget, limit.name)) for limit in fields(plan.budget)]
        units = {"cost": "in cost"}
        return ", ".join(f"{value} {units.get(name, name)}" for name, value in limits if value is not None) or "none"
    if name == "rules":
        rules = folder.comparable(plan, name)
        ending = "early" if rules.early_insufficient else "usual"
        ending = "an answer has to be chosen" if rules.force_choice else ending
        return f"{ending}, verified" if rules.verify else ending
    if name == "prices":
        return "; ".join(f"{role}: {price}" for role, price in plan.prices.items()) or "none"
    if name == "items":
        return f"{len(plan.items)} questions"
    if isinstance(value, bool):
        return "on" if value else "off"
    return "none" if value is None else str(value)


# The run of a plan.

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
    """Number of items in progress that keep so many requests in flight: while one is prepared, another waits."""
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
                run_now(
                    _solve_all(plan, items, solver, _RunState(options, out, done, failed, append, on_result, tally))
                )
    _write_submissions(plan, items, list(done.values()), out)


def is_asked_again(result: ItemResult, retry_errors: bool = False) -> bool:
    """True for a result of an earlier run that the next one asks for again: a server that failed may do better."""
    return result.unreachable or (retry_errors and bool(result.error or result.senseless))


@dataclass(slots=True)
class _RunState:
    """The destinations of results: into `done`, into the file, and to the progress display.

    `failed` are items to which the endpoint gave no reply in an earlier run.
    """

    options: RunOptions
    out: Path
    done: dict[Key, ItemResult]
    failed: set[Key]
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
            if (each.error or each.ledger.calls) and not each.unreachable:
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
        elif result.error or result.ledger.calls > result.ledger.cached_calls:  # else nothing was sent
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


# One evaluation from beginning to end: plan, solve, report.

REQUESTS = 32
"""Requests to a model in flight together, by default."""


@dataclass(frozen=True, slots=True)
class Workers:
    """The processes that solve items: None is this process alone; with `ray` actors, by default one a core."""

    count: int | None = None
    ray: bool = False
    address: str | None = None

    def open_solver(self, context: RunContext) -> AbstractAsyncContextManager[Solve]:
        """Open a function that solves items in these processes."""
        if self.ray or self.address is not None:
            from kinodex.jobs.eval.solvers import ray_solver

            return ray_solver(context, self.count, self.address)
        if self.count is not None and self.count > 1:
            from kinodex.jobs.eval.processes import process_solver

            return process_solver(context, self.count)
        from kinodex.jobs.eval.solve import open_solver

        return open_solver(context)


def run_plan(
    request: RunRequest,
    context: RunContext,
    workers: Workers,
    out: Path,
    options: RunOptions,
    show: Show = unseen,
    *,
    page: bool = False,
) -> None:
    """Plan a run and solve its items, or continue it; raises as `make_plan` and `run` do, or for a missing package."""
    check_packages("scipy", *(["matplotlib"] if page else []))
    plan, items = make_plan(request, context)
    run(plan, items, workers.open_solver(context), out, options, show)
