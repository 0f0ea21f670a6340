"""The tables of a report, and what must be said beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from jobs.benchmarks.subset import WHOLE
from jobs.evaluation.report.table_format import NOTHING, Table, difference, p_text, scale_of, with_error, with_interval
from jobs.evaluation.score.report_types import Estimate, Pair, Report, Standing
from jobs.evaluation.score.scorers import BEST_JUDGED

COSTS = {
    "frames": ("frames", 1),
    "frames_with_kept": ("with kept", 1),
    "frame_shows": ("shows", 1),
    "rounds": ("rounds", 1),
    "calls": ("calls", 1),
    "tokens": ("tokens", 0),
    "cost": ("cost", 4),
    "seconds": ("seconds", 2),
}
"""Of the costs those in the main table, with their heads and digits."""
MOST_LINES = 10
"""Of missing videos and of problems, each; report.json and the page have all."""
FEW_VIDEOS = 20
"""With fewer clusters, clustered errors are known to be unsteady (Cameron and Miller 2015, section VI)."""
NOTES = (
    "± is a standard error clustered by video, [ ] a 95 % interval; costs are means a question; "
    "p is of each pair alone, not corrected for the number of pairs"
)


def tables(report: Report) -> list[Table]:
    """The main table, one a breakdown, and that of the pairs if there are any."""
    scale = scale_of(report.scoring)
    breakdowns = {name: None for each in report.standings for name in each.groups}
    found = [_main(report, scale), *(_breakdown(report, name, scale) for name in breakdowns)]
    return [*found, _pairs(report.pairs, scale)] if report.pairs else found


def facts(report: Report) -> list[str]:
    """What must be known beside the tables, a line each."""
    lines = ["SIMULATION: no video and no model stand behind these figures."] if report.simulated else []
    if not report.complete:
        lines.append("NOT COMPLETE: some questions have no answer or no score yet.")
    asked = f"{report.asked:,} of {report.questions:,} questions about {report.videos:,} videos"
    guess = "" if report.chance is None else f"; chance {report.chance:.3f}"
    judge = f"; judged by {report.judge}, 0 to {BEST_JUDGED}" if report.judge else ""
    part = report.facts.get("part of the benchmark", WHOLE)
    only = "" if part == WHOLE else f"; part: {part}"
    lines.append(f"{report.title}: {asked}{only}{guess}{judge}")
    lines.append("models: " + ", ".join(f"{role} {name}" for role, name in report.models.items()))
    cost = report.index_cost
    held = f"{cost.frames:,} frames and {cost.captions:,} captions"
    space = f", in {report.facts['space']}" if "space" in report.facts else ""
    lines.append(f"index: {held} of {cost.videos:,} videos, {cost.hours:.1f} hours{space}")
    if 0 < report.videos < FEW_VIDEOS:
        lines.append(f"only {report.videos} videos: the errors themselves are rough, one of 0.000 above all")
    lines += _some("missing", [f"{each.video} ({each.questions} questions): {each.why}" for each in report.missing])
    lines += _some("left out", [f"{each.where}: {each.what}" for each in report.problems])
    return lines


def cost_text(standing: Standing, name: str) -> str:
    """A mean cost with its digits."""
    return f"{standing.costs[name].mean:,.{COSTS[name][1]}f}"


def _pairs(pairs: Sequence[Pair], scale: float) -> Table:
    """Differences of pairs on the questions that both have a score of."""
    heads = ("a", "b", "a less b [95 %]", "p", "both right", "only a", "only b", "neither", "questions")
    rows = [
        (
            pair.a,
            pair.b,
            difference(pair, scale),
            p_text(pair.p_value),
            *(f"{count:,}" for count in (pair.both, pair.only_a, pair.only_b, pair.neither, pair.difference.questions)),
        )
        for pair in pairs
    ]
    return Table("pairs on the same questions", heads, tuple(rows), names=2)


def _main(report: Report, scale: float) -> Table:
    partly = any(each.accuracy.questions != report.asked for each in report.standings)
    grounded = any(each.grounding is not None for each in report.standings)
    columns: dict[str, Callable[[Standing], str]] = {"agent": lambda each: each.name}
    if report.scoring == "judge":
        columns["score"] = lambda each: with_interval(each.accuracy, scale)
        columns["valid ones"] = lambda each: NOTHING if each.valid is None else with_error(each.valid, scale)
    else:
        columns["accuracy"] = lambda each: with_interval(each.accuracy)
    if partly:
        columns["scored"] = lambda each: f"{each.accuracy.questions:,}"
    columns["evidence"] = lambda each: _share(each.evidence)
    if grounded:
        columns["grounding"] = lambda each: _share(each.grounding)
    columns["unanswered"] = lambda each: f"{each.unanswered:,}"
    columns["invalid"] = lambda each: f"{each.invalid:,}"
    columns["errors"] = lambda each: f"{each.errors:,}"
    rows = (
        (*(cell(each) for cell in columns.values()), *(cost_text(each, name) for name in COSTS))
        for each in report.standings
    )
    return Table("all questions", (*columns, *(head for head, _ in COSTS.values())), tuple(rows))


def _breakdown(report: Report, breakdown: str, scale: float) -> Table:
    """Contenders by categories; the more numerous are the rows, so that the table is not wide."""
    groups = {each.name: each.groups.get(breakdown, {}) for each in report.standings}
    valid = {f"{each.name}, valid ones": each.valid_groups.get(breakdown, {}) for each in report.standings}
    groups |= valid if report.scoring == "judge" else {}
    sizes = _sizes(report.standings, breakdown)
    title = breakdown.replace("_", " ")
    if len(sizes) > len(groups):
        rows = tuple(
            (f"{category} ({size:,})", *(_cell(found, category, scale) for found in groups.values()))
            for category, size in sizes.items()
        )
        return Table(f"by {title}", (title, *groups), rows)
    heads = ("agent", *(f"{category} ({size:,})" for category, size in sizes.items()))
    rows = tuple((name, *(_cell(found, category, scale) for category in sizes)) for name, found in groups.items())
    return Table(f"by {title}", heads, rows)


def _sizes(standings: Sequence[Standing], breakdown: str) -> dict[str, int]:
    """The most questions that a contender has in each category, in the order of who has the most categories."""
    by_agent = sorted((each.groups.get(breakdown, {}) for each in standings), key=len, reverse=True)
    names = {category: None for groups in by_agent for category in groups}
    return {name: max(groups[name].questions for groups in by_agent if name in groups) for name in names}


def _cell(found: Mapping[str, Estimate], category: str, scale: float) -> str:
    return with_error(found[category], scale) if category in found else NOTHING


def _share(estimate: Estimate | None) -> str:
    return NOTHING if estimate is None else f"{estimate.mean:.2f}"


def _some(title: str, lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    more = [f"  and {len(lines) - MOST_LINES:,} more"] if len(lines) > MOST_LINES else []
    return [f"{title}: {len(lines):,}", *(f"  {line}" for line in lines[:MOST_LINES]), *more]
