"""Curves of an experiment's rows by kind of question, and comparisons that were registered before it ran.

A comparison's interval is a bootstrap over films: questions about one film are not independent.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

REGISTERED = Path(__file__).with_name("registered.jsonl")
"""A line for each comparison: `name`, `at` (when it was written), `of` (the needs of its questions), `margin` in
points, and the trials `one` and `other` by the fields of rows that they fix."""
NEEDS: Mapping[str, tuple[str, ...]] = {"seen": ("pictures", "text"), "spoken": ("words", "both")}
"""Groups of questions: those that pictures or text on screen answer, and those that a spoken line does."""
WHOLE = ("first", "last", "count", "holder")
"""Kinds of questions that need a whole film: a group of their own."""
DRAWS = 2000
LEAST_FILMS = 5
"""Fewer films give no interval: drawing two films again and again knows nothing of a third."""
Row = Mapping[str, Any]


def group_of(row: Row) -> str:
    """The group of a row's question: "seen", "spoken" or "whole"."""
    return "whole" if row["kind"] in WHOLE else next(name for name, needs in NEEDS.items() if row["needs"] in needs)


def reached(row: Row) -> bool:
    """True if the last request held what answers the question: a frame, a line, or both, of the true range."""
    needed = {"words": ("line_last",), "both": ("frame_last", "line_last")}.get(row["needs"], ("frame_last",))
    return all(row[name] for name in needed)


def interval(values: Mapping[str, Sequence[float]], draws: int = DRAWS) -> tuple[float, float, float]:
    """The mean over all values, and its 95 % interval by drawing whole films, by name, with replacement."""
    sums = np.array([[sum(each), len(each)] for each in values.values()], float)
    drawn = np.random.default_rng(0).integers(len(sums), size=(draws, len(sums)))
    means = sums[drawn].sum(axis=1)
    low, high = np.percentile(means[:, 0] / means[:, 1], [2.5, 97.5])
    return float(sums[:, 0].sum() / sums[:, 1].sum()), float(low), float(high)


def tables(rows: Sequence[Row]) -> str:
    """Tables in Markdown: by agent and frames, then right answers by kind of question at the most frames."""
    lines = list(_summary(rows))
    lines += ["", *_losses(rows)]
    lines += ["", *_by_kind(rows)] if rows else []
    registered = [json.loads(line) for line in REGISTERED.read_text(encoding="utf-8").splitlines()]
    trials = by_trial(rows)
    compared = [said for each in registered if (said := compare(trials, each))]
    return "\n".join([*lines, *([""] if compared else []), *compared])


def by_trial(rows: Sequence[Row]) -> dict[tuple[Any, ...], list[Row]]:
    trials: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        trials[tuple(row[name] for name in ("films", "eyes", "speech", "agent", "frames"))].append(row)
    return trials


def _summary(rows: Sequence[Row]) -> Iterator[str]:
    heads = "films eyes speech agent frames seen reached spoken reached whole used calls tokens"
    yield f"| {' | '.join(heads.split())} |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    for (films, eyes, speech, agent, frames), group in by_trial(rows).items():
        of = {name: [row for row in group if group_of(row) == name] for name in (*NEEDS, "whole")}
        cells = [f"{films}", eyes, "yes" if speech else "no", agent, str(frames)]
        for name in NEEDS:
            cells += [_share(of[name], lambda row: row["right"], count=True), _share(of[name], reached)]
        cells += [_share(of["whole"], lambda row: row["right"], count=True)]
        cells += [_mean(group, "used", ".1f"), _mean(group, "calls", ".1f"), _mean(group, "tokens", ",.0f")]
        yield f"| {' | '.join(cells)} |"


def loss_of(row: Row) -> str:
    """The part that lost a question: a wrong answer, what was never shown, or what was and settled nothing."""
    if row["answered"]:
        return "wrong"
    shown = {"words": ("line",), "both": ("frame", "line")}.get(row["needs"], ("frame",))
    return "not settled" if all(row[name] for name in shown) else "never shown"


def _losses(rows: Sequence[Row]) -> Iterator[str]:
    parts = ("never shown", "not settled", "wrong")
    heads = ("films", "eyes", "speech", "agent", "frames", "seen, missed", *parts, "spoken, missed", parts[0])
    yield f"| {' | '.join(heads)} |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for (films, eyes, speech, agent, frames), group in by_trial(rows).items():
        missed = {name: [loss_of(row) for row in group if group_of(row) == name and not row["right"]] for name in NEEDS}
        seen, spoken = missed["seen"], missed["spoken"]
        cells = [f"{films}", eyes, "yes" if speech else "no", agent, str(frames)]
        cells += map(str, (len(seen), *(seen.count(part) for part in parts), len(spoken), spoken.count(parts[0])))
        yield f"| {' | '.join(cells)} |"


def _share(rows: Sequence[Row], of: Callable[[Row], bool], *, count: bool = False) -> str:
    if not rows:
        return "-"
    share = f"{sum(map(of, rows)) / len(rows):.2f}"
    return f"{share} of {len(rows)}" if count else share


def _mean(rows: Sequence[Row], name: str, form: str) -> str:
    return f"{np.mean([row[name] for row in rows]):{form}}"


def _by_kind(rows: Sequence[Row]) -> Iterator[str]:
    trials = by_trial(rows)
    most = max(frames for *_, frames in trials)
    columns = {key[:4]: group for key, group in trials.items() if key[4] == most}
    kinds = sorted({(group_of(row), row["kind"]) for row in rows})
    yield f"| right at {most} frames | n | {' | '.join(' '.join(map(str, key[:1] + key[3:])) for key in columns)} |"
    yield f"|---|---|{'---|' * len(columns)}"
    for group, kind in kinds:
        of = [[row for row in each if row["kind"] == kind] for each in columns.values()]
        cells = [_share(each, lambda row: row["right"]) for each in of]
        yield f"| {kind} ({group}) | {max(map(len, of))} | {' | '.join(cells)} |"


def compare(trials: Mapping[tuple[Any, ...], Sequence[Row]], registered: Mapping[str, Any]) -> str:
    """A registered comparison in words; "" if the rows, by trial, do not hold both of its trials."""
    outcome: Callable[[Row], float] = reached if registered["outcome"] == "reached" else lambda row: row["right"]
    sides: list[dict[tuple[str, str], float]] = []
    began = ""
    for side in ("one", "other"):
        fixed = registered[side].items()
        held = [group for group in trials.values() if all(group[0][name] == value for name, value in fixed)]
        found = [row for group in held for row in group if group_of(row) == registered["of"]]
        sides.append({(row["film"] + row["films"], row["question_id"]): float(outcome(row)) for row in found})
        began = min([row["at"] for row in found], default=began)
    both = sides[0].keys() & sides[1].keys()
    if not both:
        return ""
    films: dict[str, list[float]] = defaultdict(list)
    for key in sorted(both):  # the same draws each time
        films[key[0]].append(sides[0][key] - sides[1][key])
    mean, low, high = (100 * each for each in interval(films))
    margin = registered["margin"]
    verdict = (
        "ahead" if low > 0 else "behind" if high < 0 else "no different" if -margin < low and high < margin else "open"
    )
    verdict = verdict if len(films) >= LEAST_FILMS else f"fewer than {LEAST_FILMS} films tell nothing"
    late = "" if registered["at"] <= began else " (registered after its rows)"
    won = sum(sides[0][key] > sides[1][key] for key in both)
    lost = sum(sides[0][key] < sides[1][key] for key in both)
    numbers = f"{mean:+.1f} points [{low:+.1f}, {high:+.1f}], won {won}, lost {lost} of {len(both)}, {len(films)} films"
    return f"- {registered['name']} ({registered['outcome']}, {registered['of']}): {verdict}, {numbers}{late}"
