"""How a report's contenders appear in its plots: which are compared, in what colour, and on what scale."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.evaluation.report.plot_style import COLOURS, MARKERS, MUTED, PAPER, colour, marker
from jobs.evaluation.score.report import Report, Standing
from jobs.evaluation.score.scorers import BEST_JUDGED

MOST_COMPARED = 8


@dataclass(frozen=True, slots=True)
class Scale:
    """What a score is called, its unit, what 0 to 1 is multiplied by, and the decimals that it is shown with."""

    name: str
    unit: str
    factor: float
    decimals: int

    @property
    def label(self) -> str:
        return f"{self.name} ({self.unit})"

    def text(self, score: float, sign: bool = False) -> str:
        """A score, with a real minus where it is negative."""
        return f"{score * self.factor:{'+' if sign else ''}.{self.decimals}f}".replace("-", "−")


def scale_of(report: Report) -> Scale:
    """Per cent of right answers, or the mean score of judged ones."""
    if report.scoring == "judge":
        return Scale("Score", f"0 to {BEST_JUDGED}", BEST_JUDGED, 2)
    return Scale("Accuracy", "%", 100, 1)


@dataclass(frozen=True, slots=True)
class SeriesStyle:
    """The colour, marker and line of a contender in every plot of a report; where colours repeat, `inside` differs."""

    colour: str
    marker: str
    line: str = "-"
    inside: str | None = None


def looks(report: Report) -> dict[str, SeriesStyle]:
    """Every contender's look by its name: agents in colours, controls in grey."""
    agents = [each.name for each in agents_of(report)]
    controls = [each.name for each in report.standings if each.is_control]
    insides = (None, PAPER)
    drawn = {
        name: SeriesStyle(colour(n), marker(n), inside=insides[n // len(COLOURS) % len(insides)])
        for n, name in enumerate(agents)
    }
    return drawn | {name: SeriesStyle(MUTED, MARKERS[n % len(MARKERS)], "--") for n, name in enumerate(controls)}


def agents_of(report: Report) -> list[Standing]:
    """The standings of all but the controls."""
    return [each for each in report.standings if not each.is_control]


def compared(report: Report, most: int = MOST_COMPARED) -> list[Standing]:
    """The standings that a crowded plot has room for: agents first, then controls, in the report's order."""
    controls = [each for each in report.standings if each.is_control]
    return (agents_of(report) + controls)[:most]


def breakdowns(report: Report) -> tuple[str, ...]:
    """The breakdowns of a report with more than one category, in its order."""
    names = {name: None for each in report.standings for name in each.groups}
    return tuple(name for name in names if len(categories(report, name)) > 1)


def categories(report: Report, breakdown: str) -> dict[str, int]:
    """The categories of a breakdown with the number of questions in each."""
    counts: dict[str, int] = {}
    for each in report.standings:
        for name, estimate in each.groups.get(breakdown, {}).items():
            counts[name] = max(counts.get(name, 0), estimate.questions)
    return counts


def spoken(breakdown: str) -> str:
    """A breakdown's name as words."""
    return breakdown.replace("_", " ")
