"""Plots of the search: frames, rounds, the entropy of rewards, and the distance to the evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from jobs.evaluation.report.plot_style import (
    COLOURS,
    COLUMN_IN,
    INK,
    MOST_COMPARED,
    MUTED,
    PAGE_IN,
    PAPER,
    Plot,
    agents_of,
    only_grid,
    scale_of,
    series_styles,
    wrapped,
)
from jobs.evaluation.score.report import EvalReport, Standing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

PANELS_ACROSS = 4
DEEPEST = 8
"""Questions that took more rounds than this share one bar."""
ENTROPY_BINS = 20
NEAR_S = 10
"""Distances below this are drawn on a linear scale, which can show 0, and above it on a logarithmic one."""


def frames_plot(report: EvalReport) -> Iterator[Plot]:
    shown = [each for each in report.standings if any(each.frames)]
    if shown:
        caption = (
            "Different frames that a model saw a question. Box: the middle half, with the median; whiskers: 5 to 95 %; "
            "white diamond: the mean."
        )
        draw = partial(draw_frames, report=report, shown=shown)
        yield Plot("frames", "Frames that a question takes", caption, draw, COLUMN_IN, 0.6 + 0.27 * len(shown))


def rounds_plot(report: EvalReport) -> Iterator[Plot]:
    caption = (
        "The share of questions that ended after so many rounds (bar), the part of them answered rightly (solid), and "
        f"the {scale_of(report).name.lower()} among them (number), as Figure 7 of EEA has it."
    )
    shown = [each for each in agents_of(report) if len(each.depths) > 1]
    yield from _panelled("rounds", "Rounds after which questions end", caption, draw_rounds, report, shown)


def entropy_plot(report: EvalReport) -> Iterator[Plot]:
    caption = (
        "Normalised entropy of the candidates' rewards in every round, before fusion with the queries' scores (left) "
        "and after (right), as Figure 4 of EEA has it. At 1 all segments look alike; at 0 one stands out. Lines: means."
    )
    title, shown = (
        "How well rewards distinguish segments",
        [each for each in agents_of(report) if any(each.entropy.values())],
    )
    yield from _panelled("entropy", title, caption, draw_entropy, report, shown)


def distance_plot(report: EvalReport) -> Iterator[Plot]:
    caption = (
        "How far the segment that is explored next, and the one of the highest score, lie from the nearest true range: "
        "the share of rounds within a distance; at 0 they overlap. After Figure 5 of VCA."
    )
    shown = [each for each in agents_of(report) if any(each.distance.values())]
    yield from _panelled("distance", "How near the search comes", caption, draw_distance, report, shown)


def _panelled(
    name: str, title: str, caption: str, draw: Callable[..., None], report: EvalReport, able: list[Standing]
) -> Iterator[Plot]:
    """Make a plot with a panel for each system that has its figures, if any has."""
    shown = able[:MOST_COMPARED]
    if shown:
        width_in = COLUMN_IN if len(shown) <= 2 else PAGE_IN
        height_in = 0.6 + 1.75 * -(-len(shown) // PANELS_ACROSS)
        yield Plot(name, title, caption, partial(draw, report=report, shown=shown), width_in, height_in)


def draw_frames(figure: Figure, report: EvalReport, shown: Sequence[Standing]) -> None:
    """Draw a box of the frames of all questions, a row a system."""
    axes, drawn = figure.subplots(), series_styles(report)
    only_grid(axes, "x")
    for y, each in enumerate(shown):
        hue = drawn[each.name].colour
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
    axes.set_yticks(range(len(shown)), [wrapped(each.name) for each in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("Frames shown a question")


def draw_rounds(figure: Figure, report: EvalReport, shown: Sequence[Standing]) -> None:
    """Draw bars of shares by round, the right part solid, with the accuracy over each."""
    scale, drawn = scale_of(report), series_styles(report)
    last = min(DEEPEST + 1, max(depth.rounds for each in shown for depth in each.depths))
    for axes, each in _panels(figure, shown):
        only_grid(axes, "y")
        hue = drawn[each.name].colour
        for x, share, accuracy in _by_round(each):
            axes.bar(x, share * 100, color=hue, alpha=0.3, width=0.8)
            axes.bar(x, share * accuracy * 100, color=hue, width=0.8)
            axes.annotate(
                f"{accuracy * scale.factor:.{scale.decimals - 1}f}",
                (x, share * 100),
                xytext=(0, 1.5),
                textcoords="offset points",
                ha="center",
                fontsize=6,
            )
        axes.set_xticks(range(1, last + 1), [*map(str, range(1, DEEPEST + 1)), f"{DEEPEST + 1}+"][:last], fontsize=6)
        axes.set_xlim(0.4, last + 0.6)
        axes.set_xlabel("Rounds")
        axes.margins(y=0.12)
    figure.axes[0].set_ylabel("Questions (%)")


def draw_entropy(figure: Figure, report: EvalReport, shown: Sequence[Standing]) -> None:
    """Draw shares of rounds by entropy, upright: before fusion to the left, after it to the right."""
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


def draw_distance(figure: Figure, report: EvalReport, shown: Sequence[Standing]) -> None:
    """Draw the share of rounds whose segment lies within a distance of the evidence: explored next, and best."""
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
    _name_lines(figure)


def _shares(values: Sequence[float], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Percentages of values in each bin."""
    return np.histogram(values, edges)[0] / len(values) * 100.0


def _name_lines(figure: Figure) -> None:
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color=COLOURS[0]), Line2D([], [], color=COLOURS[1], linestyle="--")]
    figure.legend(lines, ["explored next", "highest score"], loc="outside lower center", ncols=2)


def _panels(figure: Figure, shown: Sequence[Standing]) -> Iterator[tuple[Axes, Standing]]:
    """Make axes for each system under its name, in as few and as even rows as possible."""
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
