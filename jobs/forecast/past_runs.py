"""Past runs as the basis of a forecast: ledgers of the same agent with the same models on the same library."""

from __future__ import annotations

from pathlib import Path

from agent.core.budget import Ledger
from jobs.errors import UsageError
from jobs.evaluation.run.run_folder import PLAN, RunPlan, comparable, read_plan, read_results
from jobs.evaluation.run.systems import System

LEAST_QUESTIONS = 5
"""Fewer questions than these say too little of a run."""
ALIKE = (
    "benchmark",
    "library",
    "space",
    "models",
    "contents",
    "prices",
    "budget",
    "rules",
    "subtitles",
    "screen_text",
    "keep_captions",
)
"""Fields of a plan on which the costs of a question depend; `rules` with the calls of --verify."""


def past_ledgers(out: Path, plan: RunPlan, system: System) -> tuple[list[Ledger], str]:
    """Ledgers of a system in the newest run that asked alike, in `out` or a folder beside it, and that folder's name.

    Empty if there is none, of at least `LEAST_QUESTIONS` questions. Folders that cannot be read are left out.
    """
    for folder in _folders(out):
        try:
            results = read_results(folder) if _asks_alike(read_plan(folder), plan, system) else ()
        except (UsageError, OSError):  # another version of kinodex wrote it, or it is damaged: a neighbour's folder
            continue
        own = [each.ledger for each in results if each.contender == system.name and not each.error]
        if len(own) >= LEAST_QUESTIONS:
            return own, folder.name
    return [], ""


def _folders(out: Path) -> list[Path]:
    """The folder itself, then those beside it, newest first."""
    if not out.parent.is_dir():
        return []
    times = {path: _written_at(path) for path in out.parent.iterdir()}
    return sorted((path for path in times if times[path]), key=lambda path: (path == out, times[path]), reverse=True)


def _written_at(folder: Path) -> float:
    """The time at which a run's plan was written; 0 where there is none, or none that may be read."""
    try:
        return (folder / PLAN).stat().st_mtime if (folder / PLAN).is_file() else 0.0
    except OSError:
        return 0.0


def _asks_alike(past: RunPlan, now: RunPlan, system: System) -> bool:
    same = all(comparable(past, name) == comparable(now, name) for name in ALIKE)
    unchanged = all(now.states.get(id_, state) == state for id_, state in past.states.items())
    return same and unchanged and system in past.contenders
