"""Plots, drawn: their bars, lines and ticks stand where the figures say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from kinodex.jobs.eval.plots import (
    COLOURS,
    DEEPEST,
    PANELS_ACROSS,
    THEMED,
    Plot,
    distance_plot,
    entropy_plot,
    for_page,
    plots,
    rounds_plot,
    save_plot,
)
from kinodex.jobs.eval.report import Depth, EvalReport, Standing
from tests.support.runs.reports import ABLATIONS, AGENTS, CONTROLS, sample_report

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


def heights(line: Line2D) -> list[float]:
    return [float(height) for height in np.asarray(line.get_ydata())]


def test_bars_are_shares_of_questions_and_their_right_part(report: EvalReport) -> None:
    depths = (Depth(1, 5, 0.5, 0.8), Depth(DEEPEST + 1, 2, 0.2, 1.0), Depth(DEEPEST + 4, 3, 0.3, 0.5))
    figure = drawn(rounds_plot, report, replace(report.standings[0], depths=depths))
    bars = [(round(bar.get_x() + bar.get_width() / 2), bar.get_height()) for bar in rectangles(figure)]
    deepest = DEEPEST + 1
    assert bars == [(1, 50.0), (1, pytest.approx(40.0)), (deepest, 50.0), (deepest, pytest.approx(35.0))]
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.texts] == ["80", "70"]
    assert [label.get_text() for label in axes.get_xticklabels()][-1] == f"{deepest}+"


def test_entropy_before_fusion_is_on_the_left_and_after_it_on_the_right(report: EvalReport) -> None:
    entropy = {"intrinsic": (0.02, 0.02, 0.98, 0.98), "fused": (0.52,)}
    figure = drawn(entropy_plot, report, replace(report.standings[0], entropy=entropy))
    bars = sorted((bar.get_width(), round(bar.get_y(), 2)) for bar in rectangles(figure))
    assert bars == [(-50.0, 0.0), (-50.0, 0.95), (100.0, 0.5)]
    means = [heights(line)[0] for line in figure.axes[0].lines if line.get_linestyle() == "--"]
    assert means == pytest.approx([0.5, 0.52])


def test_distances_rise_from_the_share_that_overlaps_to_all_rounds(report: EvalReport) -> None:
    distance = {"chosen": (0.0, 100.0, 0.0, 5.0), "best": ()}
    figure = drawn(distance_plot, report, replace(report.standings[0], distance=distance))
    (line,) = figure.axes[0].lines
    assert np.asarray(line.get_xdata()).tolist() == [0, 0, 0, 5, 100]
    assert heights(line) == [50, 25, 50, 75, 100]
    assert figure.axes[0].get_xlim() == (0, 100)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["explored next", "highest score"]


def test_panels_stand_in_even_rows_under_their_names(report: EvalReport) -> None:
    count = PANELS_ACROSS + 1
    shown = [replace(report.standings[0], name=f"system {number}") for number in range(count)]
    many = replace(report, standings=tuple(shown))
    figure = drawn(distance_plot, many, *shown)
    assert [axes.get_title() for axes in figure.axes] == [each.name for each in shown]
    places = [axes.get_subplotspec() for axes in figure.axes]
    assert {place.get_geometry()[:2] for place in places if place is not None} == {(2, 3)}
    assert None not in places


# Plots of accuracy with many systems and categories.


def test_many_contenders_and_categories_still_fit_a_page_of_a_paper():
    report = sample_report((*AGENTS, *ABLATIONS, *CONTROLS), questions=100)
    many = {f"category {number}": report.standings[0].accuracy for number in range(50)}
    report = replace(report, standings=tuple(replace(each, groups={"topic": many}) for each in report.standings))
    assert all(plot.width_in <= 7.2 and plot.height_in <= 10 for plot in plots(report))


# Plots as files and as elements of a page.


def test_a_plot_in_a_page_takes_its_colours_from_it(tmp_path):
    def draw(figure):
        figure.subplots().plot([0, 1], [0, 1], color=COLOURS[0])

    element = for_page(save_plot(draw, tmp_path, "line"))
    assert element.startswith("<svg viewBox") and "<!--" not in element and "<metadata" not in element
    assert "var(--c0)" in element and "var(--ink)" in element
    assert not any(f"#{name}" in element for name in THEMED)
