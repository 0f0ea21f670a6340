"""Write `simulate.html`: one page with the plot and the table of every sweep; it needs no network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jobs.evaluation.report.plot_style import for_page
from jobs.simulation.plots import axis_text, plot_sweep

if TYPE_CHECKING:
    from jobs.evaluation.score.statistics import Estimate
    from jobs.simulation.aggregate import Means, Simulation

PAGE = "simulate.html"
FIGURES = {"found": 100.0, "frames_to_evidence": 1.0, "accuracy": 100.0, "frames": 1.0, "rounds": 1.0}
"""The columns of the tables, and what they are multiplied by."""


def write_page(simulation: Simulation, folder: Path) -> Path:
    """Draw the sweeps into `figures/` and put them on a page in a folder; return its path."""
    from dataclasses import asdict

    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    templates = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")), autoescape=True, undefined=StrictUndefined
    )
    templates.filters.update(shown=axis_text, cells=_cells)
    drawn = {sweep.name: for_page(plot_sweep(sweep, folder / "figures")) for sweep in simulation.sweeps}
    page = folder / PAGE
    page.write_text(
        templates.get_template("simulate.html.jinja").render(
            simulation=simulation,
            scenery=asdict(simulation.scenery),
            noise=asdict(simulation.noise),
            plots=drawn,
        ),
        encoding="utf-8",
    )
    return page


def _cells(means: Means | None) -> list[str]:
    """Format each figure as "mean ± standard error"; dashes for the trial that others are compared with."""
    if means is None:
        return ["–"] * len(FIGURES)
    return [_cell(getattr(means, name), factor) for name, factor in FIGURES.items()]


def _cell(each: Estimate, factor: float) -> str:
    mean = f"{factor * each.mean:.1f}".replace("-", "−")
    return mean if each.error is None else f"{mean} ± {factor * each.error:.1f}"
