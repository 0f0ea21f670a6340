"""Words and figures in plots: scores in their unit, p-values, and names in few lines."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from kinodex.jobs.eval.report import EvalReport, Pair
from kinodex.jobs.eval.scoring.answers import BEST_JUDGED


def wrapped(name: str, width: int = 26) -> str:
    """Wrap a name into at most three lines of `width` characters."""
    return "\n".join(textwrap.wrap(name, width, max_lines=3, placeholder=" …"))


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


def left_out(report: EvalReport, shown: int) -> str:
    """Say how many contenders a plot leaves out."""
    left = len(report.standings) - shown
    return f" {left} more agents are in the table." if left else ""


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
