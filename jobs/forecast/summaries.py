"""Forecast of `kinodex add summaries` at an endpoint: some videos are gone through, with made-up replies."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent.models.openai_compatible import wire_messages
from agent.prompts.token_estimate import estimate_tokens, text_tokens
from agent.requests.scenes import SummarizePart
from index.library import Library
from index.rows import VideoRow
from jobs.annotate.scenes.contents import Written, write_contents
from jobs.annotate.scenes.film import read_film
from jobs.forecast.forecast import Forecast

if TYPE_CHECKING:
    from agent.models.role_config import Role

VIDEOS = 8
"""Videos that are gone through, spread evenly over all: what they cost is taken for the others, second by second."""


def forecast_summaries(library: Library, videos: Sequence[VideoRow], role: Role, frames_a_scene: int) -> Forecast:
    """Expect the costs of summaries of these videos; nothing is sent."""
    some = videos[:: max(1, len(videos) // VIDEOS)]
    requests: list[SummarizePart] = []

    def write(batch: Sequence[SummarizePart]) -> list[Written]:
        requests.extend(batch)
        return [Written(each.example()["title"], each.example()["summary"]) for each in batch]

    films = [read_film(library, row) for row in some]
    for film in films:
        write_contents(library, film, write, frames_a_scene, role.at_once)
    counted_s = sum(row.duration_s for row in some)
    share = sum(row.duration_s for row in videos) / counted_s if counted_s else 1.0
    sizes = [estimate_tokens(wire_messages(each, role.image_side_px, role.reasoning, role.detail)) for each in requests]
    replies = [text_tokens(json.dumps(each.example())) for each in requests]
    cost = share * sum(role.price.usage(*each, 0).cost for each in zip(sizes, replies, strict=True))
    return Forecast(
        "summaries",
        round(share * sum(film.parts for film in films)),
        share * len(requests),
        share * sum(len(each.frames) for each in requests),
        share * sum(sizes),
        share * sum(replies),
        cost,
        "library",
    )
