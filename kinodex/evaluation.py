"""Evaluate agents from Python, and show how an evaluation goes on: bars on a terminal, else lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from kinodex.agent.answer_rules import USUAL, AnswerRules
from kinodex.agent.limits.budget import Budget
from kinodex.jobs.eval.contenders import parse_contenders
from kinodex.jobs.eval.evaluation import REQUESTS, Workers, run_plan
from kinodex.jobs.eval.plan import RunRequest
from kinodex.jobs.eval.report import EvalReport, report_run
from kinodex.jobs.eval.results import ItemResult, RunContext
from kinodex.jobs.eval.run import OnResult, RunOptions, Show, Tally, items_for
from kinodex.jobs.models import ModelChoice
from kinodex.output import LINE_EVERY_S, error_console, print_every


def evaluate(
    library: str | Path,
    benchmark: str,
    annotations: str | Path,
    out: str | Path,
    *,
    agents: str | Sequence[str] = ("kino",),
    model: str = "similarity",
    base_url: str | None = None,
    budget: Budget | None = None,
    rules: AnswerRules = USUAL,
    where: str | None = None,
    limit: int | None = None,
    seed: int = 0,
    controls: bool = True,
    ablations: bool = False,
    workers: int = 1,
    page: bool = False,
    verbose: bool = False,
) -> EvalReport:
    """Run agents on a benchmark about a library's videos, and return the report.

    `benchmark` is a name as `kinodex eval check` takes it, such as "lvbench", or "own" for questions of one's own;
    `annotations` is its file or the folder that holds it. `agents` are names, or "NAME:PARAMETER=VALUE,...". Only
    videos are asked about for which the condition `where` holds. With `controls` uniform, blind and random take part
    too. A folder `out` that holds the same run is continued; `page` also writes report.html and figures, and `verbose`
    prints the progress.

    Raises:
        KinodexError: the options make no sense, the library lacks the videos, or the model's endpoint is gone; results
            until then are kept in `out`.
    """
    choice = ModelChoice(model, base_url, at_once=REQUESTS, charge_cached=True)
    specs = (agents,) if isinstance(agents, str) else agents
    contenders = parse_contenders(specs, ablations=ablations, controls=controls, has_language=choice.has_language)
    request = RunRequest(benchmark, Path(annotations), contenders, limit=limit, seed=seed, where=where)
    context = RunContext(str(library), choice, budget or Budget(), rules=rules)
    show = show_on(error_console(quiet=not verbose), Path(out))
    run_plan(request, context, Workers(workers), Path(out), RunOptions(items_for(REQUESTS)), show, page=page)
    report = report_run(Path(out))
    if page:
        from kinodex.jobs.eval.page import write_page

        write_page(report, Path(out))
    return report


def show_on(console: Console, out: Path, limit: float | None = None, every_s: float = LINE_EVERY_S) -> Show:
    """Show a run into the folder `out` on a console, and a line at its end; `limit` is its --stop-at-cost."""

    @contextmanager
    def show(tally: Tally) -> Iterator[OnResult]:
        try:
            with show_progress(console, tally, every_s) as on_result:
                yield on_result
        finally:
            over = f", more than --stop-at-cost {limit:g}" if limit is not None and tally.cost > limit else ""
            console.print(f"{tally.summary()}{over}; kept in {out}", soft_wrap=True, markup=False)

    return show


@contextmanager
def show_progress(console: Console, tally: Tally, every_s: float = LINE_EVERY_S) -> Iterator[OnResult]:
    """Give a function that counts and shows each result: bars on a terminal, else a line every `every_s` seconds."""
    if console.quiet:
        yield tally.count
    elif console.is_terminal:
        with _bars(console, tally) as on_result:
            yield on_result
    else:
        print_line = print_every(console, every_s)

        def in_lines(result: ItemResult) -> None:
            tally.count(result)
            print_line(lambda seconds: tally.summary())

        yield in_lines


@contextmanager
def _bars(console: Console, tally: Tally) -> Iterator[OnResult]:
    names, text = (TextColumn(each, markup=False) for each in ("{task.description}", "{task.fields[text]}"))
    columns = (names, BarColumn(bar_width=16), MofNCompleteColumn(), TimeElapsedColumn(), text)
    with Bar(*columns, console=console, transient=True) as bar:
        rows = {
            name: bar.add_task(name, total=total, completed=tally.done[name], start=False, text="")
            for name, total in tally.total.items()
        }
        whole = bar.add_task("all", total=sum(tally.total.values()), completed=tally.done.total(), text="")

        def on_result(result: ItemResult) -> None:
            tally.count(result)
            bar.start_task(rows[result.contender])
            bar.update(rows[result.contender], completed=tally.done[result.contender])
            bar.update(whole, completed=tally.done.total(), text=tally.cost_and_time())

        yield on_result
