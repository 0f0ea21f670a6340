"""The style of every plot, and how one is saved: as SVG and PNG, at the width of a paper's column or page."""

from __future__ import annotations

import re
import textwrap
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN_IN, PAGE_IN = 3.5, 7.2
"""Widths in inches of a plot over one column of a two-column paper, and over both."""
DPI = 300
STYLE = Path(__file__).with_name("paper.mplstyle")

INK, MUTED, GRID, PAPER = "#1d1d1f", "#6a6a70", "#e3e3e6", "#ffffff"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Six that people with any colour vision tell apart (Okabe and Ito; Wong, Nature Methods 8, 441, 2011)."""
MARKERS = ("o", "s", "D", "^", "v", "P")
THEMED = {INK: "ink", MUTED: "muted", GRID: "grid", PAPER: "paper", **{c: f"c{i}" for i, c in enumerate(COLOURS)}}
"""The custom property that stands for each colour in a page, which may be dark."""
SIMULATED = "SIMULATION: no video, no model"


def save_plot(
    draw: Callable[[Figure], None],
    folder: Path,
    name: str,
    *,
    width_in: float = COLUMN_IN,
    height_in: float = 2.4,
    simulated: bool = False,
) -> str:
    """Let `draw` fill a figure in the common style; save it as NAME.svg and NAME.png. Gives the SVG.

    A figure of a simulation is marked as one over its top and through every axes.
    """
    import matplotlib
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rc_file(STYLE)
        # A category in Chinese shows as boxes here; the page's tables have it.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=(width_in, height_in), layout="constrained")
        draw(figure)
        if simulated:
            _mark(figure)
        figure.savefig(folder / f"{name}.png", dpi=DPI)
        # Both are laid out alike, and once.
        figure.set_layout_engine("none")
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    return (folder / f"{name}.svg").read_text(encoding="utf-8")


def for_page(svg: str) -> str:
    """An SVG of `save_plot` as an element of a page: with no comments, as wide as its place, in the page's colours."""
    element = re.sub(r"<!--.*?-->", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    element = re.sub(r'<svg [^>]*?(viewBox="[^"]*")[^>]*>', r'<svg \1 aria-hidden="true">', element, count=1)
    element = re.sub(r"<metadata>.*?</metadata>|(?<=<g) id=\"[^\"]*\"", "", element, flags=re.DOTALL)
    return re.sub("#[0-9a-f]{6}", lambda found: _themed(found[0]), element)


def colour(position: int) -> str:
    """The colour of the contender or series at a position; they repeat, and `marker` then differs."""
    return COLOURS[position % len(COLOURS)]


def marker(position: int) -> str:
    """The marker of the contender or series at a position, so that none is told apart by its colour alone."""
    return MARKERS[(position + position // len(COLOURS)) % len(MARKERS)]


def wrapped(name: str, width: int = 26) -> str:
    """A name in at most three lines of `width` characters."""
    return "\n".join(textwrap.wrap(name, width, max_lines=3, placeholder=" …"))


def only_grid(axes: Axes, axis: Literal["x", "y"]) -> None:
    """Grid lines across one axis, "x" or "y", alone."""
    axes.grid(visible=False)
    axes.grid(visible=True, axis=axis)


def _themed(hex_colour: str) -> str:
    name = THEMED.get(hex_colour)
    return f"var(--{name})" if name else hex_colour


def _mark(figure: Figure) -> None:
    figure.suptitle(SIMULATED, fontsize=7, fontweight="bold", color=COLOURS[1], x=0.99, ha="right")
    for axes in figure.axes:
        axes.text(
            0.5,
            0.5,
            "SIMULATION",
            transform=axes.transAxes,
            ha="center",
            va="center",
            rotation=20,
            fontsize=14,
            fontweight="bold",
            color=MUTED,
            alpha=0.15,
            zorder=0.5,
        )
