"""Past runs as the basis of a forecast: ledgers of the same agent with the same models on the same library."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from kinodex.jobs.costs import COSTS, Forecast
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.contenders import Contender
from kinodex.jobs.eval.folder import PLAN, RunPlan, comparable, read_plan, read_results

LEAST_QUESTIONS = 5
"""Fewer questions than these say too little of a run."""
ALIKE = (
    *("benchmark", "library", "space", "models", "contents", "prices", "budget", "rules", "hide"),
    "keep_captions",
)
"""Fields of a plan on which the costs of a question depend; `rules` with the calls of --verify."""


def past_forecast(out: Path, plan: RunPlan, system: Contender, questions: int) -> Forecast | None:
    """Return the mean for each question of the newest run that asked alike, in `out` or a folder beside it.

    Return None without one.

    Runs of fewer than `LEAST_QUESTIONS` questions, and folders that cannot be read, are left out.
    """
    for folder in _folders(out):
        try:
            past = read_plan(folder)
            same = all(comparable(past, name) == comparable(plan, name) for name in ALIKE)
            unchanged = all(plan.states.get(id_, state) == state for id_, state in past.states.items())
            results = read_results(folder) if same and unchanged and system in past.contenders else ()
        except (UsageError, OSError):  # another version of kinodex wrote it, or it is damaged: a neighbour's folder
            continue
        ledgers = [each.ledger for each in results if each.contender == system.name and not each.error]
        if len(ledgers) >= LEAST_QUESTIONS:
            share = questions / len(ledgers)
            sums = {name: share * sum(getattr(each, name) for each in ledgers) for name in COSTS}
            shown = sum(ledger.frames_with_kept for ledger in ledgers) / len(ledgers)
            return Forecast(system.name, questions, **sums, basis=f"past run {folder.name}", frames_a_question=shown)
    return None


def _folders(out: Path) -> list[Path]:
    """Return the folder itself, then those beside it, newest first, of those in which a plan was written."""
    times = {}
    for path in out.parent.iterdir() if out.parent.is_dir() else ():
        with suppress(OSError):
            times[path] = (path / PLAN).stat().st_mtime
    return sorted(times, key=lambda path: (path == out, times[path]), reverse=True)
