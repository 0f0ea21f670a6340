"""`kinodex eval run`: ask agents the questions of a benchmark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from kinodex.agent.answer_rules import USUAL, AnswerRules
from kinodex.agent.limits.budget import UNLIMITED, Budget
from kinodex.cli import model_options
from kinodex.cli.eval.options import BenchmarkArgument, IdsOption, MapOption, OnlyOption
from kinodex.cli.eval.report import report
from kinodex.cli.from_models import with_groups
from kinodex.cli.options import LibraryArgument, WhereOption
from kinodex.index.kinds import LINE_KINDS, line_kinds
from kinodex.output import console, say


@with_groups
def eval_run(
    benchmark: BenchmarkArgument,
    library: LibraryArgument,
    annotations: Annotated[
        Path, typer.Option(exists=True, help="The benchmark's published file, or the folder that holds it.")
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="Folder for all results; a folder of the same run is continued. Kept replies cost as if new."
        ),
    ],
    agent: Annotated[
        list[str] | None,
        typer.Option(
            metavar="AGENT[:NAME=VALUE,..]", help="An agent, by name or FILE.py; may be repeated. Default: kino."
        ),
    ] = None,
    ablations: Annotated[bool, typer.Option(help="Also each agent with each of its parts switched off.")] = False,
    controls: Annotated[
        bool, typer.Option(help="Also uniform with as many frames as the first agent, blind and random.")
    ] = True,
    asking: model_options.Asking = model_options.USUAL,
    budget: Budget = UNLIMITED,
    sample: model_options.SampleOption = 0,
    hide: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help=f"Lines that no agent reads: {', '.join(LINE_KINDS)}. May be repeated."),
    ] = None,
    map_: MapOption = None,
    only: OnlyOption = None,
    ids: IdsOption = None,
    where: WhereOption = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only this many questions, drawn by --seed.")] = None,
    seed: Annotated[int, typer.Option(help="The seed of the draw by --limit.")] = 0,
    rules: AnswerRules = USUAL,
    at_once: model_options.AtOnceOption = 32,
    ray: Annotated[
        bool, typer.Option("--ray/--local", help="By Ray actors (--ray [ADDRESS]), or on this machine.")
    ] = False,
    ray_address: Annotated[str | None, typer.Option(help="The Ray cluster; implies --ray.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that run agents. Default: this one; by Ray, one a core.")
    ] = None,
    keep_captions: Annotated[
        bool, typer.Option(help="Keep captions that agents have made; else every question pays for its own.")
    ] = True,
    traces: Annotated[bool, typer.Option(help="Keep a trace of every question.")] = True,
    max_errors: Annotated[int, typer.Option(min=1, help="Stop after this many questions without an answer.")] = 20,
    max_senseless: Annotated[
        int, typer.Option(min=1, help="Stop after this many questions in a row without one usable reply to an agent.")
    ] = 10,
    stop_at_cost: model_options.StopAtCostOption = None,
    retry_errors: Annotated[bool, typer.Option(help="Retry questions without an answer in an earlier run.")] = False,
    page: Annotated[bool, typer.Option(help="Also make report.html and figures/.")] = True,
    otlp: model_options.OtlpOption = None,
    dry_run: model_options.DryRunOption = False,
) -> None:
    """Ask agents a benchmark's questions about a library's videos; the same command goes on, whatever ended it."""
    from kinodex.evaluation import show_on
    from kinodex.jobs.eval.contenders import parse_contenders
    from kinodex.jobs.eval.evaluation import Workers, run_plan
    from kinodex.jobs.eval.item_choice import parse_subset
    from kinodex.jobs.eval.plan import RunRequest
    from kinodex.jobs.eval.results import RunContext
    from kinodex.jobs.eval.run import RunOptions, items_for

    choice = replace(asking.choice(budget), sample=sample, at_once=at_once, charge_cached=True)
    context = RunContext(
        library,
        choice,
        budget,
        asking.detector,
        line_kinds(hide or ()),
        keep_captions,
        traces,
        asking.space,
        rules,
        otlp,
    )
    contenders = parse_contenders(
        agent or ["kino"], ablations=ablations, controls=controls, has_language=choice.has_language
    )
    subset = parse_subset(only or [], ids)
    request = RunRequest(benchmark, annotations, contenders, map_, limit, seed, subset, where)
    model_options.check_cost(choice, None, stop_at_cost)
    if dry_run:
        from kinodex.jobs.costs import table
        from kinodex.jobs.eval.forecast import forecast_run

        better = "`--limit 10` without --dry-run gives a past run, whose figures are better."
        say(table(forecast_run(request, context, out), advice=better))
        return
    model_options.announce(choice)
    limits = RunOptions(items_for(at_once), max_errors, retry_errors, stop_at_cost, max_senseless)
    show = show_on(console(), out, stop_at_cost)
    run_plan(request, context, Workers(workers, ray, ray_address), out, limits, show, page=page)
    report(out, page=page)
