"""The common style of plots, and the marks that several of them have: intervals, named rows, legends."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kinodex.jobs.eval.plots.labels import Scale, wrapped
from kinodex.jobs.eval.report import EvalReport, Standing, agents_of
from kinodex.jobs.eval.scoring.estimates import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


COLUMN_IN, PAGE_IN = 3.5, 7.2
"""Widths in inches of a plot over one column of a two-column paper, and over both."""
DPI = 300
STYLE = Path(__file__).with_name("paper.mplstyle")

INK, MUTED, GRID, PAPER = "#1d1d1f", "#6a6a70", "#e3e3e6", "#ffffff"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Six that people with any colour vision can distinguish (Okabe and Ito; Wong, Nature Methods 8, 441, 2011)."""
MARKERS = ("o", "s", "D", "^", "v", "P")
THEMED = {INK: "ink", MUTED: "muted", GRID: "grid", PAPER: "paper", **{c: f"c{i}" for i, c in enumerate(COLOURS)}}
"""The custom property that stands for each colour in a page, which may be dark."""
MOST_COMPARED = 8
"""Contenders that a crowded plot has room for."""


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot to be drawn: its file's name, its title, a caption of a sentence or two, and its size."""

    name: str
    title: str
    caption: str
    draw: Callable[[Figure], None]
    width_in: float = COLUMN_IN
    height_in: float = 2.4


def save_plot(
    draw: Callable[[Figure], None],
    folder: Path,
    name: str,
    *,
    width_in: float = COLUMN_IN,
    height_in: float = 2.4,
) -> str:
    """Let `draw` fill a figure in the common style, save it as NAME.svg and NAME.png, and return the SVG."""
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
        figure.savefig(folder / f"{name}.png", dpi=DPI)
        figure.set_layout_engine("none")  # both are laid out alike, and once
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    return (folder / f"{name}.svg").read_text(encoding="utf-8")


def for_page(svg: str) -> str:
    """Turn an SVG of `save_plot` into an element of a page: no comments, full width, in the page's colours."""
    element = re.sub(r"<!--.*?-->", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    element = re.sub(r'<svg [^>]*?(viewBox="[^"]*")[^>]*>', r'<svg \1 aria-hidden="true">', element, count=1)
    element = re.sub(r"<metadata>.*?</metadata>|(?<=<g) id=\"[^\"]*\"", "", element, flags=re.DOTALL)
    return re.sub("#[0-9a-f]{6}", lambda hue: f"var(--{THEMED[hue[0]]})" if hue[0] in THEMED else hue[0], element)


def only_grid(axes: Axes, axis: Literal["x", "y"]) -> None:
    """Show grid lines across one axis alone."""
    axes.grid(visible=False)
    axes.grid(visible=True, axis=axis)


@dataclass(frozen=True, slots=True)
class SeriesStyle:
    """The colour, marker and line of a contender in every plot of a report; where colours repeat, `inside` differs."""

    colour: str
    marker: str
    line: str = "-"
    inside: str | None = None


def series_styles(report: EvalReport) -> dict[str, SeriesStyle]:
    """Give every contender its style, by its name: agents in colours, controls in grey."""
    agents = [each.name for each in agents_of(report)]
    controls = [each.name for each in report.standings if each.is_control]
    drawn = {}
    for n, name in enumerate(agents):
        again = n // len(COLOURS)  # colours repeat: then marker and inside differ
        look = COLOURS[n % len(COLOURS)], MARKERS[(n + again) % len(MARKERS)]
        drawn[name] = SeriesStyle(*look, inside=PAPER if again % 2 else None)
    return drawn | {name: SeriesStyle(MUTED, MARKERS[n % len(MARKERS)], "--") for n, name in enumerate(controls)}


def select_compared(report: EvalReport, most: int = MOST_COMPARED) -> list[Standing]:
    """Select the standings that a crowded plot has room for: agents first, then controls, in the report's order."""
    controls = [each for each in report.standings if each.is_control]
    return (agents_of(report) + controls)[:most]


def draw_interval(
    axes: Axes, scale: Scale, estimate: Estimate, at: float, look: SeriesStyle, across: bool = False, label: str = ""
) -> None:
    """Draw a mean with its interval at a place of the other axis."""
    mean = estimate.mean * scale.factor
    reach = None
    if estimate.low is not None and estimate.high is not None:
        reach = [[mean - estimate.low * scale.factor], [estimate.high * scale.factor - mean]]
    x, y = (mean, at) if across else (at, mean)
    axes.errorbar(
        [x],
        [y],
        xerr=reach if across else None,
        yerr=None if across else reach,
        fmt=look.marker,
        color=look.colour,
        markerfacecolor=look.inside or look.colour,
        markeredgecolor=look.colour if look.inside else PAPER,
        markeredgewidth=0.9 if look.inside else 0.6,
        elinewidth=1.0,
        zorder=3,
        label=label or None,
    )


def name_rows(axes: Axes, names: Sequence[str], below: float = 0.4) -> None:
    """Name the rows of a plot, the first at the top."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - below, -0.6 if below == 0.4 else -below)
    axes.tick_params(axis="y", length=0)


def write_beside(axes: Axes, y: float, text: str, hue: str = INK) -> None:
    """Write a row's figures at the right of the plot."""
    axes.annotate(text, (1.02, y), xycoords=("axes fraction", "data"), va="center_baseline", fontsize=6.5, color=hue)


def draw_legend(figure: Figure, panels: Sequence[Axes], across: int) -> None:
    """Write every name of some panels once, under the plot, in even rows of at most `across`."""
    held = {name: handle for axes in panels for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    down = -(-len(held) // across)
    names = [wrapped(name, 34) for name in held]
    figure.legend(list(held.values()), names, loc="outside lower center", ncols=-(-len(held) // down))
