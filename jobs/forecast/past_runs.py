"""Past runs as the basis of a forecast: ledgers of the same agent with the same models on the same library."""

from __future__ import annotations

from pathlib import Path

from agent.core.budget import Ledger
from jobs.errors import UsageError
from jobs.evaluation.run.run_folder import PLAN, RunPlan, comparable, read_plan, read_results
from jobs.evaluation.run.systems import System

LEAST_QUESTIONS = 5
"""Fewer questions than these say too little of a run."""
ALIKE = ("library", "models", "budget", "rules", "subtitles", "screen_text")
"""Fields of a plan on which the costs of a question depend; `rules` with the calls of --verify."""


def past_ledgers(out: Path, plan: RunPlan, system: System) -> tuple[list[Ledger], str]:
    """Ledgers of a system in the newest run that asked alike, in `out` or a folder beside it, and that folder's name.

    Empty if there is none, of at least `LEAST_QUESTIONS` questions. Folders that cannot be read are left out.
    """
    for folder in _folders(out):
        past = _plan(folder)
        if past is not None and _asks_alike(past, plan, system):
            results = [each for each in read_results(folder) if each.contender == system.name and not each.error]
            if len(results) >= LEAST_QUESTIONS:
                return [each.ledger for each in results], folder.name
    return [], ""


def _folders(out: Path) -> list[Path]:
    """The folder itself, then those beside it, newest first."""
    if not out.parent.is_dir():
        return []
    beside = [path for path in out.parent.iterdir() if (path / PLAN).is_file() and path != out]
    newest = sorted(beside, key=lambda path: (path / PLAN).stat().st_mtime, reverse=True)
    return [*([out] if (out / PLAN).is_file() else []), *newest]


def _plan(folder: Path) -> RunPlan | None:
    try:
        return read_plan(folder)
    except UsageError:  # another version of kinodex wrote it
        return None


def _asks_alike(past: RunPlan, now: RunPlan, system: System) -> bool:
    same = all(comparable(past, name) == comparable(now, name) for name in ALIKE)
    return same and system in past.contenders
