"""Counts of usable replies by round, by which a run sees that its models make no sense."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

LOST_ROUNDS = 3
"""After this many rounds in a row without any usable reply a run ends."""
LOST_REPLIES = 20
"""After this many invalid replies a run without any usable one ends, in whatever round: some agents begin with hundreds
of captions."""


@dataclass(slots=True)
class UsableReplies:
    """The usable and the invalid replies of one run, by round (0: before the first).

    A reply counts only if it could have been invalid: any text is a thought.
    """

    fault: str = ""
    """The fault of the last invalid reply, in one line."""
    model: str = ""
    """The name of the model that gave it."""
    _usable: Counter[int] = field(default_factory=Counter)
    _invalid: Counter[int] = field(default_factory=Counter)

    def count(self, round_no: int, model: str, invalid: str | None) -> None:
        """Add a reply of a round: `invalid` is its fault, None for a usable one."""
        if invalid is None:
            self._usable[round_no] += 1
        else:
            self._invalid[round_no] += 1
            self.fault, self.model = invalid, model

    @property
    def none_usable(self) -> bool:
        return bool(self._invalid.total()) and not self._usable.total()

    def lost_rounds(self, now: int) -> int:
        """Return the number of rounds in a row, the last of them before round `now`, that had only invalid replies.

        Rounds without any reply are passed over.
        """
        lost = 0
        for round_no in range(now - 1, 0, -1):
            if self._usable[round_no]:
                break
            lost += bool(self._invalid[round_no])
        return lost

    def loss(self, now: int) -> str:
        """Return the loss for which a run in its round `now` has to end, in words; "" if it may go on."""
        if self.lost_rounds(now) >= LOST_ROUNDS:
            return f"in {LOST_ROUNDS} rounds"
        return f"of {self._invalid.total()}" if self.none_usable and self._invalid.total() >= LOST_REPLIES else ""
