"""A question to a whole collection, for Python, the command line, MCP and the page: `kinodex ask --all`."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from kinodex.agent.errors import BadSettings
from kinodex.agent.protocol import USUAL, Question
from kinodex.agent.requests.collection import CollectionPlan, PlanCollection
from kinodex.agent.requests.extract import ExtractRows
from kinodex.agent.variants.base import Variant
from kinodex.answers import AskRequest, watched
from kinodex.index.library import Library as Tables
from kinodex.index.named_files import read_bytes
from kinodex.index.nesting import parse_json
from kinodex.jobs.collection import CollectionAnswer, CollectionRequest, CollectionSettings, ask_collection, bill
from kinodex.jobs.errors import UsageError
from kinodex.jobs.models import ModelChoice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kinodex.agent.answer import Answer
    from kinodex.agent.session import Session
    from kinodex.index.rows import VideoRow
    from kinodex.jobs.costs import Forecast
    from kinodex.library import Library


@dataclass(frozen=True, slots=True)
class ShownCollection(CollectionAnswer):
    """The answer of a whole collection, which a notebook shows with the pictures of its films."""

    library: Library | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, answer: CollectionAnswer, library: Library) -> ShownCollection:
        return cls(**{each.name: getattr(answer, each.name) for each in fields(CollectionAnswer)}, library=library)

    def _repr_html_(self) -> str:
        from kinodex.notebook import answer_html

        assert self.library is not None
        return answer_html(self, self.library)


async def _one_film(session: Session, parameters: object) -> Answer:
    raise BadSettings(f"got the agent {ALL.name}, which looks at a whole library; ask it by `ask_all`, or with --all")


ALL = Variant(
    name="all",
    line="a table that a model fills in film by film, by a plan; SQL or a model answers from its rows",
    run=_one_film,
    parameters=lambda longest_s: CollectionSettings(),
    roles=(PlanCollection.role, ExtractRows.role),
    needs_language=True,
    plain="Looks at every film that may matter, one by one, and counts: in which, how often, how many in all.",
)
"""This way to answer, as the page and MCP list it beside the agents."""


def answer_all(
    library: Tables,
    question: Question,
    request: AskRequest,
    plan: CollectionPlan | None = None,
    videos: Sequence[str] = (),
) -> CollectionAnswer:
    """Answer a question by looking at each film of a library, or of `videos`, that may matter.

    Raises as `ask_collection` does. `plan` takes the place of the model's own; the settings of `request` are those of
    `CollectionSettings`.
    """
    asked = replace(collection_request(question, request, plan), videos=videos)
    with watched(request, library.uri) as on_event:
        return ask_collection(library, replace(asked, on_event=on_event))


def plan_of(given: object) -> CollectionPlan:
    """The plan that JSON values hold; raises UsageError."""
    try:
        return CollectionPlan.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"got a plan with {where}: {first['msg']}; give one as an answer's `plan` has it") from error


def read_plan(path: Path) -> CollectionPlan:
    """Read a plan from a file: a JSON object, or an answer's with one. Raises UsageError."""
    try:
        content = parse_json(read_bytes(path))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the plan {path}: {error}; give what --json prints of a plan") from error
    return plan_of(content.get("plan", content) if isinstance(content, dict) else content)


def bill_all(
    library: Tables,
    question: Question,
    request: AskRequest,
    plan: CollectionPlan | None = None,
    videos: Sequence[str] = (),
) -> tuple[CollectionPlan, str, list[VideoRow], list[Forecast]]:
    """The plan, where it is from, the films and the costs; nothing is asked. See `kinodex.jobs.collection.bill`."""
    return bill(library, replace(collection_request(question, request, plan), videos=videos))


def collection_request(
    question: Question, request: AskRequest, plan: CollectionPlan | None = None
) -> CollectionRequest:
    """The same request, to a whole collection; raises UsageError for what such a question has not."""
    refused = {
        "options": question.options,
        "an agent": request.agent != "kino",
        "an earlier question to follow": request.follow_up,
        "rules of its end": request.rules != USUAL,
    }
    if given := [name for name, value in refused.items() if value]:
        raise UsageError(f"got {given[0]} beside a question to all films, which goes its own way; leave it out")
    if not isinstance(request.models, ModelChoice):
        raise UsageError("got model objects for a question to all films; name a model and its base_url instead")
    if not request.models.cache:
        raise UsageError("got a question to all films without the cache, by which nothing is paid twice; leave it on")
    settings = request.settings or {}
    return CollectionRequest(
        question.text, request.models, settings=settings, plan=plan, budget=request.budget, stop=request.stop
    )
