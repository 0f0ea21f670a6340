"""The table of two runs side by side, and what must be said beside it."""

from __future__ import annotations

from jobs.evaluation.report.table_format import Table, difference, p_text, scale_of, with_error
from jobs.evaluation.report.tables import COSTS, cost_text
from jobs.evaluation.score.compare import Comparison, Versus

SHOWN = ("frames", "tokens", "cost", "seconds")


def comparison_table(comparison: Comparison) -> Table:
    """A row for every two contenders; costs are the means a question of the one and of the other."""
    heads = ("a", "b", "a scores", "b scores", "a less b [95 %]", "p", "only a", "only b", "questions")
    scale = scale_of(comparison.scoring)
    rows = tuple(_row(each, scale) for each in comparison.versus)
    return Table("on the questions that both answered", (*heads, *(COSTS[name][0] for name in SHOWN)), rows, names=2)


def comparison_facts(comparison: Comparison) -> list[str]:
    """What the runs share and what they differ in, a line each."""
    lines = [
        f"{comparison.title}: a is {comparison.one}, b is {comparison.other}",
        f"in both: {comparison.shared:,}; a alone: {comparison.only_one:,}; b alone: {comparison.only_other:,}",
    ]
    if comparison.changed:
        lines.append(f"left out: {comparison.changed:,} questions whose ids agree and whose words or truth do not")
    if comparison.unpaired:
        lines.append(f"not held against any: {', '.join(comparison.unpaired)}; --every-pair holds all against all")
    if not comparison.differences:
        lines.append("the plans agree in all but their contenders")
    lines += [f"differs: {each.what}: {each.one} / {each.other}" for each in comparison.differences]
    return lines


def _row(versus: Versus, scale: float) -> tuple[str, ...]:
    pair, a, b = versus.pair, versus.a, versus.b
    return (
        pair.a,
        pair.b,
        with_error(a.accuracy, scale),
        with_error(b.accuracy, scale),
        difference(pair, scale),
        p_text(pair.p_value),
        *(f"{count:,}" for count in (pair.only_a, pair.only_b, pair.difference.questions)),
        *(f"{cost_text(a, name)} / {cost_text(b, name)}" for name in SHOWN),
    )
