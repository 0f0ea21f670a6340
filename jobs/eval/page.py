"""A report as one page for a browser, which needs no network; its plots are saved beside it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from kinodex.jobs.eval import table_cells, tables
from kinodex.jobs.eval.folder import FIGURES, PAGE
from kinodex.jobs.eval.plots.accuracy import accuracy_plot, category_plots, cost_plot, duration_plot, pair_plot
from kinodex.jobs.eval.plots.drawing import Plot, for_page, save_plot
from kinodex.jobs.eval.plots.labels import Scale, p_label, pair_p_label, scale_of
from kinodex.jobs.eval.plots.search import distance_plot, entropy_plot, frames_plot, rounds_plot
from kinodex.jobs.eval.report import EvalReport, Pair, Standing, agents_of, breakdowns, categories
from kinodex.jobs.eval.scoring.estimates import FEW_VIDEOS
from kinodex.jobs.json_files import write_whole

if TYPE_CHECKING:
    from jinja2 import Environment


TEMPLATES = Path(__file__).with_name("templates")
COST_LABELS = {
    "frames": "Frames",
    "frames_with_kept": "Frames, also behind kept captions",
    "rounds": "Rounds",
    "calls": "Calls",
    "tokens": "Tokens",
    "cost": "Cost",
    "seconds": "Seconds",
}
MAIN_COSTS = ("frames", "tokens", "cost", "seconds")
QUESTIONS_A_VIDEO = (10, 100)
"""Questions a video over which the cost of the index is shared out, beside those of the run."""


def plots(report: EvalReport) -> tuple[Plot, ...]:
    """List the plots that a report has the figures for; contenders whose answers cannot be scored are in none."""
    scored = [each for each in report.standings if each.accuracy.questions]
    pairs = [each for each in report.pairs if each.difference.questions]
    report = replace(report, standings=tuple(scored), pairs=tuple(pairs))
    of_accuracy = accuracy_plot, frames_plot, cost_plot, duration_plot, category_plots, pair_plot
    return tuple(plot for kind in (*of_accuracy, rounds_plot, entropy_plot, distance_plot) for plot in kind(report))


def write_page(report: EvalReport, folder: Path) -> Path:
    """Write report.html, and figures/ with every plot as SVG and PNG, into a folder; return the page's path."""
    from markupsafe import Markup

    figures = []
    for plot in plots(report):
        size = {"width_in": plot.width_in, "height_in": plot.height_in}
        svg = save_plot(plot.draw, folder / FIGURES, plot.name, **size)
        # The SVGs are our own, and what they say of the user's is drawn as outlines.
        figures.append((plot, Markup(for_page(svg))))
    scored = [each for each in agents_of(report) or report.standings if each.accuracy.questions]
    best = max(scored, key=lambda each: each.accuracy.mean, default=None)
    spent = [name for each in report.standings for name, cost in each.costs.items() if cost.total > 0]
    costs = {name: label for name, label in COST_LABELS.items() if name in spent}
    page = templates().get_template("report.html.jinja")
    text = page.render(
        report=report,
        scale=scale_of(report),
        percent=Scale("Share", "%", 100, 1),
        figures=figures,
        breakdowns={name: (name.replace("_", " "), categories(report, name)) for name in breakdowns(report)},
        costs=costs,
        main_costs={name: costs[name] for name in MAIN_COSTS if name in costs},
        best=best,
        rivals=_rivals(report, best),
        deep=[each for each in agents_of(report) if len(each.depths) > 1],
        few_videos=FEW_VIDEOS,
        notices=tables.notices(report),
        shared=[report.asked / max(report.videos, 1), *QUESTIONS_A_VIDEO],
    )
    write_whole(folder / PAGE, text.encode())
    return folder / PAGE


@cache
def templates() -> Environment:
    """Load the templates of pages, which escape all values."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, autoescape=True, trim_blocks=True)
    made.filters |= {"amount": amount, "p_label": p_label, "pair_p_label": pair_p_label, "counts": table_cells.counts}
    return made


def amount(value: float, cost: str) -> str:
    """Format an amount of a cost with as many digits as matter."""
    if value == 0:
        return "0"
    if cost == "cost":
        return f"{value:,.2f}" if value >= 1 else f"{value:.3g}"
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def _rivals(report: EvalReport, best: Standing | None) -> list[Pair]:
    """Pair the best contender with the next best agent and with the best control; each pair begins with the best."""
    if best is None:
        return []
    ranked = sorted(report.standings, key=lambda each: -each.accuracy.mean)
    others = [each for each in ranked if each is not best]
    rivals = [next((each.name for each in others if each.is_control == kind), None) for kind in (False, True)]
    pairs = [*report.pairs, *map(_swap, report.pairs)]
    return [pair for rival in rivals for pair in pairs if (pair.a, pair.b) == (best.name, rival)]


def _swap(pair: Pair) -> Pair:
    """Turn a pair round, so that its second contender comes first."""
    forward = pair.difference
    low, high = (None if end is None else -end for end in (forward.high, forward.low))
    difference = replace(forward, mean=-forward.mean, low=low, high=high)
    return replace(pair, a=pair.b, b=pair.a, difference=difference, only_a=pair.only_b, only_b=pair.only_a)
