"""The plots of a report: which there are, in the order of a page, and what each one shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from jobs.evaluation.report import plots_accuracy as plots_standings
from jobs.evaluation.report import plots_search
from jobs.evaluation.report.plot_series import (
    MOST_COMPARED,
    agents_of,
    breakdowns,
    categories,
    compared,
    scale_of,
    spoken,
)
from jobs.evaluation.report.plot_style import COLUMN_IN, PAGE_IN
from jobs.evaluation.run.run_folder import slug
from jobs.evaluation.score.report import Report, Standing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COSTS = {"frames": "Frames shown a question", "tokens": "Tokens a question", "cost": "Money a question"}
MOST_PAIRS, MOST_CATEGORIES = 20, 30
TALLEST_IN = 9.0
"""As tall as a plot may be to fit a page of a paper."""
HEAD_IN, ROW_IN, LINE_IN = 0.8, 0.12, 0.085
"""Of a plot of categories: its axis and legend, a row's margins, and a contender in a row."""


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot to be drawn: its file's name, what it is called, what it shows in a sentence or two, and its size."""

    name: str
    title: str
    caption: str
    draw: Callable[[Figure], None]
    width_in: float
    height_in: float


def plots(report: Report) -> tuple[Plot, ...]:
    """The plots that a report has the figures for; contenders whose answers nobody can score are in none."""
    scored = [each for each in report.standings if each.accuracy.questions]
    pairs = [each for each in report.pairs if each.difference.questions]
    report = replace(report, standings=tuple(scored), pairs=tuple(pairs))
    kinds = (_accuracy, _frames, _against_costs, _durations, _categories, _pairs, _rounds, _entropy, _distance)
    return tuple(plot for kind in kinds for plot in kind(report))


def _accuracy(report: Report) -> Iterator[Plot]:
    if not report.standings:
        return
    scale, rows = scale_of(report), len(report.standings) + (report.chance is not None)
    caption = f"{scale.name} over all questions with its 95 % confidence interval. Dashed lines: the controls."
    draw = partial(plots_standings.draw_accuracy, report=report)
    yield Plot("accuracy", f"{scale.name} of every contender", caption, draw, COLUMN_IN, 0.6 + 0.27 * rows)


def _against_costs(report: Report) -> Iterator[Plot]:
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
        "better. Dashed lines: controls that see no frames."
    )
    draw = partial(plots_standings.draw_against_costs, report=report, costs=held)
    width_in = PAGE_IN if len(held) > 1 else COLUMN_IN
    spent = [label.split()[0].lower() for label in held.values()]
    title = f"{scale.name} against {' and '.join(filter(None, [', '.join(spent[:-1]), spent[-1]]))}"
    yield Plot("costs", title, caption, draw, width_in, 3.0)


def _durations(report: Report) -> Iterator[Plot]:
    if "duration" not in breakdowns(report):
        return
    scale, shown, counts = scale_of(report), compared(report), categories(report, "duration")
    caption = (
        f"{scale.name} by the length of the video, as Figure 8 of EEA has it, with 95 % confidence intervals; "
        f"n questions in each group.{_left_out(report, len(shown))}"
    )
    draw = partial(plots_standings.draw_durations, report=report, shown=shown, counts=counts)
    yield Plot("durations", f"{scale.name} by the length of the video", caption, draw, PAGE_IN, 2.9)


def _categories(report: Report) -> Iterator[Plot]:
    scale = scale_of(report)
    for breakdown in breakdowns(report):
        if breakdown == "duration":
            continue
        held = categories(report, breakdown)
        often = sorted(held, key=lambda name: -held[name])[:MOST_CATEGORIES]
        counts = {name: held[name] for name in held if name in often}
        shown = compared(report, _room(len(counts)))
        caption = f"{scale.name} by {spoken(breakdown)} with 95 % confidence intervals; n questions in each."
        draw = partial(plots_standings.draw_categories, report=report, shown=shown, breakdown=breakdown, counts=counts)
        height_in = HEAD_IN + len(counts) * (ROW_IN + LINE_IN * len(shown))
        caption += _left_out(report, len(shown)) + (
            " Rare categories: see the table." if len(counts) < len(held) else ""
        )
        yield Plot(
            f"by_{slug(breakdown)}", f"{scale.name} by {spoken(breakdown)}", caption, draw, COLUMN_IN * 1.4, height_in
        )


def _room(rows: int) -> int:
    """How many contenders there is room for in so many rows of categories."""
    return max(2, min(MOST_COMPARED, int(((TALLEST_IN - HEAD_IN) / rows - ROW_IN) / LINE_IN)))


def _pairs(report: Report) -> Iterator[Plot]:
    pairs = report.pairs[:MOST_PAIRS]
    if not pairs:
        return
    caption = (
        f"{scale_of(report).name} of the first less that of the second on the same questions, with 95 % confidence "
        "intervals. An interval that touches 0 is grey: that difference may be chance."
    )
    if len(pairs) < len(report.pairs):
        caption += f" The first {len(pairs)} of {len(report.pairs)} pairs; the table has all."
    draw = partial(plots_standings.draw_pairs, report=report, pairs=pairs)
    yield Plot("pairs", "Differences between contenders", caption, draw, COLUMN_IN * 1.4, 0.6 + 0.31 * len(pairs))


def _frames(report: Report) -> Iterator[Plot]:
    shown = [each for each in report.standings if any(each.frames)]
    if shown:
        caption = (
            "Different frames that a model saw a question. Box: the middle half, with the median; whiskers: 5 to 95 %; "
            "white diamond: the mean."
        )
        draw = partial(plots_search.draw_frames, report=report, shown=shown)
        yield Plot("frames", "Frames that a question takes", caption, draw, COLUMN_IN, 0.6 + 0.27 * len(shown))


def _rounds(report: Report) -> Iterator[Plot]:
    caption = (
        "The share of questions that ended after so many rounds (bar), the part of them answered rightly (solid), and "
        f"the {scale_of(report).name.lower()} among them (number), as Figure 7 of EEA has it."
    )
    shown = [each for each in agents_of(report) if len(each.depths) > 1]
    yield from _panelled("rounds", "Rounds after which questions end", caption, plots_search.draw_rounds, report, shown)


def _entropy(report: Report) -> Iterator[Plot]:
    caption = (
        "Normalised entropy of the candidates' rewards in every round, before fusion with the queries' scores (left) "
        "and after (right), as Figure 4 of EEA has it. At 1 all segments look alike; at 0 one stands out. Lines: means."
    )
    title, shown = (
        "How well rewards tell segments apart",
        [each for each in agents_of(report) if any(each.entropy.values())],
    )
    yield from _panelled("entropy", title, caption, plots_search.draw_entropy, report, shown)


def _distance(report: Report) -> Iterator[Plot]:
    caption = (
        "How far the segment that is explored next, and the one of the highest score, lie from the nearest true range: "
        "the share of rounds within a distance; at 0 they overlap. After Figure 5 of VCA."
    )
    shown = [each for each in agents_of(report) if any(each.distance.values())]
    yield from _panelled("distance", "How near the search comes", caption, plots_search.draw_distance, report, shown)


def _panelled(
    name: str, title: str, caption: str, draw: Callable[..., None], report: Report, able: list[Standing]
) -> Iterator[Plot]:
    """A plot with a panel for each contender that has its figures, if any has."""
    shown = able[:MOST_COMPARED]
    if shown:
        width_in = COLUMN_IN if len(shown) <= 2 else PAGE_IN
        height_in = 0.6 + 1.75 * -(-len(shown) // plots_search.PANELS_ACROSS)
        yield Plot(name, title, caption, partial(draw, report=report, shown=shown), width_in, height_in)


def _left_out(report: Report, shown: int) -> str:
    left = len(report.standings) - shown
    return f" {left} more contenders are in the table." if left else ""
