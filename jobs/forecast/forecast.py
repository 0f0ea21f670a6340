"""A forecast: calls, frames, tokens and money that questions or captions are expected to cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.core.budget import Ledger

REHEARSAL = "rehearsal"


@dataclass(frozen=True, slots=True)
class Forecast:
    """Expected costs of one system. `questions` are those that are still to be asked, or segments to be captioned.

    `frames` are different frames that are shown, added up over the questions, as in ledgers. `cost` is 0 without
    prices. `basis` says where the figures come from: a rehearsal, or a past run.
    """

    system: str
    questions: int
    calls: float
    frames: float
    input_tokens: float
    output_tokens: float
    cost: float
    basis: str = REHEARSAL
    frames_a_question: float = 0.0
    """With those behind captions that the library holds: what a control gets that is to see as many."""


COSTS = ("calls", "frames", "input_tokens", "output_tokens", "cost")


def from_ledgers(system: str, ledgers: Sequence[Ledger], questions: int, basis: str) -> Forecast:
    """Expect for each question the mean of these ledgers, of which there is one or more."""
    share = questions / len(ledgers)
    sums = {name: share * sum(getattr(each, name) for each in ledgers) for name in COSTS}
    each = sum(ledger.frames_with_kept for ledger in ledgers) / len(ledgers)
    return Forecast(system, questions, **sums, basis=basis, frames_a_question=each)


def add_up(forecasts: Sequence[Forecast]) -> Forecast:
    """Add forecasts up to a row of all."""
    sums = {name: sum(getattr(each, name) for each in forecasts) for name in COSTS}
    return Forecast("all", sum(each.questions for each in forecasts), **sums, basis="")


def table(forecasts: Sequence[Forecast], unit: str = "questions", advice: str = "") -> str:
    """Write forecasts as Markdown, for people; `unit` is the heading of `questions`, `advice` a last sentence."""
    rows = [*forecasts, *([add_up(forecasts)] if len(forecasts) > 1 else [])]
    lines = [
        f"| | {unit} | calls | frames | tokens in | tokens out | cost | from |",
        "|---" * 8 + "|",
        *(
            f"| {each.system} | {each.questions:,} | {each.calls:,.0f} | {each.frames:,.0f} | {each.input_tokens:,.0f} "
            f"| {each.output_tokens:,.0f} | {each.cost:.4g} | {each.basis} |"
            for each in rows
        ),
        "",
        "Expected; nothing was sent. Tokens of a rehearsal are estimates: four characters a token, pictures by "
        f"OpenAI's tiles. {advice}".strip(),
    ]
    return "\n".join(lines)
