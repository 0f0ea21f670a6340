"""Evidence against the true ranges: if it touches one, and how precisely it covers them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from kinodex.agent.evidence import Evidence

Ranges = Sequence[tuple[float, float]]
"""Half-open ranges in seconds, as a player shows them."""
Place = tuple[str, float, float]
"""A range of a video: its id, start and end in seconds."""


@dataclass(frozen=True, slots=True)
class EvidenceScore:
    """The score of the evidence of one answer: `hit` if some of it lies in a true range.

    `overlap` is the temporal intersection over union of all of it with all true ranges (tIoU, 0 to 1; Gao et al. 2017,
    arXiv 1705.02101): all of a video hits, with a small overlap.
    """

    hit: bool
    overlap: float


def score_evidence(evidence: Iterable[Evidence], among: Collection[str], true: Ranges) -> EvidenceScore:
    """Score ranges against the true ones, which lie in one of the videos `among`; ranges of others are beside them."""
    found = _joined((each.video_id, each.start_s, each.end_s) for each in evidence)
    wanted = _joined(("", start_s, end_s) for start_s, end_s in true)
    inside = {name: _common_s([each for each in found if each[0] == name], wanted) for name in among}
    common_s = max(inside.values(), default=0.0)
    all_s = _length_s(found) + _length_s(wanted) - common_s
    return EvidenceScore(common_s > 0, common_s / all_s if all_s else 0.0)


def _joined(places: Iterable[Place]) -> list[Place]:
    """Join ranges that overlap, so that no second counts twice."""
    joined: list[Place] = []
    for video, start_s, end_s in sorted(places):
        if joined and joined[-1][0] == video and start_s <= joined[-1][2]:
            joined[-1] = (video, joined[-1][1], max(end_s, joined[-1][2]))
        else:
            joined.append((video, start_s, end_s))
    return joined


def _common_s(found: Sequence[Place], wanted: Sequence[Place]) -> float:
    return sum(
        max(0.0, min(end_s, other_end_s) - max(start_s, other_start_s))
        for _, start_s, end_s in found
        for _, other_start_s, other_end_s in wanted
    )


def _length_s(places: Iterable[Place]) -> float:
    return sum(end_s - start_s for _, start_s, end_s in places)
