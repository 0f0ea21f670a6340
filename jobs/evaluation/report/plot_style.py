"""The style of every plot: colours, markers and scales of the systems, and figures saved as SVG and PNG."""

from __future__ import annotations

import re
import textwrap
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from jobs.evaluation.score.report import EvalReport, Standing
from jobs.evaluation.score.scorers import BEST_JUDGED

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
SIMULATED = "SIMULATION: no video, no model"
MOST_COMPARED = 8
"""Systems that a crowded plot has room for."""


def save_plot(
    draw: Callable[[Figure], None],
    folder: Path,
    name: str,
    *,
    width_in: float = COLUMN_IN,
    height_in: float = 2.4,
    simulated: bool = False,
) -> str:
    """Let `draw` fill a figure in the common style, save it as NAME.svg and NAME.png, and return the SVG.

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
    """Turn an SVG of `save_plot` into an element of a page: no comments, full width, in the page's colours."""
    element = re.sub(r"<!--.*?-->", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    element = re.sub(r'<svg [^>]*?(viewBox="[^"]*")[^>]*>', r'<svg \1 aria-hidden="true">', element, count=1)
    element = re.sub(r"<metadata>.*?</metadata>|(?<=<g) id=\"[^\"]*\"", "", element, flags=re.DOTALL)
    return re.sub("#[0-9a-f]{6}", lambda found: _themed(found[0]), element)


def colour(position: int) -> str:
    """Colour of the series at a position; colours repeat, and `marker` then differs."""
    return COLOURS[position % len(COLOURS)]


def marker(position: int) -> str:
    """Marker of the series at a position, so that no series differs from another by its colour alone."""
    return MARKERS[(position + position // len(COLOURS)) % len(MARKERS)]


def wrapped(name: str, width: int = 26) -> str:
    """Wrap a name into at most three lines of `width` characters."""
    return "\n".join(textwrap.wrap(name, width, max_lines=3, placeholder=" …"))


def only_grid(axes: Axes, axis: Literal["x", "y"]) -> None:
    """Show grid lines across one axis alone."""
    axes.grid(visible=False)
    axes.grid(visible=True, axis=axis)


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot to be drawn: its file's name, its title, a caption of a sentence or two, and its size."""

    name: str
    title: str
    caption: str
    draw: Callable[[Figure], None]
    width_in: float
    height_in: float


@dataclass(frozen=True, slots=True)
class Scale:
    """The name of a score, its unit, the factor that scores of 0 to 1 are multiplied by, and the decimals shown."""

    name: str
    unit: str
    factor: float
    decimals: int

    @property
    def label(self) -> str:
        return f"{self.name} ({self.unit})"

    def text(self, score: float, sign: bool = False) -> str:
        """Format a score, with a real minus sign if it is negative."""
        return f"{score * self.factor:{'+' if sign else ''}.{self.decimals}f}".replace("-", "−")


def scale_of(report: EvalReport) -> Scale:
    """Choose per cent of right answers, or the mean score of judged ones."""
    if report.scoring == "judge":
        return Scale("Score", f"0 to {BEST_JUDGED}", BEST_JUDGED, 2)
    return Scale("Accuracy", "%", 100, 1)


@dataclass(frozen=True, slots=True)
class SeriesStyle:
    """The colour, marker and line of a system in every plot of a report; where colours repeat, `inside` differs."""

    colour: str
    marker: str
    line: str = "-"
    inside: str | None = None


def series_styles(report: EvalReport) -> dict[str, SeriesStyle]:
    """Give every system its style, by its name: agents in colours, controls in grey."""
    agents = [each.name for each in agents_of(report)]
    controls = [each.name for each in report.standings if each.is_control]
    insides = (None, PAPER)
    drawn = {
        name: SeriesStyle(colour(n), marker(n), inside=insides[n // len(COLOURS) % len(insides)])
        for n, name in enumerate(agents)
    }
    return drawn | {name: SeriesStyle(MUTED, MARKERS[n % len(MARKERS)], "--") for n, name in enumerate(controls)}


def agents_of(report: EvalReport) -> list[Standing]:
    """List the standings of all systems except the controls."""
    return [each for each in report.standings if not each.is_control]


def select_compared(report: EvalReport, most: int = MOST_COMPARED) -> list[Standing]:
    """Select the standings that a crowded plot has room for: agents first, then controls, in the report's order."""
    controls = [each for each in report.standings if each.is_control]
    return (agents_of(report) + controls)[:most]


def breakdowns(report: EvalReport) -> tuple[str, ...]:
    """List the breakdowns of a report with more than one category, in its order."""
    names = {name: None for each in report.standings for name in each.groups}
    return tuple(name for name in names if len(categories(report, name)) > 1)


def categories(report: EvalReport, breakdown: str) -> dict[str, int]:
    """Count the questions in each category of a breakdown."""
    counts: dict[str, int] = {}
    for each in report.standings:
        for name, estimate in each.groups.get(breakdown, {}).items():
            counts[name] = max(counts.get(name, 0), estimate.questions)
    return counts


def breakdown_label(breakdown: str) -> str:
    """Write a breakdown's name as words."""
    return breakdown.replace("_", " ")


def left_out(report: EvalReport, shown: int) -> str:
    """Say how many systems a plot leaves out."""
    left = len(report.standings) - shown
    return f" {left} more agents are in the table." if left else ""


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
