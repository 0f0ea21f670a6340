"""Plots of how contenders search: frames, rounds, the entropy of rewards, and the way to the truth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from jobs.evaluation.report.plot_series import looks, scale_of
from jobs.evaluation.report.plot_style import COLOURS, INK, MUTED, PAPER, only_grid, wrapped
from jobs.evaluation.score.report import Report, Standing

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


def draw_frames(figure: Figure, report: Report, shown: Sequence[Standing]) -> None:
    """A box of the frames of all questions, a row a contender."""
    axes, drawn = figure.subplots(), looks(report)
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


def draw_rounds(figure: Figure, report: Report, shown: Sequence[Standing]) -> None:
    """Bars of shares by round, the right part solid, with the accuracy over each."""
    scale, drawn = scale_of(report), looks(report)
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


def draw_entropy(figure: Figure, report: Report, shown: Sequence[Standing]) -> None:
    """Shares of rounds by entropy, which stands upright: before fusion to the left, after it to the right."""
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


def draw_distance(figure: Figure, report: Report, shown: Sequence[Standing]) -> None:
    """The share of rounds whose segment lies within a distance of the truth: explored next, and of highest score."""
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
    """Per cent of values in each bin."""
    return np.histogram(values, edges)[0] / len(values) * 100.0


def _name_lines(figure: Figure) -> None:
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color=COLOURS[0]), Line2D([], [], color=COLOURS[1], linestyle="--")]
    figure.legend(lines, ["explored next", "highest score"], loc="outside lower center", ncols=2)


def _panels(figure: Figure, shown: Sequence[Standing]) -> Iterator[tuple[Axes, Standing]]:
    """An axes for each contender under its name, in as few and as even rows as can be."""
    down = -(-len(shown) // PANELS_ACROSS)
    across = -(-len(shown) // down)
    grid = list(figure.subplots(down, across, sharey=True, squeeze=False).flat)
    for axes, each in zip(grid, shown, strict=False):
        axes.set_title(wrapped(each.name, 24))
        yield axes, each
    for axes in grid[len(shown) :]:
        axes.remove()


def _by_round(standing: Standing) -> list[tuple[int, float, float]]:
    """Rounds, the share of questions that ended after them, and the accuracy of those; the deepest together."""
    rows = [(depth.rounds, depth.share, depth.accuracy) for depth in standing.depths if 0 < depth.rounds <= DEEPEST]
    deep = [depth for depth in standing.depths if depth.rounds > DEEPEST]
    share = sum(depth.share for depth in deep)
    if share > 0:
        rows.append((DEEPEST + 1, share, sum(depth.share * depth.accuracy for depth in deep) / share))
    return rows
