"""A look at moments by a model, and the verdicts of its replies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from kinodex.agent.attempts import Outcome, ask_checked
from kinodex.agent.errors import TakesNoPictures
from kinodex.agent.limits.parallel_calls import gather_all
from kinodex.agent.protocol.exchange import Model, Models, Usage, model_for
from kinodex.agent.requests.judge_moments import JudgeMoments, MomentVerdicts
from kinodex.index.library import LibraryReader
from kinodex.index.rows import Hit
from kinodex.jobs.costs import Forecast, of_requests, sight_tries
from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.moments import Moment
from kinodex.jobs.models import ModelChoice, role_models, run_now
from kinodex.jobs.verification.kept_verdicts import KeptVerdicts, looking_role, opened_verdicts
from kinodex.jobs.verification.requests import one_line, requests_for
from kinodex.jobs.verification.spans import Found, Span, Verdict

MOST = 50
"""Moments that one search has looked at."""


@dataclass(slots=True)
class Looked:
    """Verdicts in the order of the moments; what the calls cost, and how many replies could not be used."""

    verdicts: list[Verdict]
    calls: int = 0
    invalid: int = 0
    usage: Usage = field(default_factory=Usage)


class Look(Protocol):
    """Has a model look at the first moments that a search found, as `verified` does with a model of its own."""

    def __call__(
        self, library: LibraryReader, text: str, found: Sequence[Found], count: int
    ) -> tuple[list[Found], Looked]: ...


def verified(
    library: LibraryReader, text: str, found: Sequence[Found], count: int, models: ModelChoice | Models
) -> tuple[list[Found], Looked]:
    """Have a model look at the first `count` moments; those with a verdict have the basis "verified".

    Raises UsageError for a model that cannot look, and a ModelError for one that gives no reply at all.
    """
    if not text.strip():
        raise UsageError("got no words to look for in the moments; give a text beside the picture")
    if not 1 <= count <= MOST:
        raise UsageError(f"got {count} moments to look at; give a number from 1 to {MOST}")
    if isinstance(models, ModelChoice):
        looking_role(models)
    spans = [Span.of(each) for each in found[:count]]
    looked = run_now(_opened(library, text, spans, models)) if spans else Looked([])
    judged = list(found)
    for at, verdict in enumerate(looked.verdicts):
        judged[at] = _judged(judged[at], verdict)
    return judged, looked


def _judged(found: Found, verdict: Verdict) -> Found:
    basis = found.basis if verdict.present is None else "verified"
    return replace(found, basis=basis, present=verdict.present, reason=verdict.reason)


async def _opened(library: LibraryReader, text: str, spans: Sequence[Span], models: ModelChoice | Models) -> Looked:
    if not isinstance(models, ModelChoice):
        return await look(library, text, spans, models)
    with opened_verdicts(models, text) as kept:
        async with role_models(models) as opened:
            return await look(library, text, spans, opened, kept)


async def look(
    library: LibraryReader, text: str, spans: Sequence[Span], models: Models, verdicts: KeptVerdicts | None = None
) -> Looked:
    """Have the model of the role "vision" look at moments, but for those on which verdicts are kept."""
    model = model_for(models, JudgeMoments.role)
    if model is None:
        raise UsageError("got no model for the role vision, which looks at moments; name one, or a default")
    kept = {} if verdicts is None else verdicts.of(spans)
    requests = requests_for(library, text, spans, [at for at in range(len(spans)) if at not in kept])
    looked, made = Looked([]), dict[int, Verdict]()
    if any(request.frames for request in requests):
        looked.usage += await _check_sight(model)
    outcomes = await gather_all([ask_checked(model, request) for request in requests])
    for request, outcome in zip(requests, outcomes, strict=True):
        looked.calls += outcome.calls
        looked.invalid += outcome.invalid
        looked.usage += outcome.usage
        made |= _verdicts(request, outcome)
    if verdicts is not None:
        verdicts.keep(spans, made)
    looked.verdicts = [(kept | made)[at] for at in range(len(spans))]
    return looked


def forecast_verdicts(
    library: LibraryReader, text: str, found: Sequence[Hit | Moment], count: int, choice: ModelChoice
) -> Forecast:
    """Return the costs of having a model look at the first `count` moments.

    Raises as `verified` does before it asks.
    """
    role = looking_role(choice)
    spans = [Span.of(each) for each in found[:count]]
    with opened_verdicts(choice, text) as verdicts:
        kept = {} if verdicts is None else verdicts.of(spans)
    places = [at for at in range(len(spans)) if at not in kept]
    requests = requests_for(library, text, spans, places)
    forecast = of_requests("verify", requests, role, len(places))
    return replace(forecast, tries=sight_tries(choice, needs_pictures=forecast.frames > 0))


def _verdicts(request: JudgeMoments, outcome: Outcome[MomentVerdicts]) -> dict[int, Verdict]:
    """Verdicts by place, one for each moment of a request."""
    found = [] if outcome.given is None else outcome.given.moments
    judged = {each.moment: Verdict(each.present, one_line(each.reasoning)) for each in found}
    fault = outcome.complaint or "the reply left it out"
    none = Verdict(None, f"no verdict: the model's reply could not be used ({fault})")
    return {each.number - 1: judged.get(each.number, none) for each in request.moments}


async def _check_sight(model: Model) -> Usage:
    """Return the cost of finding out that a model sees; raises TakesNoPictures for one that does not."""
    check = getattr(model, "check_sight", None)
    problem, usage = (None, None) if check is None else await check()
    if problem is not None:
        raise TakesNoPictures(
            f"{problem.what}, and is to look at moments",
            "name a model with vision (or set images for its role, if it does see), or search without --verify",
        )
    return usage or Usage()
