"""A question to a whole collection from beginning to end, or the costs of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from kinodex.agent.answer import Answer
from kinodex.agent.errors import BadSettings
from kinodex.agent.models.roles import DEFAULT_ROLE, Role
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.videos import Video
from kinodex.agent.requests.collection import CollectionPlan, PlanCollection
from kinodex.agent.requests.extract import ExtractRows
from kinodex.agent.traces.events import Finished, RunStarted
from kinodex.agent.variants.base import Variant
from kinodex.agent.variants.settings import with_settings
from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.jobs.collection.answer import CollectionAnswer
from kinodex.jobs.collection.asker import PLAN, Asker, roles_of
from kinodex.jobs.collection.films import candidates, choice_words, fill_in, pending_films, stage_of
from kinodex.jobs.collection.plan import default_plan, known_plan, make_plan, plan_facts, plan_request, plan_words
from kinodex.jobs.collection.reduction import reduce_rows
from kinodex.jobs.collection.request import CollectionRequest, CollectionSettings
from kinodex.jobs.costs import Forecast, of_requests
from kinodex.jobs.errors import UsageError, check_packages

if TYPE_CHECKING:
    from kinodex.agent.session import Session


AGENT = "all"
"""The name of this way to answer in traces, where agents have theirs."""
LIMITED = ("cost", "seconds")
"""The budgets that hold here."""


async def _one_film(session: Session, parameters: object) -> Answer:
    raise BadSettings(f"got the agent {AGENT}, which looks at a whole library; ask it by `ask`, not film by film")


ALL = Variant(
    name=AGENT,
    line="a table that a model fills in film by film, by a plan; SQL or a model answers from its rows",
    run=_one_film,
    parameters=lambda longest_s: CollectionSettings(),
    roles=(PlanCollection.role, ExtractRows.role),
    needs_language=True,
    plain="Looks at every film that may matter, one by one, and counts: in which, how often, how many in all.",
)
"""This way to answer, listed beside the agents."""


def ask_collection(library: Library, request: CollectionRequest) -> CollectionAnswer:
    """Answer a question by looking at each film of a library that may matter, in four steps that `on_event` gets.

    Waits while another extract of the library is filled in. Raises UsageError or BadSettings for what makes no sense,
    ModelError for a model that gives no reply. A spent budget is no error: the answer says what it did not look at.
    """
    check_packages("duckdb")
    asker = _asker(library, request)
    roles = roles_of(request.choice)
    _started(asker, roles)
    plan = make_plan(asker, roles)
    asker.emit(1, PLAN, plan_words(plan, asker.plan_from), cost=asker.usage.cost, **plan_facts(plan))
    stage = stage_of(asker.settings, request, plan, roles)
    chosen = candidates(asker, plan)
    to_ask = pending_films(asker.library, stage, chosen)
    asker.emit(2, "choose", choice_words(chosen, asker.videos, to_ask), films=len(chosen), new=len(to_ask))
    ended = fill_in(asker, stage, chosen)
    answer = reduce_rows(asker, plan, stage, chosen, roles, ended)
    request.on_event(Finished(answer.as_answer))
    return answer


def bill(library: Library, request: CollectionRequest) -> tuple[CollectionPlan, str, list[VideoRow], list[Forecast]]:
    """Return the plan and where it is from, the films that would be looked at, and the costs; nothing is asked.

    A plan that only the model can give is assumed to be the default one.
    """
    asker = _asker(library, request)
    roles = roles_of(request.choice)
    known = known_plan(asker, roles)
    plan = known or default_plan(request.question, asker.videos)
    asker.plan_from = asker.plan_from if known else "default"
    stage = stage_of(asker.settings, request, plan, roles)
    chosen = candidates(asker, plan)
    asked = [] if known else [plan_request(asker)]
    costs = [of_requests("plan", asked, stage.role)] if asked and stage.base_url else []
    if stage.base_url:
        films = stage.writer(asker.library).costs(pending_films(asker.library, stage, chosen))
        costs.append(replace(films, system="films"))
    return plan, asker.plan_from, chosen, costs


def _asker(library: Library, request: CollectionRequest) -> Asker:
    given = [name for name in ("rounds", "frames", "tokens") if getattr(request.budget, name) is not None]
    if given:
        raise UsageError(
            f"got a budget of {given[0]}, which a question to a whole collection has not; limit its {LIMITED[0]} or "
            f"{LIMITED[1]}, or how many films it looks at (candidates)"
        )
    Question(request.question)
    videos = library.chosen(request.videos)
    if not videos:
        raise UsageError(f"{library.uri} holds no video to ask about; ingest one first")
    return Asker(
        Library.open(library.uri), library, videos, request, with_settings(CollectionSettings(), request.settings)
    )


def _started(asker: Asker, roles: Mapping[str, Role]) -> None:
    library, request, videos = asker.library, asker.request, asker.videos
    known = [Video(row.video_id, row.title, row.start_s, row.duration_s, bool(row.frames)) for row in videos]
    models = {name: role.model for name, role in roles.items()} or {DEFAULT_ROLE: request.choice.model}
    settings = {each.name: getattr(asker.settings, each.name) for each in fields(asker.settings)}
    frames = sum(row.frames for row in videos)
    facts = AGENT, settings, request.budget, tuple(known), str(library.space()), frames, models
    request.on_event(RunStarted(Question(request.question), *facts))
