"""Costs of asking models, before anything is sent: the figures of `--dry-run`.

Who asks says what it would ask, beside the code that asks it: agents (`kinodex.jobs.forecast`), additions
(`kinodex.jobs.add`), evaluations (`kinodex.jobs.eval.forecast`). Here it is added up and shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from kinodex.agent.models.assumed_model import expected_usage
from kinodex.agent.models.response_cache import ResponseCache
from kinodex.agent.models.roles import Role
from kinodex.agent.models.sight import sight_key
from kinodex.agent.protocol.exchange import Usage
from kinodex.agent.protocol.request import Request
from kinodex.jobs.models import ModelChoice, cache_file, endpoint_roles

AT_MOST = "at most"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Forecast:
    """Costs of one system. `questions` are those that are still to be asked, or segments to be captioned.

    `frames` are different frames that are shown, added up over the questions. `basis` says where the figures come from.
    """

    system: str
    questions: int
    calls: float
    frames: float
    input_tokens: float
    output_tokens: float
    cost: float
    basis: str = AT_MOST
    frames_a_question: float = 0.0
    """With those behind captions that the library holds: what a control gets that is to see as many."""
    tries: float = 0
    """Calls beside these: a small picture, shown once to find out if the model takes any."""


COSTS = ("calls", "frames", "input_tokens", "output_tokens", "cost")


def add_up(forecasts: Sequence[Forecast]) -> Forecast:
    """Add forecasts up to a row of all."""
    sums = {name: sum(getattr(each, name) for each in forecasts) for name in COSTS}
    tries = max((each.tries for each in forecasts), default=0)
    return Forecast("all", sum(each.questions for each in forecasts), **sums, basis="", tries=tries)


def table(forecasts: Sequence[Forecast], unit: str = "questions", advice: str = "") -> str:
    """Write forecasts as Markdown, for people; `unit` is the heading of `questions`, `advice` a last sentence."""
    rows = [*forecasts, *([add_up(forecasts)] if len(forecasts) > 1 else [])]
    if rows and rows[-1].tries:
        more = f"{rows[-1].tries} call more, of a small picture,"
        advice = f"{more} comes before them if the server does not say that its model sees. {advice}"
    lines = [
        f"| | {unit} | calls | frames | tokens in | tokens out | cost | from |",
        "|---" * 8 + "|",
        *(
            f"| {each.system} | {each.questions:,} | {each.calls:,.0f} | {each.frames:,.0f} | {each.input_tokens:,.0f} "
            f"| {each.output_tokens:,.0f} | {each.cost:.4g} | {each.basis} |"
            for each in rows
        ),
        "",
        "Before anything is asked; nothing was sent. Tokens are estimates where no past run counted them: four "
        f"characters a token, pictures by the rule of the model's maker. {advice}".strip(),
    ]
    return "\n".join(lines)


def spread(items: Sequence[T], count: int) -> list[T]:
    """At most `count` items, spread evenly."""
    if len(items) <= count:
        return list(items)
    return [items[round(at * (len(items) - 1) / max(1, count - 1))] for at in range(count)]


def of_requests(system: str, requests: Sequence[Request[Any]], role: Role, questions: int | None = None) -> Forecast:
    """Return the costs of some requests to a role, about this many `questions`, or as many as there are requests."""
    frames = sum(len(each.frames) for each in requests)
    usage = sum((expected_usage(each, role) for each in requests), Usage())
    spent = usage.input_tokens, usage.output_tokens, usage.cost
    asked = len(requests) if questions is None else questions
    return Forecast(system, asked, len(requests), frames, *spent, basis="library")


def sight_tries(choice: ModelChoice, needs_pictures: bool) -> int:
    """Count the pictures that a model behind an endpoint may be shown before the first call: 1 at most."""
    roles = endpoint_roles(choice).values()
    if not roles or not needs_pictures or any(role.images is not None for role in roles):
        return 0
    path = choice.cache_path or cache_file()
    if not choice.cache or not path.is_file():
        return 1
    with ResponseCache(path) as cache:
        return int(all(cache.get(sight_key(role)) is None for role in roles))
