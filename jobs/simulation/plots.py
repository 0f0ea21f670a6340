"""Plots of a simulation, each marked as one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.evaluation.report.plot_style import INK, MUTED, PAGE_IN, colour, marker, save_plot
from jobs.evaluation.score.statistics import Estimate
from jobs.simulation.aggregate import SweepResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = {
    "found": ("evidence shown, %", 100.0),
    "frames_to_evidence": ("frames to evidence", 1.0),
    "accuracy": ("right answers, %", 100.0),
}
"""Label and factor of the figures that are drawn."""


def plot_sweep(swept: SweepResult, folder: Path) -> str:
    """Draw a sweep as NAME.svg and NAME.png into a folder; return the SVG."""
    draw = _draw_choice if swept.kind == "choice" else _draw_conditions
    return save_plot(
        lambda figure: draw(figure, swept), folder, swept.name, width_in=PAGE_IN, height_in=2.8, simulated=True
    )


def _draw_conditions(figure: Figure, swept: SweepResult) -> None:
    """Draw a panel a figure and a line an agent, with 95 % intervals."""
    panels = figure.subplots(1, len(PANELS))
    series = list(dict.fromkeys(point.series for point in swept.points))
    shift = (max(float(point.x) for point in swept.points) - min(float(point.x) for point in swept.points)) / 150
    for axes, (name, (label, factor)) in zip(panels, PANELS.items(), strict=True):
        for at, one in enumerate(series):
            points = [point for point in swept.points if point.series == one]
            estimates = [getattr(point.means, name) for point in points]
            places = [float(point.x) + shift * (at - len(series) / 2) for point in points]
            _line(axes, places, estimates, factor, at, one)
        axes.set_title(label)
    panels[1].set_xlabel(swept.axis)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)


def _line(
    axes: Axes, places: Sequence[float], estimates: Sequence[Estimate], factor: float, at: int, label: str
) -> None:
    means = [factor * each.mean for each in estimates]
    axes.errorbar(places, means, yerr=_reach(estimates, factor), color=colour(at), marker=marker(at), label=label)


def _draw_choice(figure: Figure, swept: SweepResult) -> None:
    """Draw the difference of each value from the reference value: a faint line a world, a strong one over all."""
    panels = figure.subplots(1, len(PANELS))
    values = list(dict.fromkeys(point.x for point in swept.points))
    places = range(len(values))
    for axes, (name, (label, factor)) in zip(panels, PANELS.items(), strict=True):
        for series in dict.fromkeys(point.series for point in swept.points):
            world = [point.difference for point in swept.points if point.series == series]
            heights = [0.0 if each is None else factor * getattr(each, name).mean for each in world]
            axes.plot(places, heights, color=MUTED, linewidth=0.6, alpha=0.6, label="one world")
        pooled = [getattr(point.means, name) for point in swept.pooled]
        axes.errorbar(
            places,
            [factor * each.mean for each in pooled],
            yerr=_reach(pooled, factor),
            color=colour(0),
            marker=marker(0),
            label="all worlds",
        )
        axes.axhline(0, color=INK, linewidth=0.6)
        axes.set_xticks(places, [axis_text(value) for value in values])
        axes.set_title(f"{label}, against {axis_text(swept.against)}")
    panels[1].set_xlabel(swept.axis)
    handles = dict(zip(*reversed(panels[0].get_legend_handles_labels()), strict=True))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=2)


def axis_text(value: float | str) -> str:
    """Format a value of an axis."""
    return value if isinstance(value, str) else f"{value:g}"


def _reach(estimates: Sequence[Estimate], factor: float) -> list[list[float]]:
    """Lengths of the 95 % intervals below and above the means."""
    below = [0.0 if each.low is None else factor * (each.mean - each.low) for each in estimates]
    above = [0.0 if each.high is None else factor * (each.high - each.mean) for each in estimates]
    return [below, above]
