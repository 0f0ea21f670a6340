"""`kinodex eval search` and `kinodex eval ground`: searches and ranges against the true moments of a benchmark."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from jobs.cli.options import models as options
from jobs.cli.options.library import JsonOption

if TYPE_CHECKING:
    from index.library import Library
    from jobs.benchmarks.moments import MomentBenchmark
    from jobs.evaluation.moments.cases import Cases
    from jobs.evaluation.moments.pictures import Pictures
    from jobs.evaluation.moments.report import Standing
    from jobs.evaluation.moments.results import Result
    from jobs.evaluation.moments.tables import Scores
    from jobs.model_choice import ModelChoice

BenchmarkArgument = Annotated[
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
OutOption = Annotated[
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
    benchmark: BenchmarkArgument,
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
    out: OutOption = None,
    retry_errors: RetryOption = False,
    categories: CategoriesOption = False,
    failures: FailuresOption = False,
    markdown: MarkdownOption = False,
    json: JsonOption = False,
) -> None:
    """Score searches: R@1, R@5, R@10, mAP and nDCG@10 of moments, and of videos where the whole library is searched."""
    from jobs.evaluation.moments.tables import SEARCH
    from jobs.model_choice import ModelChoice

    names = system or ["frames", "words", "captions", "fused", "ground"]
    choice = ModelChoice(model, base_url, models, cache=cache)
    plan = _Plan(benchmark, file, library, names, choice, most, limit, space, out, retry_errors, min_gap, absent=False)
    _show(_run(plan), SEARCH, _Output(categories, failures, markdown, json))


def ground(
    benchmark: BenchmarkArgument,
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
    out: OutOption = None,
    retry_errors: RetryOption = False,
    categories: CategoriesOption = False,
    failures: FailuresOption = False,
    markdown: MarkdownOption = False,
    json: JsonOption = False,
) -> None:
    """Score ranges: R@1 at IoU 0.3, 0.5 and 0.7 and mIoU; misses, false alarms and AUROC of "it happens nowhere"."""
    from jobs.evaluation.moments.tables import GROUND
    from jobs.model_choice import ModelChoice

    names = system or ["ground", "ground-pictures", "ground-words"]
    choice = ModelChoice(model, base_url, models, cache=cache)
    plan = _Plan(benchmark, file, library, names, choice, most, limit, space, out, retry_errors)
    _show(_run(plan), GROUND, _Output(categories, failures, markdown, json))


def _run(plan: _Plan) -> _Run:
    from index.library import Library
    from jobs.benchmarks.moment_registry import read_moment_benchmark
    from jobs.evaluation.moments.cases import make_cases
    from jobs.evaluation.moments.pictures import open_pictures
    from jobs.evaluation.moments.systems import check_systems

    systems = check_systems(plan.systems)
    read = read_moment_benchmark(plan.benchmark, plan.file)
    library = Library.open(plan.library)
    samples = [each for each in read.samples if plan.absent or not each.absent]
    pictures = open_pictures(library, plan.space, systems, samples)
    cases = make_cases(samples, library.videos(), plan.limit, pictures)
    return _Run(read, cases, _solve(plan, systems, library, cases, pictures), plan.out)


def _solve(plan: _Plan, systems: Sequence[str], library: Library, cases: Cases, pictures: Pictures) -> list[Result]:
    from jobs.evaluation.moments.results import ResultFile
    from jobs.evaluation.moments.run import agent_settings, run_cases, run_settings
    from jobs.evaluation.moments.systems import AGENT, Bench
    from jobs.model_choice import check_known_world
    from jobs.open_library import open_environment

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


def _show(ran: _Run, scores: Scores, output: _Output) -> None:
    from jobs.console.output import print_json
    from jobs.evaluation.moments.report import by_category
    from jobs.evaluation.moments.tables import as_json, facts
    from jobs.evaluation.report.tables import print_all

    cases = ran.cases.cases
    standings = scores.standings(cases, ran.results)
    categories = by_category(cases, ran.results, scores.standings) if output.categories else {}
    if output.json:
        print_json(as_json(standings, categories, ran.cases, ran.benchmark.problems))
        return
    lines = facts(ran.benchmark.title, ran.cases, ran.benchmark.problems, str(ran.out or ""), ran.results)
    if output.failures:
        lines += _failures(ran, standings)
    print_all([*lines, scores.notes], scores.tables(standings, categories), output.markdown)


def _failures(ran: _Run, standings: Sequence[Standing]) -> list[str]:
    from jobs.console.escape import visible

    texts = {case.case_id: visible(case.query.text) for case in ran.cases.cases}
    return [
        f"{each.system} failed in {len(each.failures):,}: "
        + "; ".join(f"{name} {texts[name]!r}" for name in each.failures)
        for each in standings
        if each.failures
    ]
