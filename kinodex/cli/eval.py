"""The commands of `kinodex eval`: parse options, call `kinodex.jobs.eval`, print.

May import everything; what they need is imported when they run.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from kinodex.cli import options
from kinodex.cli import options as ending
from kinodex.cli import sketch as eval_simulate_command
from kinodex.cli.options import (
    AtOnceOption,
    BaseUrlOption,
    CacheOption,
    JsonOption,
    LibraryArgument,
    ModelsOption,
    OtlpOption,
    SampleOption,
)

if TYPE_CHECKING:
    from rich.console import Console

    from kinodex.index.library import Library
    from kinodex.jobs.eval.moments import Cases, Pictures, Result, Standing
    from kinodex.jobs.eval.samples import Benchmark, MomentBenchmark
    from kinodex.jobs.eval.tables import Scores
    from kinodex.jobs.models import ModelChoice

# `kinodex eval check`: list the questions of an annotation file, its defects, and its videos that a library has.

LISTED = 20

BenchmarkArgument = Annotated[str, typer.Argument(help="A benchmark's name, such as egoschema, lvbench or sketch.")]
MapOption = Annotated[
    Path | None, typer.Option("--map", exists=True, help="CSV or JSON: the library's names for the videos.")
]

OnlyOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="GROUP=VALUE",
        help="Only these questions, such as duration=long. Repeated: of one group any value, of several groups all.",
    ),
]
IdsOption = Annotated[
    Path | None, typer.Option(exists=True, dir_okay=False, help="Only the questions in this file, an id a line.")
]


def check(
    benchmark: BenchmarkArgument,
    annotations: Annotated[
        Path, typer.Argument(exists=True, help="The benchmark's published file, or the folder that holds it.")
    ],
    library: Annotated[str | None, typer.Argument(help="A library whose videos it is to be asked about.")] = None,
    map_: MapOption = None,
    only: OnlyOption = None,
    ids: IdsOption = None,
    json: JsonOption = False,
) -> None:
    """Read a benchmark; list its questions by group, its defective rows, and the videos that a library lacks."""
    from kinodex.jobs.eval.benchmarks import annotation_files, find_benchmark, read_benchmark
    from kinodex.jobs.eval.samples import parse_subset, select_samples
    from kinodex.jobs.output import console, print_json

    part = parse_subset(only or [], ids)
    read = read_benchmark(benchmark, annotations)
    read = replace(read, samples=select_samples(read.samples, part))
    found: dict[str, Any] = {
        "benchmark": read.name,
        "title": read.title,
        "part": str(part),
        "files": list(map(str, annotation_files(benchmark, annotations))),
        "licence": find_benchmark(benchmark).licence,
        "had_from": find_benchmark(benchmark).had_from,
        **_counts(read),
        "problems": [{"where": each.where, "what": each.what} for each in read.problems],
    }
    if library is not None:
        found["library"] = _in_library(read, library, map_)
    if json:
        print_json(found)
    else:
        _show(found, console())


def _counts(read: Benchmark) -> dict[str, Any]:
    groups: dict[str, Counter[str]] = {}
    for item in read.samples:
        for breakdown, names in item.groups.items():
            groups.setdefault(breakdown, Counter()).update(names)
    return {
        "questions": len(read.samples),
        "videos": len({item.video for item in read.samples}),
        "with_truth": sum(item.truth.known for item in read.samples),
        "with_evidence": sum(bool(item.truth.evidence) for item in read.samples),
        "scoring": read.scoring,
        "options": dict(sorted(Counter(len(item.question.options) for item in read.samples).items())),
        "groups": {breakdown: dict(counts.most_common()) for breakdown, counts in groups.items()},
    }


def _in_library(read: Benchmark, library: str, id_map: Path | None) -> dict[str, Any]:
    from dataclasses import asdict

    from kinodex.index.library import Library
    from kinodex.jobs.eval.samples import match_videos, read_id_map

    names = read_id_map(id_map) if id_map else None
    matching = match_videos(read.samples, Library.open(library).videos(), names, read.episodes)
    return {
        "uri": library,
        "found": len(matching.videos),
        "questions": len(read.samples) - sum(each.questions for each in matching.missing),
        "missing": [asdict(each) for each in matching.missing],
    }


def _show(found: dict[str, Any], out: Console) -> None:
    from rich.markup import escape

    from kinodex.jobs.eval.samples import WHOLE
    from kinodex.jobs.output import plain_table

    out.print(f"[bold]{found['title']}[/], {escape(', '.join(found['files']))}", soft_wrap=True)
    out.print(f"licence: {found['licence']}; source: {found['had_from']}")
    if found["part"] != WHOLE:
        out.print(f"part: {found['part']}", soft_wrap=True, markup=False)
    counts = " or ".join(map(str, found["options"]))
    scored = "answered freely, judged 0 to 3" if found["scoring"] == "judge" else f"{counts} options"
    out.print(
        f"{found['questions']:,} questions about {found['videos']:,} videos, {scored}; "
        f"{found['with_truth']:,} with a known answer, {found['with_evidence']:,} with the seconds that show it"
    )
    table = plain_table("breakdown", "group", "questions")
    table.columns[-1].justify = "right"
    for breakdown, groups in found["groups"].items():
        for group, questions in groups.items():
            table.add_row(escape(breakdown), escape(group), f"{questions:,}")
    if found["groups"]:
        out.print(table)
    _list(out, "noted", [f"{each['where']}: {each['what']}" for each in found["problems"]])
    if "library" in found:
        held = found["library"]
        out.print(
            f"{escape(held['uri'])} has {held['found']:,} of {found['videos']:,} videos, "
            f"for {held['questions']:,} of {found['questions']:,} questions"
        )
        _list(out, "missing", [f"{each['video']} ({each['questions']}): {each['why']}" for each in held["missing"]])


def _list(out: Console, what: str, lines: list[str]) -> None:
    from rich.markup import escape

    if lines:
        out.print(f"{what}: {len(lines):,}")
    for line in lines[:LISTED]:
        out.print(f"  {escape(line)}", soft_wrap=True)
    if len(lines) > LISTED:
        out.print(f"  and {len(lines) - LISTED:,} more; --json has all")


# `kinodex eval import`: predictions made elsewhere as a contender of a run.


def import_answers(
    run: RunArgument,
    predictions: Annotated[
        Path,
        typer.Argument(
            exists=True,
            dir_okay=False,
            help="JSON of predictions by question id or of a list, JSON lines (also lmms-eval's samples), CSV or TSV "
            "(also VLMEvalKit's results), or parquet.",
        ),
    ],
    name: Annotated[str | None, typer.Option(help="Name of the contender. Default: that of the file.")] = None,
    id_field: Annotated[str | None, typer.Option(help="Field of the question's id. Default: the usual names.")] = None,
    prediction_field: Annotated[
        str | None, typer.Option(help="Field of the prediction. Default: the usual names.")
    ] = None,
    first: Annotated[
        int | None,
        typer.Option(min=0, max=1, help="Predictions are numbers that count the options from here. Default: 0."),
    ] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Leave out questions without a prediction; else they count as wrong.")
    ] = False,
    replace: Annotated[bool, typer.Option("--replace", help="In the place of an earlier import of this name.")] = False,
    markdown: MarkdownOption = False,
    page: PageOption = True,
) -> None:
    """Take published or foreign predictions as a contender of a run, then report.

    They are read as agents' answers are; what they cost and what they saw is not known.
    """
    import sys

    from kinodex.jobs.eval.folder import ImportRequest, import_predictions

    request = ImportRequest(predictions, name, id_field, prediction_field, first, partial, replace)
    found = import_predictions(run, request)
    for note in found.notes:
        print(note, file=sys.stderr)
    report(run, markdown, page=page)


# `kinodex eval judge`: score free-form answers by a model.

SHOW_EVERY = 100


def judge(
    run: RunArgument,
    model: Annotated[str, typer.Option(help="The model that judges, of an OpenAI-compatible endpoint.")] = "builtin",
    base_url: BaseUrlOption = None,
    models: ModelsOption = None,
    cache: CacheOption = True,
    sample: SampleOption = 0,
    at_once: AtOnceOption = 32,
    markdown: MarkdownOption = False,
    page: PageOption = True,
) -> None:
    """Score a run's free-form answers from 0 to 3 by a model, then report. The same command continues after an end.

    Of a file of --models, the role judge is used, else default.
    """
    import sys

    from kinodex.jobs.eval.score import judge_answers
    from kinodex.jobs.models import ModelChoice

    def on_progress(done: int, of: int) -> None:
        if done % SHOW_EVERY == 0 or done == of:
            print(f"{done:,} of {of:,} answers judged", file=sys.stderr, flush=True)

    choice = ModelChoice(model, base_url, models, cache=cache, sample=sample, at_once=at_once)
    options.announce(choice)
    unscored = judge_answers(run, choice, on_progress)
    if unscored:
        print(f"{unscored:,} answers got no valid score; the same command asks for those again", file=sys.stderr)
    report(run, markdown, page=page)


# `kinodex eval search` and `kinodex eval ground`: searches and ranges against the true moments of a benchmark.

MomentBenchmarkArgument = Annotated[
    str,
    typer.Argument(
        help="momentseeker, qvhighlights, charades-sta, activitynet-captions, cg-bench, or own: a line of JSON for "
        "each search."
    ),
]
FileArgument = Annotated[Path, typer.Argument(help="Its annotation file as it is published, or the folder with it.")]
LibraryOption = Annotated[str, typer.Option("--library", help="The library that holds its videos.")]
SystemOption = Annotated[
    list[str] | None,
    typer.Option(
        "--system",
        help="frames, words, captions, fused (all three), ground, ground-pictures, ground-words, or agent:NAME. May "
        "be repeated.",
    ),
]
LimitOption = Annotated[int | None, typer.Option(min=1, help="Only the first so many searches.")]
MomentOutOption = Annotated[
    Path | None, typer.Option(metavar="FILE.jsonl", help="Keep each result in this file; run again to go on.")
]
RetryOption = Annotated[bool, typer.Option("--retry-errors", help="Search again what failed before, as --out has it.")]
GapOption = Annotated[float, typer.Option(min=0.0, help="Least seconds between results of one video of a search.")]
CategoriesOption = Annotated[bool, typer.Option("--categories", help="Also a table for each category of searches.")]
FailuresOption = Annotated[bool, typer.Option("--failures", help="Also list the searches in which a system failed.")]
MarkdownOption = Annotated[bool, typer.Option("--markdown", help="Print the tables as Markdown, for papers.")]


@dataclass(frozen=True, slots=True)
class _Plan:
    """Settings of a run; without `absent` only what is there is searched for."""

    benchmark: str
    file: Path
    library: str
    systems: Sequence[str]
    choice: ModelChoice
    most: int
    limit: int | None
    space: str | None
    out: Path | None
    retry_errors: bool = False
    min_gap_s: float = 0.0
    absent: bool = True


@dataclass(frozen=True, slots=True)
class _Run:
    """Cases of a run, the benchmark they are of, the results, and the file with them."""

    benchmark: MomentBenchmark
    cases: Cases
    results: list[Result]
    out: Path | None


class _Output(NamedTuple):
    """Parts and form of what is printed."""

    categories: bool
    failures: bool
    markdown: bool
    json: bool


def search(
    benchmark: MomentBenchmarkArgument,
    file: FileArgument,
    library: LibraryOption,
    system: SystemOption = None,
    most: Annotated[int, typer.Option(min=10, max=1000, help="Results of a search: mAP is over so many.")] = 100,
    min_gap: GapOption = 2.0,
    limit: LimitOption = None,
    space: options.SpaceOption = None,
    model: options.ModelOption = "builtin",
    base_url: options.BaseUrlOption = None,
    models: options.ModelsOption = None,
    cache: options.CacheOption = True,
    out: MomentOutOption = None,
    retry_errors: RetryOption = False,
    categories: CategoriesOption = False,
    failures: FailuresOption = False,
    markdown: MarkdownOption = False,
    json: JsonOption = False,
) -> None:
    """Score searches: R@1, R@5, R@10, mAP and nDCG@10 of moments, and of videos where the whole library is searched."""
    from kinodex.jobs.eval.tables import SEARCH
    from kinodex.jobs.models import ModelChoice

    names = system or ["frames", "words", "captions", "fused", "ground"]
    choice = ModelChoice(model, base_url, models, cache=cache)
    plan = _Plan(benchmark, file, library, names, choice, most, limit, space, out, retry_errors, min_gap, absent=False)
    _show_moments(_run(plan), SEARCH, _Output(categories, failures, markdown, json))


def ground(
    benchmark: MomentBenchmarkArgument,
    file: FileArgument,
    library: LibraryOption,
    system: SystemOption = None,
    most: Annotated[int, typer.Option(min=1, max=1000, help="Ranges of each event; the first is scored.")] = 5,
    limit: LimitOption = None,
    space: options.SpaceOption = None,
    model: options.ModelOption = "builtin",
    base_url: options.BaseUrlOption = None,
    models: options.ModelsOption = None,
    cache: options.CacheOption = True,
    out: MomentOutOption = None,
    retry_errors: RetryOption = False,
    categories: CategoriesOption = False,
    failures: FailuresOption = False,
    markdown: MarkdownOption = False,
    json: JsonOption = False,
) -> None:
    """Score ranges: R@1 at IoU 0.3, 0.5 and 0.7 and mIoU; misses, false alarms and AUROC of "it happens nowhere"."""
    from kinodex.jobs.eval.tables import GROUND
    from kinodex.jobs.models import ModelChoice

    names = system or ["ground", "ground-pictures", "ground-words"]
    choice = ModelChoice(model, base_url, models, cache=cache)
    plan = _Plan(benchmark, file, library, names, choice, most, limit, space, out, retry_errors)
    _show_moments(_run(plan), GROUND, _Output(categories, failures, markdown, json))


def _run(plan: _Plan) -> _Run:
    from kinodex.index.library import Library
    from kinodex.jobs.eval.benchmarks import read_moment_benchmark
    from kinodex.jobs.eval.moments import check_systems, make_cases, open_pictures

    systems = check_systems(plan.systems)
    read = read_moment_benchmark(plan.benchmark, plan.file)
    library = Library.open(plan.library)
    samples = [each for each in read.samples if plan.absent or not each.absent]
    pictures = open_pictures(library, plan.space, systems, samples)
    cases = make_cases(samples, library.videos(), plan.limit, pictures)
    return _Run(read, cases, _solve(plan, systems, library, cases, pictures), plan.out)


def _solve(plan: _Plan, systems: Sequence[str], library: Library, cases: Cases, pictures: Pictures) -> list[Result]:
    from kinodex.jobs.eval.moments import AGENT, Bench, ResultFile, agent_settings, run_cases, run_settings
    from kinodex.jobs.models import check_known_world
    from kinodex.jobs.open import open_environment

    environment = open_environment(library, space=plan.space)
    if any(name.startswith(AGENT) for name in systems):
        check_known_world(plan.choice, environment.source.space, has_pictures=environment.has_pictures)
        options.announce(plan.choice)
    bench = Bench(library, environment, plan.choice, plan.most, plan.min_gap_s, plan.space, pictures.embed)
    settings = run_settings(plan.benchmark, plan.file, bench)
    results = ResultFile(plan.out, settings, agent_settings(systems, bench))
    return run_cases(cases, systems, bench, results, _show_progress, retry_errors=plan.retry_errors)


def _show_progress(done: int, todo: int) -> None:
    if sys.stderr.isatty() and done % 10 == 0:
        print(f"\r{done:,} of {todo:,}", end="", file=sys.stderr, flush=True)


def _show_moments(ran: _Run, scores: Scores, output: _Output) -> None:
    from kinodex.jobs.eval.moments import by_category
    from kinodex.jobs.eval.tables import as_json, moment_facts, print_all
    from kinodex.jobs.output import print_json

    cases = ran.cases.cases
    standings = scores.standings(cases, ran.results)
    categories = by_category(cases, ran.results, scores.standings) if output.categories else {}
    if output.json:
        print_json(as_json(standings, categories, ran.cases, ran.benchmark.problems))
        return
    lines = moment_facts(ran.benchmark.title, ran.cases, ran.benchmark.problems, str(ran.out or ""), ran.results)
    if output.failures:
        lines += _failures(ran, standings)
    print_all([*lines, scores.notes], scores.tables(standings, categories), output.markdown)


def _failures(ran: _Run, standings: Sequence[Standing]) -> list[str]:
    from kinodex.jobs.output import visible

    texts = {case.case_id: visible(case.query.text) for case in ran.cases.cases}
    return [
        f"{each.system} failed in {len(each.failures):,}: "
        + "; ".join(f"{name} {texts[name]!r}" for name in each.failures)
        for each in standings
        if each.failures
    ]


# `kinodex eval report` and `kinodex eval compare`: the results of runs.

RunArgument = Annotated[Path, typer.Argument(help="The folder of a run, as `kinodex eval` wrote it with --out.")]
PageOption = Annotated[bool, typer.Option(help="Also write report.html and figures/ again.")]


def report(
    run: RunArgument,
    markdown: MarkdownOption = False,
    json: JsonOption = False,
    page: PageOption = True,
) -> None:
    """Print the results of a run, finished or not, and write its report again."""
    from kinodex.jobs.eval.report import as_json, report_run
    from kinodex.jobs.eval.tables import NOTES, facts, print_all, tables

    made = report_run(run)
    if json:
        print(as_json(made).decode(), end="")
    else:
        print_all([*facts(made), NOTES], tables(made), markdown)
    if page:
        from kinodex.jobs.eval.page import write_page

        write_page(made, run)


def compare(
    run: RunArgument,
    other: RunArgument,
    markdown: MarkdownOption = False,
    json: JsonOption = False,
    every: Annotated[bool, typer.Option("--every-pair", help="All agents of RUN against all of OTHER.")] = False,
) -> None:
    """Compare two runs of a benchmark, on the questions that both answered.

    Agents are paired by name; if no name is in both runs, all are compared with all.
    """
    from dataclasses import asdict

    from kinodex.jobs.eval.folder import read_run
    from kinodex.jobs.eval.report import compare_runs
    from kinodex.jobs.eval.tables import NOTES, comparison_facts, comparison_table, print_all
    from kinodex.jobs.output import print_json

    compared = compare_runs(read_run(run), read_run(other), every=every)
    if json:
        print_json(asdict(compared))
    else:
        print_all([*comparison_facts(compared), NOTES], [comparison_table(compared)], markdown)


# `kinodex eval run`: run agents on the questions of a benchmark, and report their results.

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
    from kinodex.cli import eval_plan as parts

    choice = parts.choose_models(model, base_url, models, (input_price, output_price), cache, sample, at_once, anyway)
    budget = parts.Budget(max_rounds, max_frames, max_tokens, max_seconds, max_cost)
    rules = ending.answer_rules(force_choice, early_insufficient, verify)
    may_read = subtitles, keep_captions, traces, space, rules, otlp, screen_text
    context = parts.RunContext(library, choice, budget, detector, *may_read)
    systems = parts.choose_systems(agent, ablations, controls, choice)
    request = parts.RunRequest(benchmark, annotations, systems, map_, limit, seed, parts.subset(only, ids))
    limits = parts.run_limits(at_once, max_errors, max_senseless, retry_errors, stop_at_cost)
    parts.run(request, context, parts.Workers(workers, ray, ray_address), limits, out, page, dry_run)
    if not dry_run:
        report(out, page=page)


# `kinodex eval`: compare agents on the questions of a benchmark.

app = typer.Typer(
    no_args_is_help=True,
    help="Compare agents on a benchmark. `eval BENCHMARK LIBRARY` is short for `eval run BENCHMARK LIBRARY`.",
)
app.command("run")(eval_run)
app.command("check")(check)
app.command("import")(import_answers)
app.command("judge")(judge)
app.command("search")(search)
app.command("ground")(ground)
app.command("report")(report)
app.command("compare")(compare)
app.command("simulate", hidden=True, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(
    eval_simulate_command.simulate
)


def with_run(arguments: Sequence[str]) -> list[str]:
    """Insert `run` into a command line after `eval` if no other of its commands follows."""
    names = {command.name for command in app.registered_commands}
    if len(arguments) > 1 and arguments[0] == "eval" and not {arguments[1], arguments[1][:1]} & {*names, "-"}:
        return ["eval", "run", *arguments[1:]]
    return list(arguments)
