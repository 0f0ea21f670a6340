"""What tokens cost. Prices are the user's to give, for each role; none are built in, since they change."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, NonNegativeFloat

from agent.core.protocol import Usage

TOKENS = 1_000_000


class Price(BaseModel):
    """Money for a million tokens, in whatever currency the user counts; 0 where nothing is said."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: NonNegativeFloat = 0.0
    output: NonNegativeFloat = 0.0
    cached_input: NonNegativeFloat | None = None
    """For input tokens that the server had cached; None: the same as `input`."""


def priced(price: Price, input_tokens: int, output_tokens: int, cached_tokens: int) -> Usage:
    """The usage with its cost; `cached_tokens` are part of `input_tokens`."""
    cached = min(cached_tokens, input_tokens)
    cached_price = price.input if price.cached_input is None else price.cached_input
    cost = (input_tokens - cached) * price.input + cached * cached_price + output_tokens * price.output
    return Usage(input_tokens, output_tokens, cached, cost / TOKENS)
