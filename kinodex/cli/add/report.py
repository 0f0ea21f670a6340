"""The report of an addition, as text or as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from kinodex.index.durations import counted
from kinodex.index.kinds import KINDS
from kinodex.index.terminal_text import visible
from kinodex.output import console

if TYPE_CHECKING:
    from kinodex.jobs.add.run import AddReport


def report_json(report: AddReport) -> dict[str, Any]:
    counts = {"added": report.added, "failed": report.failed, "incomplete": report.incomplete, "rows": report.rows}
    return {**asdict(report), **counts, "usage": asdict(report.usage), "arithmetic": report.arithmetic}


UNITS = {"shots": "segments"}
"""Rows of a stage, where they are named otherwise than the stage."""


def show_report(report: AddReport, *, retries: bool = False) -> None:
    """Print what was added, and what failed; `retries`: the same command takes --retry-failed."""
    from rich.markup import escape

    out = console()
    for outcome in report.outcomes:
        if outcome.problem:
            word = "failed" if outcome.is_failed else "in part"
            title, problem = escape(visible(outcome.title)), escape(visible(outcome.problem))
            out.print(f"[red]{word}[/] {title}: {problem}", soft_wrap=True)
    if not report.outcomes:
        out.print(f"nothing to do: every video has {report.stage} by {escape(report.model)} already")
        return
    spent = report.usage
    tokens = f", {spent.input_tokens} tokens in, {spent.output_tokens} out" if spent.input_tokens else ""
    tokens += f", an estimated {spent.estimated_tokens} tokens" if spent.estimated_tokens else ""
    cost = f", cost {spent.cost:.4f}" if spent.cost else ""
    videos = f"{report.added} video{'s' * (report.added != 1)}"
    kind = KINDS.get(report.stage)
    rows = kind.count(report.rows) if kind else f"{report.rows:,} {UNITS.get(report.stage, report.stage)}"
    out.print(f"added {rows} to {videos} in {report.seconds:.1f} s{tokens}{cost}")
    if report.incomplete and retries:
        lacking = counted(report.incomplete, "video")
        out.print(f"{lacking} in part: run the same command with --retry-failed to ask about the rest again")
