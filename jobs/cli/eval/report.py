"""`kinodex eval report` and `kinodex eval compare`: the results of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jobs.cli.options.library import JsonOption

RunArgument = Annotated[Path, typer.Argument(help="The folder of a run, as `kinodex eval` wrote it with --out.")]
MarkdownOption = Annotated[bool, typer.Option("--markdown", help="Print the tables as Markdown, for papers.")]
PageOption = Annotated[bool, typer.Option(help="Also write report.html and figures/ again.")]


def report(
    run: RunArgument,
    markdown: MarkdownOption = False,
    json: JsonOption = False,
    page: PageOption = True,
) -> None:
    """Print the results of a run, finished or not, and write its report again."""
    from jobs.evaluation.report.tables import NOTES, facts, print_all, tables
    from jobs.evaluation.score.report import as_json, report_run

    made = report_run(run)
    if json:
        print(as_json(made).decode(), end="")
    else:
        print_all([*facts(made), NOTES], tables(made), markdown)
    if page:
        from jobs.evaluation.report.html import write_page

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

    from jobs.console.output import print_json
    from jobs.evaluation.report.tables import NOTES, comparison_facts, comparison_table, print_all
    from jobs.evaluation.run.run_folder import read_run
    from jobs.evaluation.score.compare import compare_runs

    compared = compare_runs(read_run(run), read_run(other), every=every)
    if json:
        print_json(asdict(compared))
    else:
        print_all([*comparison_facts(compared), NOTES], [comparison_table(compared)], markdown)
