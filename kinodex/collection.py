"""A question to a whole collection, for Python, the command line, MCP and the page: `kinodex ask --all`."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from kinodex.agent.protocol import USUAL, Question
from kinodex.agent.requests.collection import CollectionPlan
from kinodex.answers import AskRequest, watched
from kinodex.index.library import Library as Tables
from kinodex.jobs.collection import CollectionAnswer, CollectionRequest, ask_collection, bill
from kinodex.jobs.errors import UsageError
from kinodex.jobs.models import ModelChoice

if TYPE_CHECKING:
    from kinodex.index.rows import VideoRow
    from kinodex.jobs.forecast import Forecast
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


def answer_all(
    library: Tables, question: Question, request: AskRequest, plan: CollectionPlan | None = None
) -> CollectionAnswer:
    """Answer a question by looking at each film of a library that may matter; raises as `ask_collection` does.

    `plan` takes the place of the model's own; the settings of `request` are those of `CollectionSettings`.
    """
    asked = collection_request(question, request, plan)
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
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the plan {path}: {error}; give what --json prints of a plan") from error
    return plan_of(content.get("plan", content) if isinstance(content, dict) else content)


def bill_all(
    library: Tables, question: Question, request: AskRequest, plan: CollectionPlan | None = None
) -> tuple[CollectionPlan, str, list[VideoRow], list[Forecast]]:
    """The plan, where it is from, the films and the costs; nothing is asked. See `kinodex.jobs.collection.bill`."""
    return bill(library, collection_request(question, request, plan))


def collection_request(
    question: Question, request: AskRequest, plan: CollectionPlan | None = None
) -> CollectionRequest:
    """The same request, to a whole collection; raises UsageError for what such a question has not."""
    refused = {
        "options": question.options,
        "an agent": request.agent != "eea",
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
    return CollectionRequest(question.text, request.models, settings, plan, request.budget, stop=request.stop)
