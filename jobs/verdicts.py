"""Words for moments that were found, by their basis: an order, a probability, or the verdict of a model that looked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kinodex.index.durations import counted
from kinodex.index.rows import Basis

LIKELY = 0.5
"""The probability from which on a moment is called likely: more likely than not, by the space's own sigmoid."""
RANKED = "an order, and no claim: something always comes first, whether or not it is there"


class Judged(Protocol):
    """A moment with what stands behind it: a hit, or a range."""

    @property
    def basis(self) -> Basis: ...
    @property
    def probability(self) -> float | None: ...
    @property
    def present(self) -> bool | None: ...
    @property
    def reason(self) -> str: ...


def basis_of(found: Sequence[Judged]) -> Basis:
    """Return the strongest basis of any of these moments."""
    held = {each.basis for each in found}
    return "verified" if "verified" in held else "probability" if "probability" in held else "ranking"


def claim(found: Sequence[Judged]) -> str:
    """Say of moments, best first, what their basis allows: only a model that looked says "present" or "absent"."""
    unread = sum(each.present is None and bool(each.reason) for each in found)
    more = f"no verdict on {counted(unread, 'moment')}, as the model's reply could not be used" if unread else ""
    basis = basis_of(found)
    if basis != "verified":
        return f"{more}; {_searched(found, basis)}" if more else _searched(found, basis)
    looked = [each.present for each in found if each.present is not None]
    said = f"absent from the {counted(len(looked), 'moment')} that a model looked at"
    if any(looked):
        said = f"present: a model saw it in {sum(looked)} of the {counted(len(looked), 'moment')} it looked at"
    return f"{said}; {more}" if more else said


def _searched(found: Sequence[Judged], basis: Basis) -> str:
    match basis:
        case "probability":
            best = max(each.probability for each in found if each.probability is not None)
            if best >= LIKELY:
                return f"likely: a probability of {best:.2f} by the space's own measure"
            return f"nothing here matches well (a probability of {best:.2f} at most); the nearest are"
        case _:
            return RANKED if found else "nothing was found"
