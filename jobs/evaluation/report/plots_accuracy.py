"""Plots of accuracy: over all questions, against the cost, by category, and in pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from jobs.evaluation.report.plot_style import (
    COLUMN_IN,
    INK,
    MOST_COMPARED,
    MUTED,
    PAGE_IN,
    PAPER,
    Plot,
    Scale,
    SeriesStyle,
    agents_of,
    breakdown_label,
    breakdowns,
    categories,
    left_out,
    only_grid,
    scale_of,
    select_compared,
    series_styles,
    wrapped,
)
from jobs.evaluation.run.run_folder import slug
from jobs.evaluation.score.report import EvalReport, Pair, Standing
from jobs.evaluation.score.statistics import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COSTS = {"frames": "Frames shown a question", "tokens": "Tokens a question", "cost": "Money a question"}
MOST_PAIRS, MOST_CATEGORIES = 20, 30
TALLEST_IN = 9.0
"""Largest height of a plot that fits a page of a paper."""
HEAD_IN, ROW_IN, LINE_IN = 0.8, 0.12, 0.085
"""Heights in a plot of categories: its axis and legend, a row's margins, and a system in a row."""
FIGURE_SPACE = "\u2007"
LOG_FROM = 8.0
"""Factor between costs above which their axis is logarithmic."""


def accuracy_plot(report: EvalReport) -> Iterator[Plot]:
    if not report.standings:
        return
    scale, rows = scale_of(report), len(report.standings) + (report.chance is not None)
    caption = f"{scale.name} over all questions with its 95 % confidence interval. Dashed lines: the controls."
    draw = partial(draw_accuracy, report=report)
    yield Plot("accuracy", f"{scale.name} of every agent and control", caption, draw, COLUMN_IN, 0.6 + 0.27 * rows)


def cost_plot(report: EvalReport) -> Iterator[Plot]:
    held = {
        name: label
        for name, label in COSTS.items()
        if any(name in each.costs and each.costs[name].mean > 0 for each in agents_of(report))
    }
    if not held:
        return
    scale = scale_of(report)
    caption = (
        f"{scale.name} against what a question takes on average, with 95 % confidence intervals. Up and to the left is "
        "better. Dashed lines: controls that see no frames, and imported answers, whose costs are not known."
    )
    draw = partial(draw_against_costs, report=report, costs=held)
    width_in = PAGE_IN if len(held) > 1 else COLUMN_IN
    spent = [label.split()[0].lower() for label in held.values()]
    title = f"{scale.name} against {' and '.join(filter(None, [', '.join(spent[:-1]), spent[-1]]))}"
    yield Plot("costs", title, caption, draw, width_in, 3.0)


def duration_plot(report: EvalReport) -> Iterator[Plot]:
    if "duration" not in breakdowns(report):
        return
    scale, shown, counts = scale_of(report), select_compared(report), categories(report, "duration")
    caption = (
        f"{scale.name} by the length of the video, as Figure 8 of EEA has it, with 95 % confidence intervals; "
        f"n questions in each group.{left_out(report, len(shown))}"
    )
    draw = partial(draw_durations, report=report, shown=shown, counts=counts)
    yield Plot("durations", f"{scale.name} by the length of the video", caption, draw, PAGE_IN, 2.9)


def category_plots(report: EvalReport) -> Iterator[Plot]:
    scale = scale_of(report)
    for breakdown in breakdowns(report):
        if breakdown == "duration":
            continue
        held = categories(report, breakdown)
        often = sorted(held, key=lambda name: -held[name])[:MOST_CATEGORIES]
        counts = {name: held[name] for name in held if name in often}
        shown = select_compared(report, _room(len(counts)))
        caption = f"{scale.name} by {breakdown_label(breakdown)} with 95 % confidence intervals; n questions in each."
        draw = partial(draw_categories, report=report, shown=shown, breakdown=breakdown, counts=counts)
        height_in = HEAD_IN + len(counts) * (ROW_IN + LINE_IN * len(shown))
        caption += left_out(report, len(shown)) + (
            " Rare categories: see the table." if len(counts) < len(held) else ""
        )
        yield Plot(
            f"by_{slug(breakdown)}",
            f"{scale.name} by {breakdown_label(breakdown)}",
            caption,
            draw,
            COLUMN_IN * 1.4,
            height_in,
        )


def _room(rows: int) -> int:
    """Number of systems that so many rows of categories have room for."""
    return max(2, min(MOST_COMPARED, int(((TALLEST_IN - HEAD_IN) / rows - ROW_IN) / LINE_IN)))


def pair_plot(report: EvalReport) -> Iterator[Plot]:
    pairs = report.pairs[:MOST_PAIRS]
    if not pairs:
        return
    caption = (
        f"{scale_of(report).name} of the first less that of the second on the same questions, with 95 % confidence "
        "intervals (none with too few videos). A difference without one, or whose one touches 0, is grey: it may be "
        "chance."
    )
    if len(pairs) < len(report.pairs):
        caption += f" The first {len(pairs)} of {len(report.pairs)} pairs; the table has all."
    draw = partial(draw_pairs, report=report, pairs=pairs)
    yield Plot("pairs", "Differences between agents", caption, draw, COLUMN_IN * 1.4, 0.6 + 0.31 * len(pairs))


def draw_accuracy(figure: Figure, report: EvalReport) -> None:
    """Draw a row a system, agents over controls; a line through the plot at each control and at chance."""
    axes, scale, drawn = figure.subplots(), scale_of(report), series_styles(report)
    only_grid(axes, "x")
    controls = [each for each in report.standings if each.is_control]
    rows = agents_of(report) + controls
    for y, each in enumerate(rows):
        look = drawn[each.name]
        if each.is_control:
            axes.axvline(each.accuracy.mean * scale.factor, color=MUTED, linewidth=0.7, linestyle="--", zorder=1)
        _interval(axes, scale, each.accuracy, y, look, across=True)
        _beside(axes, y, scale.text(each.accuracy.mean))
    names = [wrapped(each.name) for each in rows]
    if report.chance is not None:
        axes.axvline(report.chance * scale.factor, color=INK, linewidth=0.8, linestyle=":", zorder=1)
        _beside(axes, len(rows), scale.text(report.chance))
        names.append("chance")
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(scale.label)


def draw_against_costs(figure: Figure, report: EvalReport, costs: Mapping[str, str]) -> None:
    """Draw a panel a cost, with a point for every system that has it; a line at each without costs."""
    panels = figure.subplots(1, len(costs), sharey=True, squeeze=False)[0]
    scale, drawn = scale_of(report), series_styles(report)
    flat = [each for each in report.standings if each.imported or (each.is_control and not any(each.frames))]
    for axes, (cost, label) in zip(panels, costs.items(), strict=True):
        points = [each for each in report.standings if each not in flat and each.costs[cost].mean > 0]
        for each in points:
            _interval(axes, scale, each.accuracy, each.costs[cost].mean, drawn[each.name], label=each.name)
        _widen(axes, [each.costs[cost].mean for each in points])
        for n, each in enumerate(flat):
            axes.axhline(each.accuracy.mean * scale.factor, color=MUTED, linewidth=0.8, linestyle="--", zorder=1)
            axes.annotate(
                each.name,
                (0.01 + n / len(flat), each.accuracy.mean * scale.factor),
                xycoords=("axes fraction", "data"),
                xytext=(0, 1.5),
                textcoords="offset points",
                fontsize=6,
                color=MUTED,
            )
        axes.set_xlabel(label)
    panels[0].set_ylabel(scale.label)
    _legend(figure, panels, across=3 if len(costs) > 1 else 1)


def draw_durations(figure: Figure, report: EvalReport, shown: Sequence[Standing], counts: Mapping[str, int]) -> None:
    """Draw a group a range of lengths, and a line a system through them."""
    axes, scale, drawn = figure.subplots(), scale_of(report), series_styles(report)
    only_grid(axes, "y")
    step = 0.7 / len(shown)
    for n, each in enumerate(shown):
        shift = (n - (len(shown) - 1) / 2) * step
        own = each.groups.get("duration", {})
        held = [(x + shift, own[name]) for x, name in enumerate(counts) if name in own]
        look = drawn[each.name]
        axes.plot(
            [x for x, _ in held],
            [estimate.mean * scale.factor for _, estimate in held],
            color=look.colour,
            linestyle=look.line,
            linewidth=0.8,
            alpha=0.5,
        )
        for number, (x, estimate) in enumerate(held):
            _interval(axes, scale, estimate, x, look, label="" if number else each.name)
    axes.set_xticks(range(len(counts)), [f"{name}\nn = {count:,}" for name, count in counts.items()])
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel(scale.label)
    _legend(figure, [axes], across=4)


def draw_categories(
    figure: Figure, report: EvalReport, shown: Sequence[Standing], breakdown: str, counts: Mapping[str, int]
) -> None:
    """Draw a row a category, with every system's interval in it."""
    axes, scale, drawn = figure.subplots(), scale_of(report), series_styles(report)
    only_grid(axes, "x")
    step = 0.74 / len(shown)
    for n, each in enumerate(shown):
        shift = (n - (len(shown) - 1) / 2) * step
        own = each.groups.get(breakdown, {})
        for number, (y, name) in enumerate((y, name) for y, name in enumerate(counts) if name in own):
            _interval(axes, scale, own[name], y + shift, drawn[each.name], True, "" if number else each.name)
    names = [f"{wrapped(name)}\nn = {count:,}" for name, count in counts.items()]
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    for y in range(1, len(names)):
        axes.axhline(y - 0.5, color=MUTED, linewidth=0.3)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(scale.label)
    _legend(figure, [axes], across=2)


def draw_pairs(figure: Figure, report: EvalReport, pairs: Sequence[Pair]) -> None:
    """Draw a forest plot: a row a pair with its difference, and the p-value at its right."""
    axes, scale = figure.subplots(), scale_of(report)
    only_grid(axes, "x")
    axes.axvline(0, color=INK, linewidth=0.8)
    for y, pair in enumerate(pairs):
        low, high = pair.difference.low, pair.difference.high
        sure = low is not None and high is not None and (low > 0 or high < 0)
        _interval(axes, scale, pair.difference, y, SeriesStyle(INK if sure else MUTED, "s"), across=True)
        # Spaces as wide as a digit, so that the p-values stand under each other.
        text = f"{scale.text(pair.difference.mean, sign=True).rjust(5, FIGURE_SPACE)}   {pair_p_label(pair)}"
        _beside(axes, y, text, INK if sure else MUTED)
    axes.set_yticks(range(len(pairs)), [wrapped(f"{pair.a} − {pair.b}", 36) for pair in pairs], fontsize=6.5)
    axes.set_ylim(len(pairs) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("Difference in " + (scale.label.lower() if scale.unit != "%" else "accuracy (percentage points)"))


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
