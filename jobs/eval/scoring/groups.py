"""Scores of groups of four questions, as Video-MME-v2 counts them (Fu et al. 2026, arXiv 2604.05015, and its code).

A group about one ability (`group_type` "relevance") is worth the square of its share of right answers. In a group
that is a chain of reasoning ("logic") only the right answers before the first wrong one count, in steps that depend
on which questions stand side by side (`group_structure`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from kinodex.jobs.eval.scoring.answers import ScoredResult
from kinodex.jobs.eval.scoring.estimates import Estimate, estimate
from kinodex.jobs.eval.video_names import by_number

TITLE = "score_of_groups"
SIZE = 4
SQUARES = (0.0, 1 / 16, 4 / 16, 9 / 16, 1.0)
CHAINS: Mapping[str, tuple[tuple[float, ...], int | None]] = {
    "[1,2,3,4]": (SQUARES, None),
    "[1,[2,3],4]": ((0.0, 1 / 12, 4 / 12, 7 / 12, 1.0), 1),
    "[[1,2],3,4]": ((0.0, 1 / 10, 2 / 10, 5 / 10, 1.0), 0),
}
"""By structure: the worth of a chain by its length, and the first of the two questions that stand side by side."""


def group_scores(results: Iterable[ScoredResult]) -> dict[str, dict[str, Estimate]]:
    """Compute the mean score of groups that were asked whole, of all and by type and level; empty without groups."""
    films: dict[str, list[ScoredResult]] = defaultdict(list)
    for each in results:
        if each.score is not None and "group_type" in each.item.groups:
            films[each.item.video].append(each)
    found: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for video, group in films.items():
        if len(group) != SIZE:
            continue
        ordered = sorted(group, key=lambda each: by_number(each.item.item_id))
        last = ordered[-1].item.groups
        structure = last.get("group_structure", ("",))[0].replace(" ", "")
        score = score_group([each.score == 1 for each in ordered], last["group_type"][0], structure)
        levels = [f"level {name}" for name in last.get("level", ())]
        for category in ("all", last["group_type"][0], *levels):
            found[category].append((score, video))
    means = {
        name: estimate([score for score, _ in pairs], [video for _, video in pairs], 0.0, 1.0)
        for name, pairs in sorted(found.items())
    }
    return {TITLE: means} if means else {}


def score_group(right: Sequence[bool], kind: str, structure: str) -> float:
    """Score a group of four, 0 to 1: of right answers in order, its type, and its structure without spaces."""
    if kind != "logic":
        return SQUARES[sum(right)]
    worth, pair = CHAINS.get(structure, CHAINS["[1,2,3,4]"])
    length = next((place for place, each in enumerate(right) if not each), SIZE)
    # Of two questions side by side, the second counts though the first is wrong.
    beside = pair is not None and length == pair and right[pair + 1]
    return worth[length + 1 if beside else length]
