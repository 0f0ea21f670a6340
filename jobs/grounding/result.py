"""The result of a grounding: its ranges, their basis, and what it claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from kinodex.index.rows import Basis
from kinodex.jobs.export.moment_rule import MomentRule, SegmentsOf, arranged
from kinodex.jobs.export.moments import Moment
from kinodex.jobs.verdicts import basis_of, claim

if TYPE_CHECKING:
    from kinodex.jobs.verification.look import Looked


MOST = 5
BY_SEARCH = "search"


@dataclass(frozen=True, slots=True)
class Grounding:
    """The ranges of some videos that fit a text best, the best first, and on what `basis` anything may be said of them.

    By search alone there is an order, or a probability of the space's own, and `present` is None. A model that looked
    (`kinodex.jobs.verdicts`) or an agent says that it is there or not, for the `reason`. `candidates` are the best
    ranges in any case; their scores are `evidence` on the scale from 0 to 1 of `kinodex.agent.videos.scale`, which
    orders the ranges of one text and says nothing across texts. `evidence` is the greatest deviation found, in robust
    standard deviations; of an agent it is None.
    """

    text: str
    candidates: tuple[Moment, ...]
    present: bool | None
    by: str
    basis: Basis = "ranking"
    evidence: float | None = None
    reason: str = ""
    looked: Looked | None = field(default=None, compare=False)
    """The calls of the model that looked at the ranges, where one did."""

    @property
    def ranges(self) -> tuple[Moment, ...]:
        """The ranges that are answered: of an agent those that it cites, else those that no model denied."""
        if self.present is False or (self.by != BY_SEARCH and not self.present):
            return ()
        return tuple(each for each in self.candidates if each.present is not False)

    @property
    def claim(self) -> str:
        """One line that says what the basis allows."""
        if self.by == BY_SEARCH:
            said = [claim(self.candidates)] if self.candidates else []
            return "; ".join(filter(None, [*said, self.reason]))
        verdict = {True: "present", False: "absent", None: "no verdict"}[self.present]
        return f"{verdict}, by {self.by}" + (f": {self.reason}" if self.reason else "")


def with_verdicts(grounding: Grounding, judged: Sequence[Moment]) -> Grounding:
    """Return the grounding with a model's verdicts.

    It is present if it is in one range, absent if it is in none of all.
    """
    said = [each.present for each in judged]
    present = True if any(said) else False if said and None not in said else None
    return replace(grounding, candidates=tuple(judged), present=present, basis=basis_of(judged))


def arranged_by(rule: MomentRule, grounding: Grounding, segments_of: SegmentsOf) -> Grounding:
    """Return the same ranges, padded, joined and ended at cuts by the rule of exports.

    Weaker ones stay apart from answers.
    """
    strong = grounding.ranges
    weak = [each for each in grounding.candidates if each not in strong]
    return replace(grounding, candidates=(*arranged(strong, rule, segments_of), *arranged(weak, rule, segments_of)))


def as_json(grounding: Grounding) -> dict[str, Any]:
    """Return a grounding as JSON has it: times that a player shows, and those of the file's timestamps."""
    shown = [
        {
            "video_id": each.video.video_id,
            "title": each.video.title,
            "start_s": each.start_s,
            "end_s": each.end_s,
            "presentation_start_s": each.presentation_start_s,
            "presentation_end_s": each.presentation_end_s,
            "score": each.score,
            "found_in": each.source,
            "basis": each.basis,
            "probability": each.probability,
            "present": each.present,
            "reason": each.reason,
        }
        for each in grounding.candidates
    ]
    answered = [each in grounding.ranges for each in grounding.candidates]
    return {
        "text": grounding.text,
        "basis": grounding.basis,
        "present": grounding.present,
        "claim": grounding.claim,
        "by": grounding.by,
        "evidence": grounding.evidence,
        "reason": grounding.reason,
        "ranges": [each for each, is_one in zip(shown, answered, strict=True) if is_one],
        "weaker": [each for each, is_one in zip(shown, answered, strict=True) if not is_one],
    }
