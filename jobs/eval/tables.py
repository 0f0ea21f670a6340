"""The tables of a run and of two, and the facts beside them: for people at a terminal, and for papers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kinodex.jobs.eval.comparison import Comparison, Versus
from kinodex.jobs.eval.item_choice import WHOLE
from kinodex.jobs.eval.report import EvalReport, Pair, Standing
from kinodex.jobs.eval.scoring.answers import BEST_JUDGED
from kinodex.jobs.eval.scoring.estimates import FEW_VIDEOS, Estimate
from kinodex.jobs.eval.table_cells import (
    NOT_KNOWN,
    NOTHING,
    Table,
    counts,
    difference,
    p_text,
    scale_of,
    with_error,
    with_interval,
)

COMPARED_COSTS = ("frames", "tokens", "cost", "seconds")
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
"""The costs of the main table, with their heads and digits."""
SHOWN_FACTS = ("insufficient evidence", "prices for a million tokens", "requests at once")
UNSAID = ("none", "not known")
MOST_LINES = 10
"""Lines of missing videos and of problems, each; report.json and the page have all."""
NOTES = (
    "± is a standard error clustered by video, [ ] a 95 % interval, exact with few videos; costs are means a question; "
    "p is clustered by video, exact p is McNemar's on the questions; each is of its pair alone, not corrected for the "
    "number of pairs"
)


def tables(report: EvalReport) -> list[Table]:
    """Make the main table, one a breakdown, and that of the pairs if there are any."""
    scale = scale_of(report.scoring)
    breakdowns = {name: None for each in report.standings for name in each.groups}
    found = [_main(report, scale), *(_breakdown(report, name, scale) for name in breakdowns)]
    return [*found, _pairs(report.pairs, scale)] if report.pairs else found


def facts(report: EvalReport) -> list[str]:
    """Write the facts that must stand beside the tables, a line each."""
    lines = [] if report.complete else ["NOT COMPLETE: some questions have no answer or no score yet."]
    asked = f"{report.asked:,} of {report.questions:,} questions about {report.videos:,} videos"
    guess = "" if report.chance is None else f"; chance {report.chance:.3f}"
    judge = f"; judged by {report.judge}, 0 to {BEST_JUDGED}" if report.judge else ""
    part = report.facts.get("part of the benchmark", WHOLE)
    only = "" if part == WHOLE else f"; part: {part}"
    lines.append(f"{report.title}: {asked}{only}{guess}{judge}")
    lines.append("models: " + ", ".join(f"{role} {name}" for role, name in report.models.items()))
    lines += [f"{name}: {report.facts[name]}" for name in SHOWN_FACTS if report.facts.get(name, "none") not in UNSAID]
    lines += [f"{each.name}: {report.facts[each.name]}" for each in report.standings if each.name in report.facts]
    cost = report.index_cost
    held = f"{cost.frames:,} frames and {cost.captions:,} captions"
    space = f", in {report.facts['space']}" if "space" in report.facts else ""
    lines.append(f"index: {held} of {cost.videos:,} videos, {cost.hours:.1f} hours{space}")
    if 0 < report.videos < FEW_VIDEOS:
        lines.append(f"only {report.videos} videos: the errors themselves are rough; trust the intervals")
    lines += notices(report)
    lines += _listed("missing", [f"{each.video} ({each.questions} questions): {each.why}" for each in report.missing])
    lines += _listed("noted in the annotations", [f"{each.where}: {each.what}" for each in report.problems])
    return lines


def notices(report: EvalReport) -> list[str]:
    """Write what happened in the questions of a contender and may not be overlooked, a line a contender."""
    return [
        f"{each.name}: {', '.join(f'{count:,} {what}' for what, count in each.notices.items())}"
        for each in report.standings
        if each.notices
    ]


def cost_text(standing: Standing, name: str) -> str:
    """Format a mean cost with its digits; of an imported contender it is not known."""
    return f"{standing.costs[name].mean:,.{COSTS[name][1]}f}" if name in standing.costs else NOT_KNOWN


def _pairs(pairs: Sequence[Pair], scale: float) -> Table:
    """Make the table of differences on the questions of which both have a score."""
    heads = ("a", "b", "a less b [95 %]", "p", "exact p", "both right", "only a", "only b", "neither", "questions")
    rows = []
    for pair in pairs:
        counts = (pair.both, pair.only_a, pair.only_b, pair.neither, pair.difference.questions)
        figures = difference(pair, scale), p_text(pair.p_value), p_text(pair.exact_p_value)
        rows.append((pair.a, pair.b, *figures, *(f"{count:,}" for count in counts)))
    return Table("pairs on the same questions", heads, tuple(rows), names=2)


def _main(report: EvalReport, scale: float) -> Table:
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
    if any(each.shown is not None for each in report.standings):
        columns |= _EVIDENCE
    if any(each.evidence_suffices is not None for each in report.standings):
        columns |= _VERIFIED
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


def _breakdown(report: EvalReport, breakdown: str, scale: float) -> Table:
    """Make a table of contenders by categories; the more numerous are the rows, so that the table is not wide."""
    groups = {each.name: each.groups.get(breakdown, {}) for each in report.standings}
    valid = {f"{each.name}, valid ones": each.valid_groups.get(breakdown, {}) for each in report.standings}
    groups |= valid if report.scoring == "judge" else {}
    sizes = _sizes(report.standings, breakdown)
    title, heads = breakdown.replace("_", " "), [f"{category} ({size:,})" for category, size in sizes.items()]
    columns = [
        [with_error(found[category], scale) if category in found else NOTHING for category in sizes]
        for found in groups.values()
    ]
    if len(sizes) > len(groups):
        return Table(f"by {title}", (title, *groups), tuple(zip(heads, *columns, strict=True)))
    rows = tuple((name, *cells) for name, cells in zip(groups, columns, strict=True))
    return Table(f"by {title}", ("agent", *heads), rows)


def _sizes(standings: Sequence[Standing], breakdown: str) -> dict[str, int]:
    """Largest number of questions of any contender in each category, in the order of the contender with the most."""
    by_agent = sorted((each.groups.get(breakdown, {}) for each in standings), key=len, reverse=True)
    names = {category: None for groups in by_agent for category in groups}
    return {name: max(groups[name].questions for groups in by_agent if name in groups) for name in names}


def _share(estimate: Estimate | None) -> str:
    return NOTHING if estimate is None else counts(estimate) or f"{estimate.mean:.2f}"


_EVIDENCE: dict[str, Callable[[Standing], str]] = {
    "cited": lambda each: _share(each.cited),
    "cited tIoU": lambda each: NOTHING if each.cited_overlap is None else f"{each.cited_overlap.mean:.2f}",
    "shown": lambda each: _share(each.shown),
    "shown tIoU": lambda each: NOTHING if each.shown_overlap is None else f"{each.shown_overlap.mean:.2f}",
}
"""Evidence that was cited, and all that was shown: the share that touches a true range, and the mean overlap."""
_VERIFIED: dict[str, Callable[[Standing], str]] = {
    "right without evidence": lambda each: _share(each.right_without_evidence),
    "evidence alone suffices": lambda each: _share(each.evidence_suffices),
}
"""With the gate: the shares of right answers that their evidence alone does not show, and of those that it shows."""


def _listed(title: str, lines: Sequence[str]) -> list[str]:
    more = [f"  and {len(lines) - MOST_LINES:,} more"] if len(lines) > MOST_LINES else []
    return [f"{title}: {len(lines):,}", *(f"  {line}" for line in lines[:MOST_LINES]), *more] if lines else []


def comparison_table(comparison: Comparison) -> Table:
    """Make a row for every two contenders; costs are the means a question of the one and of the other."""
    heads = ("a", "b", "a scores", "b scores", "a less b [95 %]", "p", "exact p", "only a", "only b", "questions")
    scale = scale_of(comparison.scoring)
    rows = tuple(_row(each, scale) for each in comparison.versus)
    return Table(
        "on the questions that both answered", (*heads, *(COSTS[name][0] for name in COMPARED_COSTS)), rows, names=2
    )


def comparison_facts(comparison: Comparison) -> list[str]:
    """Write what two runs share and where they differ, a line each."""
    lines = [
        f"{comparison.title}: a is {comparison.one}, b is {comparison.other}",
        f"in both: {comparison.shared:,}; only a: {comparison.only_one:,}; only b: {comparison.only_other:,}",
    ]
    if comparison.changed:
        lines.append(f"left out: {comparison.changed:,} questions whose ids agree and whose words or answers do not")
    if comparison.unpaired:
        lines.append(f"not compared with any: {', '.join(comparison.unpaired)}; --every-pair compares all with all")
    if not comparison.differences:
        lines.append("the plans agree in all except their agents")
    lines += [f"differs: {each.what}: {each.one} / {each.other}" for each in comparison.differences]
    return lines


def _row(versus: Versus, scale: float) -> tuple[str, ...]:
    pair, a, b = versus.pair, versus.a, versus.b
    scores = with_error(a.accuracy, scale), with_error(b.accuracy, scale), difference(pair, scale)
    counts = (f"{count:,}" for count in (pair.only_a, pair.only_b, pair.difference.questions))
    costs = (f"{cost_text(a, name)} / {cost_text(b, name)}" for name in COMPARED_COSTS)
    return pair.a, pair.b, *scores, p_text(pair.p_value), p_text(pair.exact_p_value), *counts, *costs
