"""A report as one page for a browser, which needs no network, and its plots as files beside it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.evaluation.report.plot_series import Scale, agents_of, breakdowns, categories, scale_of, spoken
from jobs.evaluation.report.plot_style import for_page, save_plot
from jobs.evaluation.report.plots import Plot, plots
from jobs.evaluation.report.plots_accuracy import p_text
from jobs.evaluation.report.tables import FEW_VIDEOS
from jobs.evaluation.run.run_folder import FIGURES, PAGE, write_whole
from jobs.evaluation.score.report import Pair, Report, Standing

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).with_name("templates")
COSTS = {
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
"""Over how many questions a video the index is shared out, beside those of the run."""


def write_page(report: Report, folder: Path) -> Path:
    """Write report.html and figures/ in a folder; give the page's path."""
    from markupsafe import Markup

    drawn = write_figures(report, folder)
    scored = [each for each in agents_of(report) or report.standings if each.accuracy.questions]
    best = max(scored, key=lambda each: each.accuracy.mean, default=None)
    costs = {name: label for name, label in COSTS.items() if _is_spent(report, name)}
    text = (
        templates()
        .get_template("report.html.jinja")
        .render(
            report=report,
            scale=scale_of(report),
            percent=Scale("Share", "%", 100, 1),
            # The SVGs are our own, and what they say of the user's is drawn as outlines.
            figures=[(plot, Markup(for_page(svg))) for plot, svg in drawn],
            breakdowns={name: (spoken(name), categories(report, name)) for name in breakdowns(report)},
            costs=costs,
            main_costs={name: costs[name] for name in MAIN_COSTS if name in costs},
            best=best,
            rivals=_rivals(report, best),
            deep=[each for each in agents_of(report) if len(each.depths) > 1],
            few_videos=FEW_VIDEOS,
            shared=[report.asked / max(report.videos, 1), *QUESTIONS_A_VIDEO],
        )
    )
    path = folder / PAGE
    write_whole(path, text.encode())
    return path


def write_figures(report: Report, folder: Path) -> list[tuple[Plot, str]]:
    """Write every plot of a report as SVG and PNG in figures/ of a folder; give the plots with their SVGs."""
    drawn = []
    for plot in plots(report):
        svg = save_plot(
            plot.draw,
            folder / FIGURES,
            plot.name,
            width_in=plot.width_in,
            height_in=plot.height_in,
            simulated=report.simulated,
        )
        drawn.append((plot, svg))
    return drawn


@cache
def templates() -> Environment:
    """The templates of pages; whatever is put into them is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, autoescape=True, trim_blocks=True)
    made.filters |= {"amount": amount, "p_text": p_text}
    return made


def amount(value: float, cost: str) -> str:
    """An amount of a cost with as many digits as it deserves."""
    if value == 0:
        return "0"
    if cost == "cost":
        return f"{value:,.2f}" if value >= 1 else f"{value:.3g}"
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def _is_spent(report: Report, cost: str) -> bool:
    return any(cost in each.costs and each.costs[cost].total > 0 for each in report.standings)


def _rivals(report: Report, best: Standing | None) -> list[Pair]:
    """The best contender against the next best agent and the best control, as pairs that begin with it."""
    if best is None:
        return []
    ranked = sorted(report.standings, key=lambda each: -each.accuracy.mean)
    others = [each for each in ranked if each is not best]
    rivals = [next((each.name for each in others if each.is_control == kind), None) for kind in (False, True)]
    pairs = [*report.pairs, *map(_turned, report.pairs)]
    return [pair for rival in rivals for pair in pairs if (pair.a, pair.b) == (best.name, rival)]


def _turned(pair: Pair) -> Pair:
    """The same pair with the second contender first."""
    seen = pair.difference
    low, high = (None if end is None else -end for end in (seen.high, seen.low))
    difference = replace(seen, mean=-seen.mean, low=low, high=high)
    return replace(pair, a=pair.b, b=pair.a, difference=difference, only_a=pair.only_b, only_b=pair.only_a)
