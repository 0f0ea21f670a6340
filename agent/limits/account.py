"""The running bill of one question, and the rest of its budget."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from kinodex.agent.limits.budget import Budget
from kinodex.agent.limits.ledger import Ledger
from kinodex.agent.limits.work_clock import WorkClock
from kinodex.agent.protocol.exchange import Usage
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.notes import Note

GROWTH = 1.1
"""A call may cost this many times the largest call before it."""


@dataclass(slots=True)
class Account:
    """The running ledger of one question, and the rest of its budget."""

    budget: Budget
    index_frames: int
    clock: WorkClock = field(default_factory=WorkClock)
    """Seconds of the question's own work: waiting for other questions is none."""
    rounds: int = 0
    _shown: set[tuple[str, int]] = field(default_factory=set)
    _claimed: set[tuple[str, int]] = field(default_factory=set)
    _captioned: set[tuple[str, int]] = field(default_factory=set)
    _screen_lines: set[Note] = field(default_factory=set)
    _spent: Ledger = field(default_factory=Ledger)
    _round_began: Ledger = field(default_factory=Ledger)
    _in_flight: int = 0
    _in_flight_tokens: int = 0
    _largest: Ledger = field(default_factory=Ledger)
    """The most tokens, money and seconds that one call took so far, each by itself."""

    @property
    def ledger(self) -> Ledger:
        return replace(
            self._spent,
            frames=len(self._shown),
            frames_with_kept=len(self._shown | self._captioned),
            index_frames=self.index_frames,
            screen_lines=len(self._screen_lines),
            seconds=self.clock.seconds,
        )

    def shown_frame_nos(self, video_id: str) -> list[int]:
        return [frame_no for seen_id, frame_no in self._shown if seen_id == video_id]

    def begin_round(self) -> int:
        """Count a new round, from 1, and record the costs before it."""
        self.rounds += 1
        self._round_began = self.ledger
        return self.rounds

    def begin_call(self, frames: Sequence[ShownFrame], tokens: int = 0) -> None:
        """Count a call of about this many tokens as in flight, and its frames as shown."""
        self._in_flight += 1
        self._in_flight_tokens += tokens
        self.count_shown(frames)

    def count_shown(self, frames: Sequence[ShownFrame]) -> None:
        self._shown |= {(frame.video_id, frame.frame_no) for frame in frames}
        self._spent = replace(self._spent, frame_shows=self._spent.frame_shows + len(frames))

    def count_captioned(self, video_id: str, frame_nos: Iterable[int]) -> None:
        self._captioned |= {(video_id, frame_no) for frame_no in frame_nos}

    def count_screen_text(self, notes: Iterable[Note]) -> None:
        """Count those of some notes, which a model is given, that quote text on screen."""
        self._screen_lines |= {note for note in notes if note.source == "screen_text"}

    def count_chapters(self, notes: Sequence[Note], *, without: int) -> None:
        """Count the scenes and chapters that prompts list, and the videos of which there are none to list."""
        self._spent = replace(self._spent, chapters=len(notes), videos_without_chapters=without)

    def count_read(self, moments: int) -> None:
        """Count moments of which words are read in the place of a picture."""
        self._spent = replace(self._spent, read_moments=self._spent.read_moments + moments)

    def count_declined(self) -> None:
        self._spent = replace(self._spent, declined=self._spent.declined + 1)

    def end_call(self, tokens: int = 0) -> None:
        self._in_flight -= 1
        self._in_flight_tokens -= tokens

    @property
    def idle_s(self) -> float:
        """Seconds for which no call was in flight and nothing was computed."""
        return 0.0 if self._in_flight else self.clock.idle_s

    def charge(self, usage: Usage, *, cached: bool, invalid: bool, seconds: float) -> None:
        spent = self._spent
        used: dict[str, Any] = {
            each.name: getattr(spent, each.name) + getattr(usage, each.name) for each in fields(usage)
        }
        self._spent = replace(
            spent,
            calls=spent.calls + 1,
            cached_calls=spent.cached_calls + cached,
            invalid_replies=spent.invalid_replies + invalid,
            model_seconds=spent.model_seconds + seconds,
            **used,
        )
        most = self._largest
        self._largest = Ledger(
            input_tokens=max(most.input_tokens, usage.input_tokens + usage.output_tokens + usage.estimated_tokens),
            cost=max(most.cost, usage.cost),
            seconds=max(most.seconds, seconds),
        )

    @property
    def frames_left(self) -> int | None:
        return None if self.budget.frames is None else max(0, self.budget.frames - self.frames_taken)

    @property
    def frames_taken(self) -> int:
        return len(self._shown | self._claimed)

    def claim(self, video_id: str, frame_nos: Iterable[int]) -> None:
        """Take frames of a video out of the budget before they are shown: others are chosen at the same time."""
        self._claimed |= {(video_id, frame_no) for frame_no in frame_nos}

    @property
    def tokens_left(self) -> int | None:
        """Tokens that neither a call took nor one in flight is expected to take."""
        limit = self.budget.tokens
        return None if limit is None else limit - self._spent.tokens - self._in_flight_tokens

    @property
    def seconds_left(self) -> float | None:
        return None if self.budget.seconds is None else self.budget.seconds - self.ledger.seconds

    @property
    def longest_call_s(self) -> float:
        return self._largest.seconds

    def exhausted(self) -> str | None:
        """Return the budget that allows no further call at all, if one does."""
        return self._over(Ledger())

    def exhausted_by_call(self) -> str | None:
        """Return the budget that one more call, beside those in flight, would leave too small for a final one, if
        any.
        """
        return self._over(self._calls(self._in_flight + 2))

    def exhausted_by_round(self) -> str | None:
        """Return the budget that would not last for another round like the present one, if one would not."""
        if self.budget.rounds is not None and self.rounds >= self.budget.rounds:
            return "rounds"
        if self.frames_left == 0:
            return "frames"
        now, before, decisions = self.ledger, self._round_began, self._calls(2)
        tokens = now.tokens - before.tokens + decisions.tokens
        cost, seconds = now.cost - before.cost + decisions.cost, now.seconds - before.seconds + decisions.seconds
        return self._over(Ledger(input_tokens=tokens, cost=cost, seconds=seconds))

    def _calls(self, count: int) -> Ledger:
        """Expected costs of this many calls: of the largest so far, and more, since conversations grow."""
        most, grown = self._largest, count * GROWTH
        return Ledger(
            input_tokens=math.ceil(grown * most.input_tokens), cost=grown * most.cost, seconds=grown * most.seconds
        )

    def _over(self, more: Ledger) -> str | None:
        now = self.ledger
        for name in ("tokens", "seconds", "cost"):
            limit = getattr(self.budget, name)
            if limit is not None and getattr(now, name) + getattr(more, name) >= limit:
                return name
        return None
