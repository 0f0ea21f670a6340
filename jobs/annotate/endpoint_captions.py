"""Captions of segments by an OpenAI-compatible endpoint."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from agent.core.protocol import ShownFrame, Usage
from agent.errors import ModelRejected
from index.library import Library
from index.rows import SegmentRow, StoredFrame, VideoRow
from jobs.annotate.endpoint import BATCHES_AHEAD, ModelThread, ask_again
from jobs.stored_frames import frames_between

if TYPE_CHECKING:
    from agent.models.openai_compatible import OpenAIModel


class Text(NamedTuple):
    """Description of a segment by a model; `confidence` is 0 to 1."""

    caption: str
    confidence: float


class CaptionReply(NamedTuple):
    """Reply of an endpoint for one segment, and its usage; `refused` is the error if it rejected the request."""

    text: Text | None
    usage: Usage
    refused: ModelRejected | None = None


@dataclass(slots=True)
class CaptionBatch:
    """A text for each segment, None where there is none; their usage; requests that the endpoint rejected."""

    texts: list[Text | None] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    refused: list[ModelRejected] = field(default_factory=list)

    @property
    def is_refused(self) -> bool:
        """True if requests were rejected, and nothing is described."""
        return bool(self.refused) and not any(self.texts)


def describe_segments(
    thread: ModelThread, library: Library, video: VideoRow, segments: Sequence[SegmentRow], frames_a_segment: int
) -> CaptionBatch:
    """Describe a video's segments with an endpoint.

    No more are asked for once it has rejected a request and described none of those that were.
    """
    captions = CaptionBatch()
    waiting: deque[Future[list[CaptionReply]]] = deque()
    size = thread.model.role.at_once
    try:
        for first in range(0, len(segments), size):
            batch = segments[first : first + size]
            shown = frames_between(library, video, [(each.start_s, each.end_s) for each in batch], frames_a_segment)
            waiting.append(thread.submit(describe_all(thread.model, batch, shown)))
            while len(waiting) == BATCHES_AHEAD or (waiting and captions.is_refused):
                _collect(captions, waiting.popleft().result())
            if captions.is_refused:
                break
        while waiting:
            _collect(captions, waiting.popleft().result())
    finally:
        for future in waiting:
            future.cancel()
    captions.texts += [None] * (len(segments) - len(captions.texts))
    return captions


def _collect(captions: CaptionBatch, replies: Sequence[CaptionReply]) -> None:
    for reply in replies:
        captions.texts.append(reply.text)
        captions.usage += reply.usage
        captions.refused += filter(None, [reply.refused])


async def describe_all(
    model: OpenAIModel, segments: Sequence[SegmentRow], shown: Sequence[Sequence[StoredFrame]]
) -> list[CaptionReply]:
    from agent.core.side_by_side import gather_all

    pairs = zip(segments, shown, strict=True)
    return await gather_all([_describe(model, segment, frames) for segment, frames in pairs])


async def _describe(model: OpenAIModel, segment: SegmentRow, frames: Iterable[StoredFrame]) -> CaptionReply:
    from agent.core.question import Segment
    from agent.requests.describe import DescribeSegment

    part = Segment(segment.segment_no, segment.video_id, segment.start_s, segment.end_s)
    request = DescribeSegment(segment=part, frames=tuple(ShownFrame(**asdict(frame)) for frame in frames))
    outcome = await ask_again(model, request)
    reply = outcome.reply
    text = None if reply is None else Text(reply.caption, reply.confidence / 100)
    return CaptionReply(text, outcome.usage, outcome.refused)
