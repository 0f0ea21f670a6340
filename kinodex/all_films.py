"""Questions to all films of a library, as requests to a collection; what such a question has not is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kinodex.agent.answer_rules import USUAL
from kinodex.jobs.errors import UsageError
from kinodex.jobs.models import ModelChoice
from kinodex.requests import Ask

if TYPE_CHECKING:
    from kinodex.agent.limits.stop import StopSignal
    from kinodex.agent.protocol.exchange import Models
    from kinodex.index.library import Library, LibraryReader
    from kinodex.jobs.collection.request import CollectionRequest


def collection_request(request: Ask, models: ModelChoice | Models, stop: StopSignal | None = None) -> CollectionRequest:
    """Return the same request to a whole collection; raises UsageError for what such a question has not."""
    from kinodex.jobs.collection.plan import plan_of
    from kinodex.jobs.collection.request import CollectionRequest

    refused = {
        "options": request.options,
        "an earlier question to follow": request.follow_up,
        "rules of its end": request.rules != USUAL,
    }
    if given := [name for name, value in refused.items() if value]:
        raise UsageError(f"got {given[0]} beside a question to all films, which goes its own way; leave it out")
    if not isinstance(models, ModelChoice):
        raise UsageError("got model objects for a question to all films; name a model and its base_url instead")
    if not models.cache:
        raise UsageError("got a question to all films without the cache, so it would be paid twice; leave it on")
    plan = None if request.plan is None else plan_of(request.plan)
    return CollectionRequest(
        request.question, models, request.videos, request.settings, plan, request.budget, stop=stop
    )


def library_to_fill(reader: LibraryReader, request: Ask) -> Library:
    """Return the library opened for writing: the rows of a question to all films stay in it."""
    from kinodex.index.library import Library

    return Library.open(reader.uri).where(reader.condition).where(request.where)
