"""Plots as files and as elements of a page."""

from __future__ import annotations

from kinodex.jobs.eval.plots import COLOURS, THEMED, for_page, save_plot


def test_a_plot_in_a_page_takes_its_colours_from_it(tmp_path):
    def draw(figure):
        figure.subplots().plot([0, 1], [0, 1], color=COLOURS[0])

    element = for_page(save_plot(draw, tmp_path, "line"))
    assert element.startswith("<svg viewBox") and "<!--" not in element and "<metadata" not in element
    assert "var(--c0)" in element and "var(--ink)" in element
    assert not any(f"#{name}" in element for name in THEMED)
