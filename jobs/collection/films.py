"""The films of a question: chosen by search, then shown to the model one by one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kinodex.agent.models.roles import Role
from kinodex.agent.requests.collection import CollectionPlan
from kinodex.agent.requests.extract import ExtractRows
from kinodex.agent.videos.environment import Environment
from kinodex.index.durations import counted
from kinodex.index.errors import LibraryBusy
from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.jobs.add.run import VideoOutcome, add, pending_videos
from kinodex.jobs.add.stages import Extracts
from kinodex.jobs.collection.asker import LOOK, Asker, Ended, role_of
from kinodex.jobs.collection.plan import plan_facts, table_name
from kinodex.jobs.collection.request import CollectionRequest, CollectionSettings
from kinodex.jobs.errors import CostReached


def candidates(asker: Asker, plan: CollectionPlan) -> list[VideoRow]:
    """Return the videos that fit the plan's words best, at most as many as the settings say, by title."""
    most, videos = asker.settings.candidates, asker.videos
    if not most or len(videos) <= most:
        return list(videos)
    environment = Environment.of(asker.among, videos, asker.library.text_embedder())
    near = {video.video_id for video in environment.nearest([plan.search], most).videos}
    return [row for row in videos if row.video_id in near]


def stage_of(
    settings: CollectionSettings, request: CollectionRequest, plan: CollectionPlan, roles: Mapping[str, Role]
) -> Extracts:
    """Return the extract that a plan asks for, by the model of the role that looks."""
    role = role_of(roles, ExtractRows.role)
    part: dict[str, Any] = {"each": plan.each}
    if plan.each == "moments":
        part = {"search": plan.search, "hits": settings.hits}
    served: dict[str, Any] = {"model": request.choice.model, "batch": 1}
    if role is not None:
        at_once = settings.at_once or role.at_once
        asked_as = role.model_copy(update={"at_once": at_once})
        served = {"model": role.model, "batch": at_once, "base_url": role.base_url, "asked_as": asked_as}
    return Extracts(
        row=plan.schema_of_rows,
        into=table_name(request.question),
        **served,
        **part,
        frames_a_part=settings.frames_a_part,
        lines_a_part=settings.lines_a_part,
        retry_failed=settings.retry_failed,
        question=request.question,
        plan=json.dumps(plan_facts(plan)),
    )


def pending_films(library: Library, stage: Extracts, chosen: Sequence[VideoRow]) -> list[VideoRow]:
    ids = [row.video_id for row in chosen]
    return pending_videos(library, stage.key, ids, stage.writer(library).again(), stage.name)


def fill_in(asker: Asker, stage: Extracts, chosen: Sequence[VideoRow]) -> str | None:
    """Fill in the rows of films that lack them; the reason why it ended before the last, if it did."""
    library, left = asker.library, asker.purse.left

    def watch(done: int, total: int, outcome: VideoOutcome) -> None:
        asker.usage += outcome.usage
        asker.calls += outcome.calls
        asker.invalid += outcome.invalid
        said = outcome.problem or counted(outcome.rows, "row")
        words = f"looked at {outcome.title} ({done:,} of {total:,}): {said}"
        asker.emit(2 + done, LOOK, words, cost=outcome.usage.cost)
        if reason := asker.over():
            raise Ended(reason)

    if reason := asker.over():
        return reason
    ids = [row.video_id for row in chosen]
    try:
        while True:
            try:
                add(library, stage.model_copy(update={"stop_at_cost": left}), ids, watch)
                return None
            except LibraryBusy:
                asker.waits()
    except CostReached:
        return "cost"
    except Ended as end:
        return str(end)


def choice_words(chosen: Sequence[VideoRow], videos: Sequence[VideoRow], to_ask: Sequence[VideoRow]) -> str:
    known = len(chosen) - len(to_ask)
    before = f", {known:,} of which were looked at before" if known else ""
    return f"chose {len(chosen):,} of {counted(len(videos), 'film')}{before}"
