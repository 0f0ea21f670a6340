"""Plots of the search: frames, rounds, the entropy of rewards, and the distance to the evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kinodex.jobs.eval.plots.drawing import (
    COLOURS,
    COLUMN_IN,
    INK,
    MOST_COMPARED,
    MUTED,
    PAGE_IN,
    PAPER,
    Plot,
    name_rows,
    only_grid,
    series_styles,
)
from kinodex.jobs.eval.plots.labels import scale_of, wrapped
from kinodex.jobs.eval.report import EvalReport, Standing, agents_of

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
    """Yield a box of the frames of all questions, a row a contender."""
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
        name_rows(axes, [wrapped(each.name) for each in shown])
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
        "The share of questions that ended after a number of rounds (bar), the part of them answered rightly (solid), "
        f"and the {scale.name.lower()} among them (number), as Figure 7 of EEA has it."
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
    """Yield the share of rounds whose segment lies within a distance of the evidence: explored next, and best."""
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
    """Yield a plot with a panel for each contender that has its figures, if any has."""
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
