"""A report as one page for a browser, which needs no network, and its plots, saved beside it as SVG and PNG."""

from __future__ import annotations

import re
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kinodex.jobs.eval import tables
from kinodex.jobs.eval.folder import FIGURES, PAGE, slug
from kinodex.jobs.eval.report import EvalReport, Pair, Standing
from kinodex.jobs.eval.score import BEST_JUDGED, FEW_VIDEOS, Estimate
from kinodex.jobs.json_files import write_whole

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

COLUMN_IN, PAGE_IN = 3.5, 7.2
"""Widths in inches of a plot over one column of a two-column paper, and over both."""
DPI = 300
STYLE, TEMPLATES = (Path(__file__).with_name(name) for name in ("paper.mplstyle", "templates"))

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


def plots(report: EvalReport) -> tuple[Plot, ...]:
    """List the plots that a report has the figures for; contenders whose answers cannot be scored are in none."""
    scored = [each for each in report.standings if each.accuracy.questions]
    pairs = [each for each in report.pairs if each.difference.questions]
    report = replace(report, standings=tuple(scored), pairs=tuple(pairs))
    of_accuracy = accuracy_plot, frames_plot, cost_plot, duration_plot, category_plots, pair_plot
    return tuple(plot for kind in (*of_accuracy, rounds_plot, entropy_plot, distance_plot) for plot in kind(report))


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


def wrapped(name: str, width: int = 26) -> str:
    """Wrap a name into at most three lines of `width` characters."""
    return "\n".join(textwrap.wrap(name, width, max_lines=3, placeholder=" …"))


def only_grid(axes: Axes, axis: Literal["x", "y"]) -> None:
    """Show grid lines across one axis alone."""
    axes.grid(visible=False)
    axes.grid(visible=True, axis=axis)


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


def agents_of(report: EvalReport) -> list[Standing]:
    """List the standings of all contenders except the controls."""
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


def left_out(report: EvalReport, shown: int) -> str:
    """Say how many contenders a plot leaves out."""
    left = len(report.standings) - shown
    return f" {left} more agents are in the table." if left else ""


# Plots of accuracy: over all questions, against the cost, by category, and in pairs.

COSTS = {"frames": "Frames shown a question", "tokens": "Tokens a question", "cost": "Money a question"}
MOST_PAIRS, MOST_CATEGORIES = 20, 30
TALLEST_IN = 9.0
"""Largest height of a plot that fits a page of a paper."""
HEAD_IN, ROW_IN, LINE_IN = 0.8, 0.12, 0.085
"""Heights in a plot of categories: its axis and legend, a row's margins, and a contender in a row."""
FIGURE_SPACE = "\u2007"
LOG_FROM = 8.0
"""Factor between costs above which their axis is logarithmic."""


def accuracy_plot(report: EvalReport) -> Iterator[Plot]:
    """A row a contender, agents over controls; a line through the plot at each control and at chance."""
    if not report.standings:
        return
    scale, rows = scale_of(report), agents_of(report) + [each for each in report.standings if each.is_control]

    def draw(figure: Figure) -> None:
        axes, looks = figure.subplots(), series_styles(report)
        only_grid(axes, "x")
        for y, each in enumerate(rows):
            if each.is_control:
                axes.axvline(each.accuracy.mean * scale.factor, color=MUTED, linewidth=0.7, linestyle="--", zorder=1)
            _interval(axes, scale, each.accuracy, y, looks[each.name], across=True)
            _beside(axes, y, scale.text(each.accuracy.mean))
        names = [wrapped(each.name) for each in rows]
        if report.chance is not None:
            axes.axvline(report.chance * scale.factor, color=INK, linewidth=0.8, linestyle=":", zorder=1)
            _beside(axes, len(rows), scale.text(report.chance))
            names.append("chance")
        _name_rows(axes, names)
        axes.set_xlabel(scale.label)

    caption = f"{scale.name} over all questions with its 95 % confidence interval. Dashed lines: the controls."
    height_in = 0.6 + 0.27 * (len(rows) + (report.chance is not None))
    yield Plot("accuracy", f"{scale.name} of every agent and control", caption, draw, COLUMN_IN, height_in)


def cost_plot(report: EvalReport) -> Iterator[Plot]:
    """A panel a cost, with a point for every contender that has it; a line at each without costs."""
    held = {
        name: label
        for name, label in COSTS.items()
        if any(name in each.costs and each.costs[name].mean > 0 for each in agents_of(report))
    }
    if not held:
        return
    scale = scale_of(report)

    def draw(figure: Figure) -> None:
        panels = figure.subplots(1, len(held), sharey=True, squeeze=False)[0]
        looks = series_styles(report)
        flat = [each for each in report.standings if each.imported or (each.is_control and not any(each.frames))]
        for axes, (cost, label) in zip(panels, held.items(), strict=True):
            points = [each for each in report.standings if each not in flat and each.costs[cost].mean > 0]
            for each in points:
                _interval(axes, scale, each.accuracy, each.costs[cost].mean, looks[each.name], label=each.name)
            _widen(axes, [each.costs[cost].mean for each in points])
            for n, each in enumerate(flat):
                y = each.accuracy.mean * scale.factor
                axes.axhline(y, color=MUTED, linewidth=0.8, linestyle="--", zorder=1)
                place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
                at = (0.01 + n / len(flat), y)
                axes.annotate(each.name, at, xytext=(0, 1.5), **place, fontsize=6, color=MUTED)
            axes.set_xlabel(label)
        panels[0].set_ylabel(scale.label)
        _legend(figure, panels, across=3 if len(held) > 1 else 1)

    caption = (
        f"{scale.name} against what a question takes on average, with 95 % confidence intervals. Up and to the left is "
        "better. Dashed lines: controls that see no frames, and imported answers, whose costs are not known."
    )
    spent = [label.split()[0].lower() for label in held.values()]
    title = f"{scale.name} against {' and '.join(filter(None, [', '.join(spent[:-1]), spent[-1]]))}"
    yield Plot("costs", title, caption, draw, PAGE_IN if len(held) > 1 else COLUMN_IN, 3.0)


def duration_plot(report: EvalReport) -> Iterator[Plot]:
    """A group a range of lengths, and a line a contender through them."""
    if "duration" not in breakdowns(report):
        return
    scale, shown, counts = scale_of(report), select_compared(report), categories(report, "duration")

    def draw(figure: Figure) -> None:
        axes, looks = figure.subplots(), series_styles(report)
        only_grid(axes, "y")
        for n, each in enumerate(shown):
            shift = (n - (len(shown) - 1) / 2) * 0.7 / len(shown)
            own, look = each.groups.get("duration", {}), looks[each.name]
            held = [(x + shift, own[name]) for x, name in enumerate(counts) if name in own]
            xs, ys = [x for x, _ in held], [estimate.mean * scale.factor for _, estimate in held]
            axes.plot(xs, ys, color=look.colour, linestyle=look.line, linewidth=0.8, alpha=0.5)
            for number, (x, estimate) in enumerate(held):
                _interval(axes, scale, estimate, x, look, label="" if number else each.name)
        axes.set_xticks(range(len(counts)), [f"{name}\nn = {count:,}" for name, count in counts.items()])
        axes.tick_params(axis="x", length=0)
        axes.set_ylabel(scale.label)
        _legend(figure, [axes], across=4)

    caption = (
        f"{scale.name} by the length of the video, as Figure 8 of EEA has it, with 95 % confidence intervals; "
        f"n questions in each group.{left_out(report, len(shown))}"
    )
    yield Plot("durations", f"{scale.name} by the length of the video", caption, draw, PAGE_IN, 2.9)


def category_plots(report: EvalReport) -> Iterator[Plot]:
    """For each breakdown a row a category, with every contender's interval in it."""
    for breakdown in breakdowns(report):
        if breakdown != "duration":
            yield _category_plot(report, breakdown)


def _category_plot(report: EvalReport, breakdown: str) -> Plot:
    scale, label, held = scale_of(report), breakdown.replace("_", " "), categories(report, breakdown)
    often = sorted(held, key=lambda name: -held[name])[:MOST_CATEGORIES]
    counts = {name: held[name] for name in held if name in often}
    room = int(((TALLEST_IN - HEAD_IN) / len(counts) - ROW_IN) / LINE_IN)
    shown = select_compared(report, max(2, min(MOST_COMPARED, room)))

    def draw(figure: Figure) -> None:
        axes, looks = figure.subplots(), series_styles(report)
        only_grid(axes, "x")
        for n, each in enumerate(shown):
            shift = (n - (len(shown) - 1) / 2) * 0.74 / len(shown)
            own = each.groups.get(breakdown, {})
            for number, (y, name) in enumerate((y, name) for y, name in enumerate(counts) if name in own):
                _interval(axes, scale, own[name], y + shift, looks[each.name], True, "" if number else each.name)
        names = [f"{wrapped(name)}\nn = {count:,}" for name, count in counts.items()]
        _name_rows(axes, names, 0.5)
        for y in range(1, len(names)):
            axes.axhline(y - 0.5, color=MUTED, linewidth=0.3)
        axes.set_xlabel(scale.label)
        _legend(figure, [axes], across=2)

    caption = f"{scale.name} by {label} with 95 % confidence intervals; n questions in each."
    caption += left_out(report, len(shown)) + (" Rare categories: see the table." if len(counts) < len(held) else "")
    height_in = HEAD_IN + len(counts) * (ROW_IN + LINE_IN * len(shown))
    return Plot(f"by_{slug(breakdown)}", f"{scale.name} by {label}", caption, draw, COLUMN_IN * 1.4, height_in)


def pair_plot(report: EvalReport) -> Iterator[Plot]:
    """A forest plot: a row a pair with its difference, and the p-value at its right."""
    pairs, scale = report.pairs[:MOST_PAIRS], scale_of(report)
    if not pairs:
        return

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        only_grid(axes, "x")
        axes.axvline(0, color=INK, linewidth=0.8)
        for y, pair in enumerate(pairs):
            low, high = pair.difference.low, pair.difference.high
            hue = INK if low is not None and high is not None and (low > 0 or high < 0) else MUTED
            _interval(axes, scale, pair.difference, y, SeriesStyle(hue, "s"), across=True)
            # Spaces as wide as a digit, so that the p-values stand under each other.
            text = scale.text(pair.difference.mean, sign=True).rjust(5, FIGURE_SPACE)
            _beside(axes, y, f"{text}   {pair_p_label(pair)}", hue)
        _name_rows(axes, [wrapped(f"{pair.a} − {pair.b}", 36) for pair in pairs])
        axes.tick_params(axis="y", labelsize=6.5)
        of = scale.label.lower() if scale.unit != "%" else "accuracy (percentage points)"
        axes.set_xlabel(f"Difference in {of}")

    caption = (
        f"{scale.name} of the first less that of the second on the same questions, with 95 % confidence "
        "intervals (none with too few videos). A difference without one, or whose one touches 0, is grey: it may be "
        "chance."
    )
    if len(pairs) < len(report.pairs):
        caption += f" The first {len(pairs)} of {len(report.pairs)} pairs; the table has all."
    yield Plot("pairs", "Differences between agents", caption, draw, COLUMN_IN * 1.4, 0.6 + 0.31 * len(pairs))


def pair_p_label(pair: Pair) -> str:
    """Format the p-value of a pair, clustered where there is one, else the exact one."""
    if pair.p_value is None and pair.exact_p_value is not None:
        return f"exact {p_label(pair.exact_p_value)}"
    return p_label(pair.p_value)


def p_label(p_value: float | None) -> str:
    """Format a p-value with as many digits as matter."""
    if p_value is None:
        return "p = ?"
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.{3 if p_value < 0.1 else 2}f}"


def _interval(
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


def _name_rows(axes: Axes, names: Sequence[str], below: float = 0.4) -> None:
    """Name the rows of a plot, the first at the top."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - below, -0.6 if below == 0.4 else -below)
    axes.tick_params(axis="y", length=0)


def _beside(axes: Axes, y: float, text: str, hue: str = INK) -> None:
    """Write a row's figures at the right of the plot."""
    axes.annotate(text, (1.02, y), xycoords=("axes fraction", "data"), va="center_baseline", fontsize=6.5, color=hue)


def _widen(axes: Axes, values: Sequence[float]) -> None:
    """Set a logarithmic axis if costs are far apart, else one from 0."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    if values and max(values) / min(values) > LOG_FROM:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if max(values) / min(values) < 100 else (1,)))
        axes.set_xlim(min(values) / 1.6, max(values) * 1.6)
        axes.xaxis.set_minor_formatter(NullFormatter())
    elif values:
        axes.set_xlim(0, max(values) * 1.15)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))


def _legend(figure: Figure, panels: Sequence[Axes], across: int) -> None:
    """Write every name of some panels once, under the plot, in even rows of at most `across`."""
    held = {name: handle for axes in panels for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    down = -(-len(held) // across)
    names = [wrapped(name, 34) for name in held]
    figure.legend(list(held.values()), names, loc="outside lower center", ncols=-(-len(held) // down))


# Plots of the search: frames, rounds, the entropy of rewards, and the distance to the evidence.

PANELS_ACROSS = 4
DEEPEST = 8
"""Questions that took more rounds than this share one bar."""
ENTROPY_BINS = 20
NEAR_S = 10
"""Distances below this are drawn on a linear scale, which can show 0, and above it on a logarithmic one."""


def frames_plot(report: EvalReport) -> Iterator[Plot]:
    """A box of the frames of all questions, a row a contender."""
    shown = [each for each in report.standings if any(each.frames)]
    if not shown:
        return

    def draw(figure: Figure) -> None:
        axes, looks = figure.subplots(), series_styles(report)
        only_grid(axes, "x")
        for y, each in enumerate(shown):
            hue = looks[each.name].colour
            axes.boxplot(
                [list(each.frames)],
                positions=[y],
                orientation="horizontal",
                widths=0.55,
                whis=(5, 95),
                showfliers=False,
                showmeans=True,
                patch_artist=True,
                boxprops={"facecolor": hue, "edgecolor": hue, "alpha": 0.45, "linewidth": 0.8},
                medianprops={"color": INK, "linewidth": 1.2},
                whiskerprops={"color": hue},
                capprops={"color": hue},
                meanprops={"marker": "D", "markerfacecolor": PAPER, "markeredgecolor": INK, "markersize": 3.5},
            )
        _name_rows(axes, [wrapped(each.name) for each in shown])
        axes.set_xlim(left=0)
        axes.set_xlabel("Frames shown a question")

    caption = (
        "Different frames that a model saw a question. Box: the middle half, with the median; whiskers: 5 to 95 %; "
        "white diamond: the mean."
    )
    yield Plot("frames", "Frames that a question takes", caption, draw, COLUMN_IN, 0.6 + 0.27 * len(shown))


def rounds_plot(report: EvalReport) -> Iterator[Plot]:
    """Bars of shares by round, the right part solid, with the accuracy over each."""
    scale, shown = scale_of(report), [each for each in agents_of(report) if len(each.depths) > 1][:MOST_COMPARED]

    def draw(figure: Figure) -> None:
        looks = series_styles(report)
        last = min(DEEPEST + 1, max(depth.rounds for each in shown for depth in each.depths))
        for axes, each in _panels(figure, shown):
            only_grid(axes, "y")
            hue = looks[each.name].colour
            for x, share, accuracy in _by_round(each):
                axes.bar(x, share * 100, color=hue, alpha=0.3, width=0.8)
                axes.bar(x, share * accuracy * 100, color=hue, width=0.8)
                text = f"{accuracy * scale.factor:.{scale.decimals - 1}f}"
                place: dict[str, Any] = {"xytext": (0, 1.5), "textcoords": "offset points", "ha": "center"}
                axes.annotate(text, (x, share * 100), **place, fontsize=6)
            names = [*map(str, range(1, DEEPEST + 1)), f"{DEEPEST + 1}+"][:last]
            axes.set_xticks(range(1, last + 1), names, fontsize=6)
            axes.set_xlim(0.4, last + 0.6)
            axes.set_xlabel("Rounds")
            axes.margins(y=0.12)
        figure.axes[0].set_ylabel("Questions (%)")

    caption = (
        "The share of questions that ended after so many rounds (bar), the part of them answered rightly (solid), and "
        f"the {scale.name.lower()} among them (number), as Figure 7 of EEA has it."
    )
    yield from _panelled("rounds", "Rounds after which questions end", caption, draw, shown)


def entropy_plot(report: EvalReport) -> Iterator[Plot]:
    """Shares of rounds by entropy, upright: before fusion to the left, after it to the right."""
    shown = [each for each in agents_of(report) if any(each.entropy.values())][:MOST_COMPARED]

    def draw(figure: Figure) -> None:
        edges = np.linspace(0, 1, ENTROPY_BINS + 1)
        most = max(_shares(values, edges).max() for each in shown for values in each.entropy.values() if values)
        for axes, each in _panels(figure, shown):
            only_grid(axes, "x")
            for sign, name, hue in ((-1, "intrinsic", COLOURS[1]), (1, "fused", COLOURS[0])):
                values = each.entropy.get(name, ())
                if values:
                    shares = sign * _shares(values, edges)
                    axes.barh(edges[:-1], shares, 1 / ENTROPY_BINS, align="edge", color=hue, alpha=0.75, linewidth=0)
                    reach = (0.5, 1.0) if sign > 0 else (0.0, 0.5)
                    axes.axhline(float(np.mean(values)), *reach, color=hue, linewidth=1.0, linestyle="--")
            axes.axvline(0, color=MUTED, linewidth=0.6)
            axes.set_xlim(-most * 1.1, most * 1.1)
            axes.set_ylim(0, 1)
            axes.xaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
            axes.set_xlabel("intrinsic | fused\nRounds (%)")
        figure.axes[0].set_ylabel("Entropy")

    caption = (
        "Normalised entropy of the candidates' rewards in every round, before fusion with the queries' scores (left) "
        "and after (right), as Figure 4 of EEA has it. At 1 all segments look alike; at 0 one stands out. Lines: means."
    )
    yield from _panelled("entropy", "How well rewards distinguish segments", caption, draw, shown)


def distance_plot(report: EvalReport) -> Iterator[Plot]:
    """The share of rounds whose segment lies within a distance of the evidence: explored next, and best."""
    shown = [each for each in agents_of(report) if any(each.distance.values())][:MOST_COMPARED]

    def draw(figure: Figure) -> None:
        from matplotlib.lines import Line2D

        furthest = max(NEAR_S, *(value for each in shown for values in each.distance.values() for value in values))
        for axes, each in _panels(figure, shown):
            for name, hue, line in (("chosen", COLOURS[0], "-"), ("best", COLOURS[1], "--")):
                values = np.sort(np.asarray(each.distance.get(name, ())))
                if len(values):
                    shares = np.arange(1, len(values) + 1) / len(values) * 100
                    at_once = shares[values == 0].max(initial=0)
                    axes.step([0, *values], [at_once, *shares], hue, linestyle=line, where="post")
            axes.set_xscale("symlog", linthresh=NEAR_S, linscale=0.6)
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
            axes.set_xlim(0, furthest)
            axes.set_ylim(0, 102)
            axes.set_xlabel("Distance (s)")
        figure.axes[0].set_ylabel("Rounds within it (%)")
        lines = [Line2D([], [], color=COLOURS[0]), Line2D([], [], color=COLOURS[1], linestyle="--")]
        figure.legend(lines, ["explored next", "highest score"], loc="outside lower center", ncols=2)

    caption = (
        "How far the segment that is explored next, and the one of the highest score, lie from the nearest true range: "
        "the share of rounds within a distance; at 0 they overlap. After Figure 5 of VCA."
    )
    yield from _panelled("distance", "How near the search comes", caption, draw, shown)


def _panelled(
    name: str, title: str, caption: str, draw: Callable[[Figure], None], shown: Sequence[Standing]
) -> Iterator[Plot]:
    """A plot with a panel for each contender that has its figures, if any has."""
    if shown:
        width_in = COLUMN_IN if len(shown) <= 2 else PAGE_IN
        yield Plot(name, title, caption, draw, width_in, 0.6 + 1.75 * -(-len(shown) // PANELS_ACROSS))


def _shares(values: Sequence[float], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Percentages of values in each bin."""
    return np.histogram(values, edges)[0] / len(values) * 100.0


def _panels(figure: Figure, shown: Sequence[Standing]) -> Iterator[tuple[Axes, Standing]]:
    """Make axes for each contender under its name, in as few and as even rows as possible."""
    down = -(-len(shown) // PANELS_ACROSS)
    across = -(-len(shown) // down)
    grid = list(figure.subplots(down, across, sharey=True, squeeze=False).flat)
    for axes, each in zip(grid[: len(shown)], shown, strict=True):
        axes.set_title(wrapped(each.name, 24))
        yield axes, each
    for axes in grid[len(shown) :]:
        axes.remove()


def _by_round(standing: Standing) -> list[tuple[int, float, float]]:
    """List rounds, the share of questions that ended after them, and their accuracy; the deepest together."""
    rows = [(depth.rounds, depth.share, depth.accuracy) for depth in standing.depths if 0 < depth.rounds <= DEEPEST]
    deep = [depth for depth in standing.depths if depth.rounds > DEEPEST]
    share = sum(depth.share for depth in deep)
    if share > 0:
        rows.append((DEEPEST + 1, share, sum(depth.share * depth.accuracy for depth in deep) / share))
    return rows


# The page.

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
    made.filters |= {"amount": amount, "p_label": p_label, "pair_p_label": pair_p_label, "counts": tables.counts}
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
