"""`kinodex eval run`: run agents on the questions of a benchmark, and report their results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jobs.cli.eval.check import BenchmarkArgument, IdsOption, MapOption, OnlyOption
from jobs.cli.options import answer_rules as ending
from jobs.cli.options import models as options
from jobs.cli.options.library import LibraryArgument
from jobs.cli.options.telemetry import OtlpOption

AnnotationsOption = Annotated[
    Path, typer.Option(exists=True, help="The benchmark's published file, or the folder that holds it.")
]
OutOption = Annotated[
    Path,
    typer.Option(help="Folder for all results; a folder of the same run is continued. Kept replies cost as if new."),
]
AgentsOption = Annotated[
    list[str] | None,
    typer.Option(metavar="AGENT[:NAME=VALUE,..]", help="An agent, by name or FILE.py; may be repeated. Default: eea."),
]
ControlsOption = Annotated[
    bool, typer.Option(help="Also uniform with as many frames as the first agent, blind and random.")
]
RayOption = Annotated[bool, typer.Option("--ray/--local", help="By Ray actors (--ray [ADDRESS]), or on this machine.")]
WorkersOption = Annotated[
    int | None, typer.Option(min=1, help="Processes that run agents. Default: this one; by Ray, one a core.")
]
SenselessOption = Annotated[
    int, typer.Option(min=1, help="Stop after so many questions in a row without one usable reply to an agent.")
]
KeepCaptionsOption = Annotated[
    bool, typer.Option(help="Keep captions that agents have made; else every question pays for its own.")
]


def eval_run(
    benchmark: BenchmarkArgument,
    library: LibraryArgument,
    annotations: AnnotationsOption,
    out: OutOption,
    agent: AgentsOption = None,
    ablations: Annotated[bool, typer.Option(help="Also each agent with each of its parts switched off.")] = False,
    controls: ControlsOption = True,
    model: options.ModelOption = "builtin",
    base_url: options.BaseUrlOption = None,
    models: options.ModelsOption = None,
    input_price: options.InputPriceOption = 0.0,
    output_price: options.OutputPriceOption = 0.0,
    cache: options.CacheOption = True,
    sample: options.SampleOption = 0,
    detector: options.DetectorOption = None,
    space: options.SpaceOption = None,
    subtitles: Annotated[bool, typer.Option(help="Let agents read what is said.")] = True,
    screen_text: Annotated[bool, typer.Option(help="Let agents read text on screen.")] = True,
    map_: MapOption = None,
    only: OnlyOption = None,
    ids: IdsOption = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many questions, drawn by --seed.")] = None,
    seed: Annotated[int, typer.Option(help="The seed of the draw by --limit.")] = 0,
    max_frames: options.MaxFramesOption = None,
    max_rounds: options.MaxRoundsOption = None,
    max_tokens: options.MaxTokensOption = None,
    max_seconds: options.MaxSecondsOption = None,
    max_cost: options.MaxCostOption = None,
    force_choice: ending.ForceChoiceOption = False,
    early_insufficient: ending.EarlyInsufficientOption = False,
    verify: ending.VerifyOption = False,
    anyway: ending.AnywayOption = False,
    at_once: options.AtOnceOption = 32,
    ray: RayOption = False,
    ray_address: Annotated[str | None, typer.Option(help="The Ray cluster; implies --ray.")] = None,
    workers: WorkersOption = None,
    keep_captions: KeepCaptionsOption = True,
    traces: Annotated[bool, typer.Option(help="Keep a trace of every question.")] = True,
    max_errors: Annotated[int, typer.Option(min=1, help="Stop after so many questions without an answer.")] = 20,
    max_senseless: SenselessOption = 10,
    stop_at_cost: options.StopAtCostOption = None,
    retry_errors: Annotated[bool, typer.Option(help="Retry questions without an answer in an earlier run.")] = False,
    page: Annotated[bool, typer.Option(help="Also make report.html and figures/.")] = True,
    otlp: OtlpOption = None,
    dry_run: options.DryRunOption = False,
) -> None:
    """Ask agents a benchmark's questions about a library's videos; the same command goes on, whatever ended it."""
    from jobs.cli.eval import run_parts as parts

    choice = parts.choose_models(model, base_url, models, (input_price, output_price), cache, sample, at_once, anyway)
    budget = parts.Budget(max_rounds, max_frames, max_tokens, max_seconds, max_cost)
    rules = ending.answer_rules(force_choice, early_insufficient, verify)
    may_read = subtitles, keep_captions, traces, space, rules, otlp, screen_text
    context = parts.RunContext(library, choice, budget, detector, *may_read)
    systems = parts.choose_systems(agent, ablations, controls, choice)
    request = parts.RunRequest(benchmark, annotations, systems, map_, limit, seed, parts.subset(only, ids))
    limits = parts.limits(at_once, max_errors, max_senseless, retry_errors, stop_at_cost)
    parts.run(request, context, parts.Workers(workers, ray, ray_address), limits, out, page, dry_run)
