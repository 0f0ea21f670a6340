"""`kinodex eval search` and `kinodex eval ground`: searches and ranges against the true moments of a benchmark."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kinodex.cli import model_options
from kinodex.cli.eval.options import MarkdownOption
from kinodex.cli.from_models import with_groups
from kinodex.cli.model_options import BaseUrlOption, CacheOption, ModelsOption
from kinodex.cli.options import JsonOption, WhereOption
from kinodex.output import print_json, tell_count

if TYPE_CHECKING:
    from kinodex.jobs.eval.moments.run import MomentRequest, MomentRun
    from kinodex.jobs.eval.moments.standings import Standing
    from kinodex.jobs.eval.moments.tables import Scores


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
    limit: Annotated[int | None, typer.Option(min=1, help="Only this many searches, from the first on.")] = None
    where: WhereOption = None
    space: model_options.SpaceOption = None
    model: model_options.ModelOption = "similarity"
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
        """Return the run of the contenders that were named, else of the `usual` ones."""
        from kinodex.jobs.eval.moments.run import MomentRequest
        from kinodex.jobs.models import ModelChoice

        choice = ModelChoice(self.model, self.base_url, self.models, cache=self.cache)
        how = self.limit, self.space, self.out, self.retry_errors
        contenders = self.contender or usual
        return MomentRequest(self.benchmark, self.file, self.library, contenders, choice, most, *how, where=self.where)


@with_groups
def search(
    chosen: MomentRunOptions,
    most: Annotated[int, typer.Option("-k", min=10, max=1000, help="Results of a search that mAP counts.")] = 100,
    min_gap: Annotated[float, typer.Option(min=0.0, help="Least seconds between results of one video.")] = 2.0,
) -> None:
    """Score searches: R@1, R@5, R@10, mAP and nDCG@10 of moments, and of videos where the whole library is searched."""
    from kinodex.jobs.eval.moments.tables import SEARCH

    request = chosen.request(["frames", "words", "captions", "fused", "ground"], most)
    _score(replace(request, min_gap_s=min_gap, absent=False), chosen, SEARCH)


@with_groups
def ground(
    chosen: MomentRunOptions,
    most: Annotated[int, typer.Option("-k", min=1, max=1000, help="Ranges of each event; the first is scored.")] = 5,
) -> None:
    """Score ranges: R@1 at IoU 0.3, 0.5 and 0.7 and mIoU; misses, false alarms and AUROC of "it happens nowhere"."""
    from kinodex.jobs.eval.moments.tables import GROUND

    _score(chosen.request(["ground", "ground-frames", "ground-words"], most), chosen, GROUND)


def _score(request: MomentRequest, chosen: MomentRunOptions, scores: Scores) -> None:
    from kinodex.cli.figure_tables import print_all
    from kinodex.jobs.eval.moments.run import run_moments
    from kinodex.jobs.eval.moments.standings import by_category
    from kinodex.jobs.eval.moments.tables import as_json, moment_facts

    ran = run_moments(request, model_options.announce, _show_progress)
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
