"""Show what a stage did: as text or as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jobs.annotate.stage import AddReport


def show(report: AddReport, as_json: bool) -> None:
    """Show a report to people, or as JSON."""
    from jobs.console.output import print_json

    if as_json:
        print_json(report_json(report))
    else:
        show_report(report)


def report_json(report: AddReport) -> dict[str, Any]:
    """Make the JSON of a report."""
    from dataclasses import asdict

    counts = {"added": report.added, "failed": report.failed, "rows": report.rows}
    return {**asdict(report), **counts, "usage": asdict(report.usage), "arithmetic": report.arithmetic}


def show_report(report: AddReport) -> None:
    """Show a report to people: problems first."""
    from rich.markup import escape

    from jobs.console.escape import visible
    from jobs.console.output import console

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
    rows = {"speech": "lines of speech", "text": "lines of text"}.get(report.stage, report.stage)
    out.print(f"added {report.rows} {rows} to {videos} in {report.seconds:.1f} s{tokens}{cost}")
