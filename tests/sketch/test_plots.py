"""Plots of sweeps: the drawn lines are the means of the points, and every plot is marked as simulated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from kinodex.jobs.eval.plots import SIMULATED
from kinodex.jobs.eval.score import Estimate
from tests.sketch import simulation
from tests.sketch.simulation import PANELS, Means, Point, SweepResult, axis_text, plot_sweep


def means(mean: float, reach: float | None = None) -> Means:
    low, high = (None, None) if reach is None else (mean - reach, mean + reach)
    return Means(*[Estimate(mean, reach, low, high, 10, 2)] * 5)


SHIFTS = {"eea": 0.2, "vca": 0.0}
CONDITIONS = SweepResult(
    *("noise", "Noise of the rewards", "points", "conditions", "eea"),
    tuple(Point(x, agent, means(x / 10 + shift, 0.1), None) for x in (1.0, 4.0) for agent, shift in SHIFTS.items()),
)
CHOICE = SweepResult(
    *("pooling", "Query score of a segment's anchors", "pooling", "choice", "mean"),
    tuple(
        Point(x, world, means(0.5), None if x == "mean" else means(gain))
        for x, gain in (("mean", 0.0), ("sum", 0.25))
        for world in ("weak matches", "strong matches")
    ),
    (Point("mean", "all worlds", means(0.0), None), Point("sum", "all worlds", means(0.25, 0.05), None)),
)


def error_bars(axes: Axes) -> list[ErrorbarContainer]:
    return [each for each in axes.containers if isinstance(each, ErrorbarContainer)]


def heights(line: Any) -> list[float]:
    return [float(height) for height in np.asarray(line.get_ydata())]


def test_under_conditions_a_panel_a_figure_and_a_line_an_agent() -> None:
    figure = Figure(layout="constrained")
    simulation._draw_conditions(figure, CONDITIONS)
    assert [axes.get_title() for axes in figure.axes] == [label for label, _ in PANELS.values()]
    found, frames, _ = figure.axes
    assert [line.get_label() for line in error_bars(found)] == ["eea", "vca"]
    assert [heights(each.lines[0]) for each in error_bars(found)] == [
        pytest.approx([30.0, 60.0]),
        pytest.approx([10.0, 40.0]),
    ]
    assert heights(error_bars(frames)[0].lines[0]) == pytest.approx([0.3, 0.6])
    (bars,) = error_bars(found)[0].lines[2]
    assert [y for _, y in bars.get_segments()[0]] == pytest.approx([20.0, 40.0])
    assert frames.get_xlabel() == "points"


def test_a_choice_is_drawn_as_differences_from_the_reference_value() -> None:
    figure = Figure(layout="constrained")
    simulation._draw_choice(figure, CHOICE)
    found = figure.axes[0]
    worlds = [heights(line) for line in found.lines if line.get_label() == "one world"]
    assert worlds == [[0.0, 25.0], [0.0, 25.0]]
    (pooled,) = error_bars(found)
    assert heights(pooled.lines[0]) == [0.0, 25.0]
    assert [label.get_text() for label in found.get_xticklabels()] == ["mean", "sum"]
    assert found.get_title() == "evidence shown, %, against mean"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["one world", "all worlds"]


def test_a_saved_plot_is_marked_as_a_simulation(tmp_path: Path) -> None:
    svg = plot_sweep(CHOICE, tmp_path)
    assert SIMULATED in svg
    assert svg == (tmp_path / "pooling.svg").read_text(encoding="utf-8")
    assert (tmp_path / "pooling.png").read_bytes().startswith(b"\x89PNG")


def test_values_of_an_axis_are_words_or_short_numbers() -> None:
    assert [axis_text(value) for value in ("mean", 4.0, 0.25)] == ["mean", "4", "0.25"]
