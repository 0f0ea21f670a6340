"""Plots of accuracy: over all questions, against the cost, by category, and in pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from kinodex.jobs.eval.folder import slug
from kinodex.jobs.eval.plots.drawing import (
    COLUMN_IN,
    INK,
    MOST_COMPARED,
    MUTED,
    PAGE_IN,
    Plot,
    SeriesStyle,
    draw_interval,
    draw_legend,
    name_rows,
    only_grid,
    select_compared,
    series_styles,
    write_beside,
)
from kinodex.jobs.eval.plots.labels import left_out, pair_p_label, scale_of, wrapped
from kinodex.jobs.eval.report import EvalReport, agents_of, breakdowns, categories

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
    """Yield a row a contender, agents over controls; a line through the plot at each control and at chance."""
    if not report.standings:
        return
    scale, rows = scale_of(report), agents_of(report) + [each for each in report.standings if each.is_control]

    def draw(figure: Figure) -> None:
        axes, looks = figure.subplots(), series_styles(report)
        only_grid(axes, "x")
        for y, each in enumerate(rows):
            if each.is_control:
                axes.axvline(each.accuracy.mean * scale.factor, color=MUTED, linewidth=0.7, linestyle="--", zorder=1)
            draw_interval(axes, scale, each.accuracy, y, looks[each.name], across=True)
            write_beside(axes, y, scale.text(each.accuracy.mean))
        names = [wrapped(each.name) for each in rows]
        if report.chance is not None:
            axes.axvline(report.chance * scale.factor, color=INK, linewidth=0.8, linestyle=":", zorder=1)
            write_beside(axes, len(rows), scale.text(report.chance))
            names.append("chance")
        name_rows(axes, names)
        axes.set_xlabel(scale.label)

    caption = f"{scale.name} over all questions with its 95 % confidence interval. Dashed lines: the controls."
    height_in = 0.6 + 0.27 * (len(rows) + (report.chance is not None))
    yield Plot("accuracy", f"{scale.name} of every agent and control", caption, draw, COLUMN_IN, height_in)


def cost_plot(report: EvalReport) -> Iterator[Plot]:
    """Yield a panel a cost, with a point for every contender that has it; a line at each without costs."""
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
                draw_interval(axes, scale, each.accuracy, each.costs[cost].mean, looks[each.name], label=each.name)
            _widen(axes, [each.costs[cost].mean for each in points])
            for n, each in enumerate(flat):
                y = each.accuracy.mean * scale.factor
                axes.axhline(y, color=MUTED, linewidth=0.8, linestyle="--", zorder=1)
                place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
                at = (0.01 + n / len(flat), y)
                axes.annotate(each.name, at, xytext=(0, 1.5), **place, fontsize=6, color=MUTED)
            axes.set_xlabel(label)
        panels[0].set_ylabel(scale.label)
        draw_legend(figure, panels, across=3 if len(held) > 1 else 1)

    caption = (
        f"{scale.name} against what a question takes on average, with 95 % confidence intervals. Up and to the left is "
        "better. Dashed lines: controls that see no frames, and imported answers, whose costs are not known."
    )
    spent = [label.split()[0].lower() for label in held.values()]
    title = f"{scale.name} against {' and '.join(filter(None, [', '.join(spent[:-1]), spent[-1]]))}"
    yield Plot("costs", title, caption, draw, PAGE_IN if len(held) > 1 else COLUMN_IN, 3.0)


def duration_plot(report: EvalReport) -> Iterator[Plot]:
    """Yield a group a range of lengths, and a line a contender through them."""
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
                draw_interval(axes, scale, estimate, x, look, label="" if number else each.name)
        axes.set_xticks(range(len(counts)), [f"{name}\nn = {count:,}" for name, count in counts.items()])
        axes.tick_params(axis="x", length=0)
        axes.set_ylabel(scale.label)
        draw_legend(figure, [axes], across=4)

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
                draw_interval(axes, scale, own[name], y + shift, looks[each.name], True, "" if number else each.name)
        names = [f"{wrapped(name)}\nn = {count:,}" for name, count in counts.items()]
        name_rows(axes, names, 0.5)
        for y in range(1, len(names)):
            axes.axhline(y - 0.5, color=MUTED, linewidth=0.3)
        axes.set_xlabel(scale.label)
        draw_legend(figure, [axes], across=2)

    caption = f"{scale.name} by {label} with 95 % confidence intervals; n questions in each."
    caption += left_out(report, len(shown)) + (" Rare categories: see the table." if len(counts) < len(held) else "")
    height_in = HEAD_IN + len(counts) * (ROW_IN + LINE_IN * len(shown))
    return Plot(f"by_{slug(breakdown)}", f"{scale.name} by {label}", caption, draw, COLUMN_IN * 1.4, height_in)


def pair_plot(report: EvalReport) -> Iterator[Plot]:
    """Yield a forest plot: a row a pair with its difference, and the p-value at its right."""
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
            draw_interval(axes, scale, pair.difference, y, SeriesStyle(hue, "s"), across=True)
            # Spaces as wide as a digit, so that the p-values stand under each other.
            text = scale.text(pair.difference.mean, sign=True).rjust(5, FIGURE_SPACE)
            write_beside(axes, y, f"{text}   {pair_p_label(pair)}", hue)
        name_rows(axes, [wrapped(f"{pair.a} − {pair.b}", 36) for pair in pairs])
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
