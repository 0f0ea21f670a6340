"""Tables of figures, and the text of their cells: means with errors, intervals, differences and p-values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kinodex.jobs.eval.items import Scoring
from kinodex.jobs.eval.report import Pair
from kinodex.jobs.eval.scoring.answers import BEST_JUDGED
from kinodex.jobs.eval.scoring.estimates import Estimate

NOTHING = "–"
NOT_KNOWN = "not known"
FEW_QUESTIONS = 5
"""With fewer questions a share is given as counts."""
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Table:
    """A title, the heads of the columns, and rows of cells; the first `names` columns are names."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: int = 1


def markdown(table: Table) -> str:
    """Format a table as Markdown, under its title."""
    heads = [_line(table.heads), "|---" * table.names + "|---:" * (len(table.heads) - table.names) + "|"]
    return "\n".join([f"**{_plain(table.title)}**", "", *heads, *map(_line, table.rows)])


def with_error(estimate: Estimate, scale: float = 1.0) -> str:
    """Format a mean with its standard error, or its interval where all videos agree; few questions as counts."""
    if estimate.error is None and estimate.questions >= FEW_QUESTIONS:
        return with_interval(estimate, scale)
    return _mean(estimate, scale)


def with_interval(estimate: Estimate, scale: float = 1.0) -> str:
    """Format a mean with its standard error, if there is one, and its interval."""
    if estimate.low is None or estimate.high is None:
        return _mean(estimate, scale)
    return f"{_mean(estimate, scale)} [{scale * estimate.low:.2f}, {scale * estimate.high:.2f}]"


def counts(estimate: Estimate) -> str | None:
    """Format the share of fewer than `FEW_QUESTIONS` questions as counts, 3 of 4; None for others, and for scores."""
    right = estimate.mean * estimate.questions
    is_share = abs(right - round(right)) < ROUNDING
    return f"{round(right)} of {estimate.questions}" if 0 < estimate.questions < FEW_QUESTIONS and is_share else None


def _mean(estimate: Estimate, scale: float) -> str:
    if not estimate.questions:
        return NOTHING
    few = counts(estimate) if scale == 1.0 else None
    digits = 3 if scale == 1.0 else 2
    is_known = estimate.error is not None and estimate.questions >= FEW_QUESTIONS
    error = f" ± {scale * (estimate.error or 0.0):.{digits}f}" if is_known else ""
    return few or f"{scale * estimate.mean:.{digits}f}{error}"


def difference(pair: Pair, scale: float = 1.0) -> str:
    """Format a pair's difference with its sign and interval."""
    found = pair.difference
    if not found.questions:
        return NOTHING
    low, high = found.low, found.high
    interval = "" if low is None or high is None else f" [{scale * low:+.3f}, {scale * high:+.3f}]"
    return f"{scale * found.mean:+.3f}{interval}"


def p_text(p: float | None) -> str:
    """Format a p-value as papers write it."""
    return NOTHING if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def scale_of(scoring: Scoring) -> float:
    """Factor between a stored score and a shown one: scores of a judge are shown from 0 to 3."""
    return BEST_JUDGED if scoring == "judge" else 1.0


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_plain, cells)) + " |"


def _plain(cell: str) -> str:
    return " ".join(cell.split()).replace("|", "\\|")
