"""Costs of an answer, and their limits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real

from agent.core.protocol import ShownFrame, Usage
from agent.core.question import SCREEN_TEXT, Note
from agent.core.work_clock import WorkClock
from agent.errors import BadSettings

GROWTH = 1.1
"""A call may cost this many times the largest call before it."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """The bill of one answer.

    `frames` counts different frames that a model saw, `frame_shows` every showing, `index_frames` the embedded frames
    of the videos in question. `frames_with_kept` are `frames` and those behind captions that an earlier run paid for
    and this one read: the number to compare with papers that caption again. In a video without pictures, captions that
    stand in the place of frames count there. Tokens are those of the calls; `cached_tokens` are
    among `input_tokens`. `model_seconds` adds up the calls, some of which run side by side; `seconds` are those of the
    question's own work, without waiting for other questions (`agent.core.work_clock`). `declined` replies gave up where
    that was not accepted. `estimated_tokens` are those of the `unknown_calls`, whose servers do not count; a budget
    counts them too. `sheets` are contact sheets that stood for several frames, and `left_out_frames` found no place on
    one: counted among `frames` all the same. `screen_lines` are the different lines of text on screen that were quoted,
    `chapters` the scenes and chapters whose titles were, and `videos_without_chapters` the videos that lack them.
    """

    frames: int = 0
    frame_shows: int = 0
    index_frames: int = 0
    frames_with_kept: int = 0
    calls: int = 0
    cached_calls: int = 0
    invalid_replies: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    model_seconds: float = 0.0
    declined: int = 0
    unknown_calls: int = 0
    estimated_tokens: int = 0
    sheets: int = 0
    left_out_frames: int = 0
    screen_lines: int = 0
    chapters: int = 0
    videos_without_chapters: int = 0

    @property
    def tokens(self) -> int:
        """Tokens in and out, known and estimated: what a budget counts."""
        return self.input_tokens + self.output_tokens + self.estimated_tokens


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of the costs of an answer; None is without limit. `tokens` counts input and output together.

    Rounds are limited by the agent's own parameters too; the lower limit holds.
    """

    rounds: int | None = None
    frames: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    cost: float | None = None

    def __post_init__(self) -> None:
        for name in ("rounds", "frames", "tokens", "seconds", "cost"):
            limit = getattr(self, name)
            kind, kind_name = (Real, "number") if name in ("seconds", "cost") else (Integral, "whole number")
            if limit is None:
                continue
            if not isinstance(limit, kind) or isinstance(limit, bool) or not 0 < float(limit) < math.inf:
                raise BadSettings(f"got a budget of {limit!r:.40} {name}; give a {kind_name} above 0, or leave it out")


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
        """Numbers of the frames of a video that were shown."""
        return [frame_no for seen_id, frame_no in self._shown if seen_id == video_id]

    def begin_round(self) -> int:
        """Count a new round, from 1, and record the costs before it."""
        self.rounds += 1
        self._round_began = self.ledger
        return self.rounds

    def begin_call(self, frames: Sequence[ShownFrame]) -> None:
        self._in_flight += 1
        self.count_shown(frames)

    def count_shown(self, frames: Sequence[ShownFrame]) -> None:
        """Count frames that any model sees."""
        self._shown |= {(frame.video_id, frame.frame_no) for frame in frames}
        self._spent = replace(self._spent, frame_shows=self._spent.frame_shows + len(frames))

    def count_captioned(self, video_id: str, frame_nos: Iterable[int]) -> None:
        """Count frames of a video behind captions that are read instead of the frames."""
        self._captioned |= {(video_id, frame_no) for frame_no in frame_nos}

    def count_screen_text(self, notes: Iterable[Note]) -> None:
        """Count those of some notes, which a model is given, that quote text on screen."""
        self._screen_lines |= {note for note in notes if note.source == SCREEN_TEXT}

    def count_chapters(self, notes: Sequence[Note], *, without: int) -> None:
        """Count the scenes and chapters that prompts list, and the videos of which there are none to list."""
        self._spent = replace(self._spent, chapters=len(notes), videos_without_chapters=without)

    def count_declined(self) -> None:
        """Count a reply that gave up and was not accepted."""
        self._spent = replace(self._spent, declined=self._spent.declined + 1)

    def end_call(self) -> None:
        self._in_flight -= 1

    @property
    def idle_s(self) -> float:
        """Seconds for which no call was in flight and nothing was computed."""
        return 0.0 if self._in_flight else self.clock.idle_s

    def charge(self, usage: Usage, *, cached: bool, invalid: bool, seconds: float) -> None:
        spent = self._spent
        self._spent = replace(
            spent,
            calls=spent.calls + 1,
            cached_calls=spent.cached_calls + cached,
            invalid_replies=spent.invalid_replies + invalid,
            input_tokens=spent.input_tokens + usage.input_tokens,
            output_tokens=spent.output_tokens + usage.output_tokens,
            cached_tokens=spent.cached_tokens + usage.cached_tokens,
            cost=spent.cost + usage.cost,
            model_seconds=spent.model_seconds + seconds,
            unknown_calls=spent.unknown_calls + usage.unknown_calls,
            estimated_tokens=spent.estimated_tokens + usage.estimated_tokens,
            sheets=spent.sheets + usage.sheets,
            left_out_frames=spent.left_out_frames + usage.left_out_frames,
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
        """The number of different frames that models were shown or are about to be shown."""
        return len(self._shown | self._claimed)

    def claim(self, video_id: str, frame_nos: Iterable[int]) -> None:
        """Take frames of a video out of the budget before they are shown: others are chosen at the same time."""
        self._claimed |= {(video_id, frame_no) for frame_no in frame_nos}

    @property
    def seconds_left(self) -> float | None:
        return None if self.budget.seconds is None else self.budget.seconds - self.ledger.seconds

    @property
    def longest_call_s(self) -> float:
        """Seconds of the call that took longest so far."""
        return self._largest.seconds

    def exhausted(self) -> str | None:
        """The budget that allows no further call at all, if one does."""
        return self._over(Ledger())

    def exhausted_by_call(self) -> str | None:
        """The budget that one more call, beside those in flight, would leave too small for a final one, if any."""
        return self._over(self._calls(self._in_flight + 2))

    def exhausted_by_round(self) -> str | None:
        """The budget that would not last for another round like the present one, if one would not."""
        if self.budget.rounds is not None and self.rounds >= self.budget.rounds:
            return "rounds"
        if self.frames_left == 0:
            return "frames"
        now, before, decisions = self.ledger, self._round_began, self._calls(2)
        tokens = now.tokens - before.tokens
        return self._over(
            Ledger(
                input_tokens=tokens + decisions.input_tokens,
                cost=now.cost - before.cost + decisions.cost,
                seconds=now.seconds - before.seconds + decisions.seconds,
            )
        )

    def _calls(self, count: int) -> Ledger:
        """Expected costs of so many calls: of the largest so far, and more, since conversations grow."""
        most, grown = self._largest, count * GROWTH
        return Ledger(
            input_tokens=math.ceil(grown * most.input_tokens), cost=grown * most.cost, seconds=grown * most.seconds
        )

    def _over(self, more: Ledger) -> str | None:
        now, budget = self.ledger, self.budget
        tokens = now.tokens + more.tokens
        planned = {
            "tokens": (tokens, budget.tokens),
            "seconds": (now.seconds + more.seconds, budget.seconds),
            "cost": (now.cost + more.cost, budget.cost),
        }
        over = [name for name, (used, limit) in planned.items() if limit is not None and used >= limit]
        return over[0] if over else None
