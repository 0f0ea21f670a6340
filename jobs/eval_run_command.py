"""`kinodex eval run`: the questions of a benchmark put to agents, and the report of how they did."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobs.library_commands import LibraryArgument

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from jobs.evaluation.asking import Ask, Setting

BenchmarkArgument = Annotated[str, typer.Argument(help="A benchmark's name, such as egoschema, lvbench or sketch.")]
AnnotationsOption = Annotated[
    Path, typer.Option(exists=True, help="The benchmark's published file, or the folder that holds it.")
]


def eval_run(
    benchmark: BenchmarkArgument,
    library: LibraryArgument,
    annotations: AnnotationsOption,
    out: Annotated[Path, typer.Option(help="Folder for all that comes of it; one of the same run goes on.")],
    agent: Annotated[
        list[str] | None,
        typer.Option(metavar="AGENT[:NAME=VALUE,..]", help="Who is asked; may be repeated. Default: eea."),
    ] = None,
    ablations: Annotated[bool, typer.Option(help="Also each agent with each of its parts switched off.")] = False,
    controls: Annotated[
        bool, typer.Option(help="Also uniform with as many frames as the first agent, blind and random.")
    ] = True,
    model: Annotated[
        str, typer.Option(help="builtin, a model of an OpenAI-compatible endpoint, local:FOLDER, or replay:TRACE.")
    ] = "builtin",
    base_url: Annotated[str | None, typer.Option(help="The endpoint, http://HOST:PORT/v1.")] = None,
    models: Annotated[Path | None, typer.Option(help="TOML file with a model for each role instead.")] = None,
    input_price: Annotated[float, typer.Option(help="Money for a million input tokens.")] = 0.0,
    output_price: Annotated[float, typer.Option(help="Money for a million output tokens.")] = 0.0,
    cache: Annotated[
        bool, typer.Option(help="Keep replies on disk and use them again; the figures count their cost as if anew.")
    ] = True,
    sample: Annotated[int, typer.Option(help="Tells repetitions apart: another number asks models anew.")] = 0,
    detector: Annotated[
        str | None, typer.Option(help="Finds things that the library's detections do not tell: a hub id or a folder.")
    ] = None,
    subtitles: Annotated[bool, typer.Option(help="Whether agents may read what is said.")] = True,
    map_: Annotated[
        Path | None, typer.Option("--map", exists=True, help="CSV or JSON: the library's names for the videos.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many questions, drawn by --seed.")] = None,
    seed: Annotated[int, typer.Option(help="Which questions --limit draws.")] = 0,
    max_frames: Annotated[int | None, typer.Option(help="Budget of a question: different frames shown.")] = None,
    max_rounds: Annotated[int | None, typer.Option(help="Budget: rounds, if the agent allows as many.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Budget: tokens in and out.")] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Budget: seconds.")] = None,
    max_cost: Annotated[float | None, typer.Option(help="Budget: money, at the prices given.")] = None,
    at_once: Annotated[int, typer.Option(min=1, help="Requests to a model under way together.")] = 32,
    ray: Annotated[
        bool, typer.Option("--ray/--local", help="By Ray actors (--ray [ADDRESS]), or on this machine.")
    ] = False,
    ray_address: Annotated[str | None, typer.Option(help="The Ray cluster; implies --ray.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that ask. Default: this one; by Ray, one a core.")
    ] = None,
    keep_captions: Annotated[
        bool, typer.Option(help="Keep captions that agents have made; else every question pays for its own.")
    ] = True,
    traces: Annotated[bool, typer.Option(help="Keep a trace of every question.")] = True,
    max_errors: Annotated[int, typer.Option(min=1, help="Stop after so many questions without an answer.")] = 20,
    retry_errors: Annotated[bool, typer.Option(help="Ask again what got no answer in an earlier run.")] = False,
    page: Annotated[bool, typer.Option(help="Also make report.html and figures/.")] = True,
) -> None:
    """Ask agents the questions of a benchmark about a library's videos, and report how they did.

    Whatever ends it, the same command goes on with it: every answer is kept as soon as it is there.
    """
    from agent.ledger import Budget
    from jobs.ask_command import check_cost
    from jobs.eval_report_command import report
    from jobs.evaluation.asking import Setting
    from jobs.evaluation.contenders import contenders
    from jobs.evaluation.planning import Wanted, planned
    from jobs.evaluation.run import How, run, under_way
    from jobs.models import BUILTIN, ModelChoice
    from jobs.show import console

    choice = ModelChoice(model, base_url, models, input_price, output_price, cache, sample, at_once, charge_cached=True)
    check_cost(choice, max_cost)
    budget = Budget(max_rounds, max_frames, max_tokens, max_seconds, max_cost)
    speechless = models is None and model == BUILTIN
    entered = contenders(agent or ["eea"], ablations=ablations, controls=controls, language=not speechless)
    setting = Setting(library, choice, budget, detector, subtitles, keep_captions, traces)
    plan, items = planned(Wanted(benchmark, annotations, entered, map_, limit, seed), setting)
    who_asks = _who_asks(setting, ray or ray_address is not None, workers, ray_address)
    run(plan, items, who_asks, out, console(), How(under_way(at_once), max_errors, retry_errors))
    report(out, page=page)


def _who_asks(
    setting: Setting, on_ray: bool, workers: int | None, address: str | None
) -> AbstractAsyncContextManager[Ask]:
    if on_ray:
        from jobs.evaluation.ray_tasks import ray_asker

        return ray_asker(setting, workers, address)
    if workers is not None and workers > 1:
        from jobs.evaluation.processes import process_asker

        return process_asker(setting, workers)
    from jobs.evaluation.asking import asker

    return asker(setting)
