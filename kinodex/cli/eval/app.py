"""The commands of `kinodex eval`: parse options, call `kinodex.jobs.eval`, print.

What they need is imported when they run.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from json import loads
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kinodex.agent.answer_rules import USUAL, AnswerRules
from kinodex.agent.limits.budget import UNLIMITED, Budget
from kinodex.cli import options
from kinodex.cli.from_models import with_groups
from kinodex.cli.meant import Group
from kinodex.cli.options import (
    BaseUrlOption,
    CacheOption,
    JsonOption,
    LibraryArgument,
    ModelsOption,
    WhereOption,
    open_library,
)
from kinodex.index.kinds import LINE_KINDS, line_kinds
from kinodex.output import console, plain_table, print_json, say, tell, tell_count

if TYPE_CHECKING:
    from rich.console import Console

    from kinodex.jobs.eval.items import Benchmark, Item
    from kinodex.jobs.eval.moments import MomentRequest, MomentRun, Standing
    from kinodex.jobs.eval.tables import Scores

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    help="Compare agents on a benchmark. `eval BENCHMARK LIBRARY` is short for `eval run BENCHMARK LIBRARY`.",
)

BenchmarkArgument = Annotated[
    str, typer.Argument(help="A benchmark's name, such as egoschema, lvbench or sketch, or FILE.py:NAME.")
]
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
RunArgument = Annotated[Path, typer.Argument(help="The folder of a run, as `kinodex eval` wrote it with --out.")]
MarkdownOption = Annotated[bool, typer.Option("--markdown", help="Print the tables as Markdown, for papers.")]
PageOption = Annotated[bool, typer.Option(help="Also write report.html and figures/ again.")]


def with_run(arguments: Sequence[str]) -> list[str]:
    """Insert `run` into a command line after `eval` if no other of its commands follows."""
    names = {command.name for command in app.registered_commands}
    if len(arguments) > 1 and arguments[0] == "eval" and not {arguments[1], arguments[1][:1]} & {*names, "-"}:
        return ["eval", "run", *arguments[1:]]
    return list(arguments)


@app.command("run")
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
    asking: options.Asking = options.USUAL,
    budget: Budget = UNLIMITED,
    sample: options.SampleOption = 0,
    hide: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help=f"Lines that no agent reads: {', '.join(LINE_KINDS)}. May be repeated."),
    ] = None,
    map_: MapOption = None,
    only: OnlyOption = None,
    ids: IdsOption = None,
    where: WhereOption = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many questions, drawn by --seed.")] = None,
    seed: Annotated[int, typer.Option(help="The seed of the draw by --limit.")] = 0,
    rules: AnswerRules = USUAL,
    at_once: options.AtOnceOption = 32,
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
    max_errors: Annotated[int, typer.Option(min=1, help="Stop after so many questions without an answer.")] = 20,
    max_senseless: Annotated[
        int, typer.Option(min=1, help="Stop after so many questions in a row without one usable reply to an agent.")
    ] = 10,
    stop_at_cost: options.StopAtCostOption = None,
    retry_errors: Annotated[bool, typer.Option(help="Retry questions without an answer in an earlier run.")] = False,
    page: Annotated[bool, typer.Option(help="Also make report.html and figures/.")] = True,
    otlp: options.OtlpOption = None,
    dry_run: options.DryRunOption = False,
) -> None:
    """Ask agents a benchmark's questions about a library's videos; the same command goes on, whatever ended it."""
    from kinodex.evaluation import show_on
    from kinodex.jobs.eval.contenders import RunContext, parse_contenders
    from kinodex.jobs.eval.items import parse_subset
    from kinodex.jobs.eval.run import RunOptions, RunRequest, Workers, items_for, run_plan

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
    options.check_cost(choice, None, stop_at_cost)
    if dry_run:
        from kinodex.jobs.costs import table
        from kinodex.jobs.eval.forecast import forecast_run

        better = "`--limit 10` without --dry-run gives a past run, whose figures are better."
        say(table(forecast_run(request, context, out), advice=better))
        return
    options.announce(choice)
    limits = RunOptions(items_for(at_once), max_errors, retry_errors, stop_at_cost, max_senseless)
    show = show_on(console(), out, stop_at_cost)
    run_plan(request, context, Workers(workers, ray, ray_address), out, limits, show, page=page)
    report(out, page=page)


# `kinodex eval report` and `kinodex eval compare`: the results of runs.


@app.command("report")
def report(
    run: RunArgument, markdown: MarkdownOption = False, json: JsonOption = False, page: PageOption = True
) -> None:
    """Print the results of a run, finished or not, and write its report again."""
    from kinodex.cli.tables import print_all
    from kinodex.jobs.eval.report import as_json, report_run
    from kinodex.jobs.eval.tables import NOTES, facts, tables

    made = report_run(run)
    if json:
        print_json(loads(as_json(made)))
    else:
        print_all([*facts(made), NOTES], tables(made), markdown)
    if page:
        from kinodex.jobs.eval.page import write_page

        write_page(made, run)


@app.command("compare")
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
    from kinodex.cli.tables import print_all
    from kinodex.jobs.eval.folder import read_run
    from kinodex.jobs.eval.report import compare_runs
    from kinodex.jobs.eval.tables import NOTES, comparison_facts, comparison_table

    compared = compare_runs(read_run(run), read_run(other), every=every)
    if json:
        print_json(asdict(compared))
    else:
        print_all([*comparison_facts(compared), NOTES], [comparison_table(compared)], markdown)


# `kinodex eval check`: list the questions of an annotation file, its defects, and its videos that a library has.

LISTED = 20


@app.command("check")
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
    """Read a benchmark; list its questions by group, its defective rows, and the videos that a library lacks.

    Exits with 1 if the library holds none of its videos.
    """
    from kinodex.jobs.eval.benchmarks import annotation_files, find_benchmark, read_benchmark
    from kinodex.jobs.eval.items import parse_subset, select_items

    part = parse_subset(only or [], ids)
    read = read_benchmark(benchmark, annotations)
    read = replace(read, items=select_items(read.items, part))
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
    if library is not None and not found["library"]["found"]:
        raise typer.Exit(1)


def _counts(read: Benchmark[Item]) -> dict[str, Any]:
    groups: dict[str, Counter[str]] = {}
    for item in read.items:
        for breakdown, names in item.groups.items():
            groups.setdefault(breakdown, Counter()).update(names)
    return {
        "questions": len(read.items),
        "videos": len({item.video for item in read.items}),
        "with_truth": sum(item.truth.known for item in read.items),
        "with_evidence": sum(bool(item.truth.evidence) for item in read.items),
        "scoring": read.scoring,
        "options": dict(sorted(Counter(len(item.question.options) for item in read.items).items())),
        "groups": {breakdown: dict(counts.most_common()) for breakdown, counts in groups.items()},
    }


def _in_library(read: Benchmark[Item], library: str, id_map: Path | None) -> dict[str, Any]:
    from kinodex.jobs.eval.items import match_videos, read_id_map, with_nearest

    names = read_id_map(id_map) if id_map else None
    videos = open_library(library).videos()
    matching = match_videos(read.items, videos, names, read.episodes)
    return {
        "uri": library,
        "found": len(matching.videos),
        "questions": len(read.items) - sum(each.questions for each in matching.missing),
        "missing": [
            asdict(each) | ({"why": with_nearest(each, videos)} if at < LISTED else {})
            for at, each in enumerate(matching.missing)
        ],
    }


def _show(found: dict[str, Any], out: Console) -> None:
    from rich.markup import escape

    from kinodex.jobs.eval.items import WHOLE

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


@app.command("import")
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
    from kinodex.jobs.eval.imported_predictions import ImportRequest, import_predictions

    request = ImportRequest(predictions, name, id_field, prediction_field, first, partial, replace)
    found = import_predictions(run, request)
    for note in found.notes:
        tell(note)
    report(run, markdown, page=page)


# `kinodex eval judge`: score free-form answers by a model.

SHOW_EVERY = 100


@app.command("judge")
def judge(
    run: RunArgument,
    model: Annotated[str, typer.Option(help="The model that judges, of an OpenAI-compatible endpoint.")] = "builtin",
    base_url: BaseUrlOption = None,
    models: ModelsOption = None,
    cache: CacheOption = True,
    sample: options.SampleOption = 0,
    at_once: options.AtOnceOption = 32,
    markdown: MarkdownOption = False,
    page: PageOption = True,
) -> None:
    """Score a run's free-form answers from 0 to 3 by a model, then report. The same command continues after an end.

    Of a file of --models, the role judge is used, else default.
    """
    from kinodex.jobs.eval.score import judge_answers
    from kinodex.jobs.models import ModelChoice

    def on_progress(done: int, of: int) -> None:
        if done % SHOW_EVERY == 0 or done == of:
            tell(f"{done:,} of {of:,} answers judged")

    choice = ModelChoice(model, base_url, models, cache=cache, sample=sample, at_once=at_once)
    options.announce(choice)
    unscored = judge_answers(run, choice, on_progress)
    if unscored:
        tell(f"{unscored:,} answers got no valid score; the same command asks for those again")
    report(run, markdown, page=page)


# `kinodex eval search` and `kinodex eval ground`: searches and ranges against the true moments of a benchmark.


@dataclass(frozen=True)
class MomentRunOptions:
    """The benchmark, contenders, models, results and tables of a run of moments, for `with_groups`."""

    benchmark: Annotated[
        str,
        typer.Argument(
            help="momentseeker, qvhighlights, charades-sta, activitynet-captions, cg-bench, own (a line of JSON for "
            "each search), or FILE.py:NAME."
        ),
    ]
    file: Annotated[Path, typer.Argument(help="Its annotation file as it is published, or the folder with it.")]
    library: Annotated[str, typer.Option("--library", help="The library that holds its videos.")]
    contender: Annotated[
        list[str] | None,
        typer.Option(
            help="frames, words, captions, fused (all three), ground, ground-frames, ground-words, or agent:NAME. "
            "May be repeated."
        ),
    ] = None
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many searches.")] = None
    where: WhereOption = None
    space: options.SpaceOption = None
    model: options.ModelOption = "builtin"
    base_url: BaseUrlOption = None
    models: ModelsOption = None
    cache: CacheOption = True
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.jsonl", help="Keep each result in this file; run again to go on.")
    ] = None
    retry_errors: Annotated[
        bool, typer.Option("--retry-errors", help="Search again what failed before, as --out has it.")
    ] = False
    categories: Annotated[bool, typer.Option("--categories", help="Also a table for each category of searches.")] = (
        False
    )
    failures: Annotated[
        bool, typer.Option("--failures", help="Also list the searches in which a contender failed.")
    ] = False
    markdown: MarkdownOption = False
    json: JsonOption = False

    def request(self, usual: Sequence[str], most: int) -> MomentRequest:
        """The run of the contenders that were named, else of the `usual` ones."""
        from kinodex.jobs.eval.moments import MomentRequest
        from kinodex.jobs.models import ModelChoice

        choice = ModelChoice(self.model, self.base_url, self.models, cache=self.cache)
        how = self.limit, self.space, self.out, self.retry_errors
        contenders = self.contender or usual
        return MomentRequest(self.benchmark, self.file, self.library, contenders, choice, most, *how, where=self.where)


@app.command("search")
@with_groups
def search(
    chosen: MomentRunOptions,
    most: Annotated[int, typer.Option("-k", min=10, max=1000, help="Results of a search: mAP is over so many.")] = 100,
    min_gap: Annotated[float, typer.Option(min=0.0, help="Least seconds between results of one video.")] = 2.0,
) -> None:
    """Score searches: R@1, R@5, R@10, mAP and nDCG@10 of moments, and of videos where the whole library is searched."""
    from kinodex.jobs.eval.tables import SEARCH

    request = chosen.request(["frames", "words", "captions", "fused", "ground"], most)
    _score(replace(request, min_gap_s=min_gap, absent=False), chosen, SEARCH)


@app.command("ground")
@with_groups
def ground(
    chosen: MomentRunOptions,
    most: Annotated[int, typer.Option("-k", min=1, max=1000, help="Ranges of each event; the first is scored.")] = 5,
) -> None:
    """Score ranges: R@1 at IoU 0.3, 0.5 and 0.7 and mIoU; misses, false alarms and AUROC of "it happens nowhere"."""
    from kinodex.jobs.eval.tables import GROUND

    _score(chosen.request(["ground", "ground-frames", "ground-words"], most), chosen, GROUND)


def _score(request: MomentRequest, chosen: MomentRunOptions, scores: Scores) -> None:
    from kinodex.cli.tables import print_all
    from kinodex.jobs.eval.moments import by_category, run_moments
    from kinodex.jobs.eval.tables import as_json, moment_facts

    ran = run_moments(request, options.announce, _show_progress)
    cases, problems = ran.cases, ran.benchmark.problems
    standings = scores.standings(cases.cases, ran.results)
    parts = by_category(cases.cases, ran.results, scores.standings) if chosen.categories else {}
    if chosen.json:
        print_json(as_json(standings, parts, cases, problems))
        return
    lines = moment_facts(ran.benchmark.title, cases, problems, str(chosen.out or ""), ran.results)
    lines += _failures(ran, standings) if chosen.failures else []
    print_all([*lines, scores.notes], scores.tables(standings, parts), chosen.markdown)


def _show_progress(done: int, todo: int) -> None:
    if sys.stderr.isatty() and done % 10 == 0:
        tell_count(f"{done:,} of {todo:,}")


def _failures(ran: MomentRun, standings: Sequence[Standing]) -> list[str]:
    from kinodex.index.terminal_text import visible

    texts = {case.case_id: visible(case.query.text) for case in ran.cases.cases}
    return [
        f"{each.system} failed in {len(each.failures):,}: "
        + "; ".join(f"{name} {texts[name]!r}" for name in each.failures)
        for each in standings
        if each.failures
    ]
