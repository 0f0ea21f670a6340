"""`kinodex eval report` and `kinodex eval compare`: the results of runs."""

from __future__ import annotations

from dataclasses import asdict
from json import loads
from typing import Annotated

import typer

from kinodex.cli.eval.options import MarkdownOption, PageOption, RunArgument
from kinodex.cli.options import JsonOption
from kinodex.output import print_json


def report(
    run: RunArgument, markdown: MarkdownOption = False, json: JsonOption = False, page: PageOption = True
) -> None:
    """Print the results of a run, finished or not, and write its report again."""
    from kinodex.cli.figure_tables import print_all
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
    from kinodex.cli.figure_tables import print_all
    from kinodex.jobs.eval.comparison import compare_runs
    from kinodex.jobs.eval.folder import read_run
    from kinodex.jobs.eval.tables import NOTES, comparison_facts, comparison_table

    compared = compare_runs(read_run(run), read_run(other), every=every)
    if json:
        print_json(asdict(compared))
    else:
        print_all([*comparison_facts(compared), NOTES], [comparison_table(compared)], markdown)
