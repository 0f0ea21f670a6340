"""The report of a run: made from the run's folder, kept in it, and read again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from jobs.benchmarks.item import Item
from jobs.errors import UsageError
from jobs.evaluation.run.plan import Plan
from jobs.evaluation.run.records import Judgement, Record
from jobs.evaluation.run.run_folder import REPORT, read_items, read_judgements, read_plan, read_records, write_whole
from jobs.evaluation.score.aggregate import make_report
from jobs.evaluation.score.report_types import Report


@dataclass(frozen=True, slots=True)
class Run:
    """All that a run's folder holds of it, but for its traces."""

    folder: Path
    plan: Plan
    items: tuple[Item, ...]
    records: tuple[Record, ...]
    judgements: tuple[Judgement, ...]

    @property
    def judge(self) -> str | None:
        """The judge whose scores count: the last to begin."""
        return self.judgements[-1].judge if self.judgements else None


def read_run(folder: Path) -> Run:
    """A run from its folder, finished or not; raises `UsageError` if it holds none, or one that cannot be read."""
    return Run(folder, read_plan(folder), read_items(folder), read_records(folder), read_judgements(folder))


def report_run(folder: Path) -> Report:
    """Make the report of a run, and write it as report.json into the run's folder."""
    run = read_run(folder)
    report = make_report(run.plan, run.items, run.records, run.judgements)
    write_whole(folder / REPORT, as_json(report))
    return report


def as_json(report: Report) -> bytes:
    """A report as report.json has it."""
    return TypeAdapter(Report).dump_json(report, indent=2) + b"\n"


def read_report(path: Path) -> Report:
    """A report from its report.json; raises `UsageError` if there is none that this version can read."""
    try:
        return TypeAdapter(Report).validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise UsageError(f"cannot read {path}: {error}; `kinodex eval report {path.parent}` makes it anew") from error
