"""The plots of a report: which there are, in the order of a page, and what each one shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from jobs.evaluation import plots_search, plots_standings
from jobs.evaluation.cast import MOST_COMPARED, agents_of, compared, scale_of
from jobs.evaluation.plotting import COLUMN_IN, PAGE_IN
from jobs.evaluation.report import Report, Standing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COSTS = {"frames": "Frames shown a question", "tokens": "Tokens a question", "cost": "Cost a question ($)"}
MOST_PAIRS, MOST_CATEGORIES = 24, 30
TALLEST_IN = 9.0
"""As tall as a plot may be to fit a page of a paper."""


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
    """The plots that a report has the figures for."""
    if not report.standings:
        return ()
    found = [_accuracy(report), *_against_costs(report), *_durations(report), *_categories(report), *_pairs(report)]
    return (*found, *_searches(report))


def _accuracy(report: Report) -> Plot:
    scale, rows = scale_of(report), len(report.standings) + (report.chance is not None)
    caption = f"{scale.name} over all questions with its 95 % confidence interval. Dashed lines: the controls."
    draw = partial(plots_standings.draw_accuracy, report=report)
    return Plot("accuracy", f"{scale.name} of every contender", caption, draw, COLUMN_IN, 0.6 + 0.27 * rows)


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
    yield Plot("costs", f"{scale.name} against frames, tokens and money", caption, draw, width_in, 3.0)


def _durations(report: Report) -> Iterator[Plot]:
    shown = [each for each in compared(report) if len(each.groups.get("duration", {})) > 1]
    if not shown:
        return
    scale = scale_of(report)
    caption = (
        f"{scale.name} by the length of the video, as Figure 8 of EEA has it, with 95 % confidence intervals; "
        f"n questions in each group.{_left_out(report, len(shown))}"
    )
    draw = partial(plots_standings.draw_durations, report=report, shown=shown)
    yield Plot("durations", f"{scale.name} by the length of the video", caption, draw, PAGE_IN, 2.9)


def _categories(report: Report) -> Iterator[Plot]:
    scale = scale_of(report)
    for breakdown in breakdowns(report):
        if breakdown == "duration":
            continue
        held = report.standings[0].groups[breakdown]
        rows = sorted(held, key=lambda category: -held[category].questions)[:MOST_CATEGORIES]
        rows.sort(key=list(held).index)
        most = max(2, min(MOST_COMPARED, int(TALLEST_IN / (0.1 * len(rows)))))
        shown = [each for each in compared(report, most) if breakdown in each.groups]
        caption = f"{scale.name} by {spoken(breakdown)} with 95 % confidence intervals; n questions in each."
        draw = partial(
            plots_standings.draw_categories, report=report, shown=shown, breakdown=breakdown, categories=rows
        )
        height_in = 0.8 + len(rows) * (0.12 + 0.085 * len(shown))
        caption += _left_out(report, len(shown)) + (" Rare categories: see the table." if len(rows) < len(held) else "")
        name = "by_" + "".join(letter if letter.isalnum() else "_" for letter in breakdown.lower())
        yield Plot(name, f"{scale.name} by {spoken(breakdown)}", caption, draw, COLUMN_IN * 1.4, height_in)


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


def _searches(report: Report) -> Iterator[Plot]:
    looking = [each for each in report.standings if any(each.frames)]
    if looking:
        caption = (
            "Different frames that a model saw a question. Box: the middle half, with the median; whiskers: 5 to 95 %; "
            "white diamond: the mean."
        )
        draw = partial(plots_search.draw_frames, report=report, shown=looking)
        yield Plot("frames", "Frames that a question takes", caption, draw, COLUMN_IN, 0.6 + 0.27 * len(looking))
    deep = [each for each in agents_of(report) if len(each.depths) > 1][:MOST_COMPARED]
    if deep:
        caption = (
            "The share of questions that ended after so many rounds (bar), the part of them answered rightly (solid), "
            f"and {scale_of(report).name.lower()} among them (number), as Figure 7 of EEA has it."
        )
        yield _panelled("rounds", "Rounds after which questions end", caption, plots_search.draw_rounds, report, deep)
    torn = [each for each in agents_of(report) if any(each.entropy.values())][:MOST_COMPARED]
    if torn:
        caption = (
            "Normalised entropy of the candidates' rewards in every round, before fusion with the queries' scores "
            "(left) and after (right), as Figure 4 of EEA has it. At 1 all segments look alike; at 0 one stands out. "
            "Lines: means."
        )
        yield _panelled(
            "entropy", "How well rewards tell segments apart", caption, plots_search.draw_entropy, report, torn
        )
    far = [each for each in agents_of(report) if any(each.distance.values())][:MOST_COMPARED]
    if far:
        caption = (
            "How far the segment that is explored next, and the one of the highest score, lie from the nearest true "
            "range: the share of rounds within a distance; at 0 they overlap. After Figure 5 of VCA."
        )
        yield _panelled("distance", "How near the search comes", caption, plots_search.draw_distance, report, far)


def _panelled(
    name: str, title: str, caption: str, draw: Callable[..., None], report: Report, shown: list[Standing]
) -> Plot:
    width_in = COLUMN_IN if len(shown) <= 2 else PAGE_IN
    rows = -(-len(shown) // plots_search.PANELS_ACROSS)
    return Plot(name, title, caption, partial(draw, report=report, shown=shown), width_in, 0.6 + 1.75 * rows)


def breakdowns(report: Report) -> tuple[str, ...]:
    """The breakdowns of a report with more than one category, in its order."""
    return tuple(name for name, held in report.standings[0].groups.items() if len(held) > 1)


def spoken(breakdown: str) -> str:
    """A breakdown's name as words."""
    return breakdown.replace("_", " ")


def _left_out(report: Report, shown: int) -> str:
    left = len(report.standings) - shown
    return f" {left} more contenders are in the table." if left else ""
