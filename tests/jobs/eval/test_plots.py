"""Plots, drawn: their bars, lines and ticks stand where the figures say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from kinodex.jobs.eval.plots.drawing import COLOURS, THEMED, Plot, for_page, save_plot
from kinodex.jobs.eval.plots.search import DEEPEST, rounds_plot
from kinodex.jobs.eval.report import Depth, EvalReport, Standing
from tests.support.runs.reports import AGENTS, CONTROLS, sample_report

# Plots of the search, drawn: their bars, lines and ticks stand where the figures say.


@pytest.fixture(scope="module")
def report() -> EvalReport:
    return sample_report((*AGENTS[:2], CONTROLS[2]), questions=40)


def drawn(make: Callable[[EvalReport], Iterator[Plot]], report: EvalReport, *shown: Standing) -> Figure:
    """The plot of a report of these systems alone."""
    figure = Figure(layout="constrained")
    (plot,) = make(replace(report, standings=shown))
    plot.draw(figure)
    return figure


def rectangles(figure: Figure) -> list[Rectangle]:
    bars = [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]
    return [bar for bar in bars if bar.get_height() and bar.get_width()]


def test_bars_are_shares_of_questions_and_their_right_part(report: EvalReport) -> None:
    depths = (Depth(1, 5, 0.5, 0.8), Depth(DEEPEST + 1, 2, 0.2, 1.0), Depth(DEEPEST + 4, 3, 0.3, 0.5))
    figure = drawn(rounds_plot, report, replace(report.standings[0], depths=depths))
    bars = [(round(bar.get_x() + bar.get_width() / 2), bar.get_height()) for bar in rectangles(figure)]
    deepest = DEEPEST + 1
    assert bars == [(1, 50.0), (1, pytest.approx(40.0)), (deepest, 50.0), (deepest, pytest.approx(35.0))]
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.texts] == ["80", "70"]
    assert [label.get_text() for label in axes.get_xticklabels()][-1] == f"{deepest}+"


# Plots as files and as elements of a page.


def test_a_plot_in_a_page_takes_its_colours_from_it(tmp_path):
    def draw(figure):
        figure.subplots().plot([0, 1], [0, 1], color=COLOURS[0])

    element = for_page(save_plot(draw, tmp_path, "line"))
    assert element.startswith("<svg viewBox") and "<!--" not in element and "<metadata" not in element
    assert "var(--c0)" in element and "var(--ink)" in element
    assert not any(f"#{name}" in element for name in THEMED)
