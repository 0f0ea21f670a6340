"""Forecast of `kinodex add captions` at an endpoint: its requests are made from the library, for some segments."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from agent.core.protocol import ShownFrame
from agent.core.question import Segment
from agent.models.openai_compatible import wire_messages
from agent.prompts.token_estimate import estimate_tokens, text_tokens
from agent.requests.describe import DescribeSegment
from index.library import Library
from index.rows import VideoRow
from jobs.forecast.forecast import Forecast
from jobs.stored_frames import frames_between

if TYPE_CHECKING:
    from agent.models.role_config import Role

SEGMENTS_A_VIDEO, VIDEOS = 4, 16
"""Segments that are counted, spread evenly over some videos."""


def pending_videos(
    library: Library, model: str, video_ids: Collection[str] | None, again: Collection[str], stage: str = "captions"
) -> list[VideoRow]:
    """List the videos that a run would work on: those that lack the stage by the model, and those `again`."""
    lacking = {row.video_id for row in library.additions.pending(stage, model)}.union(again)
    chosen = lacking if video_ids is None else lacking.intersection(video_ids)
    return [row for row in library.videos() if row.video_id in chosen]


def forecast_captions(
    library: Library, videos: Sequence[VideoRow], role: Role, frames_a_segment: int, price_share: float = 1.0
) -> Forecast:
    """Expect the costs of captions of these videos: each segment one call, of the mean size of those counted."""
    requests = [
        request
        for row in videos[:: max(1, len(videos) // VIDEOS)]
        for request in _requests(library, row, frames_a_segment)
    ]
    segments = sum(row.segments for row in videos)
    share = segments / max(1, len(requests))
    sizes = [estimate_tokens(wire_messages(each, role.image_side_px, role.reasoning, role.detail)) for each in requests]
    replies = [text_tokens(json.dumps(each.example())) for each in requests]
    cost = price_share * share * sum(role.price.usage(*each, 0).cost for each in zip(sizes, replies, strict=True))
    frames = share * sum(len(each.frames) for each in requests)
    return Forecast("captions", segments, segments, frames, share * sum(sizes), share * sum(replies), cost, "segments")


def _requests(library: Library, video: VideoRow, frames_a_segment: int) -> list[DescribeSegment]:
    """Some requests as a run would send them."""
    segments = library.segments(video.video_id)
    some = segments[:: max(1, len(segments) // SEGMENTS_A_VIDEO)]
    shown = frames_between(library, video, [(each.start_s, each.end_s) for each in some], frames_a_segment)
    return [
        DescribeSegment(
            segment=Segment(each.segment_no, each.video_id, each.start_s, each.end_s),
            frames=tuple(ShownFrame(**asdict(frame)) for frame in frames),
        )
        for each, frames in zip(some, shown, strict=True)
    ]
