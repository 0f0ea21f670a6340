"""Captions of segments: by a local image-text-to-text model, or by any OpenAI-compatible endpoint."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.errors import ModelRejected
from kinodex.agent.protocol import Segment, ShownFrame, Usage
from kinodex.agent.requests.describe import DescribeSegment, Description
from kinodex.index.library import Library
from kinodex.index.rows import SegmentRow, StoredFrame, VideoRow
from kinodex.jobs.add.endpoint import BATCHES_AHEAD, EndpointAddition, ModelThread, Outcome, ask_again
from kinodex.jobs.add.run import AddedRows, check_settings, hub_for
from kinodex.jobs.library import batched, frames_between, picture_of

if TYPE_CHECKING:
    from kinodex.agent.models.openai_model import OpenAIModel
    from kinodex.index.spaces.towers import TextEmbedder
    from kinodex.pipeline.models.captioner import Captioner

TEXTS_A_BATCH = 64
EMBEDDING = Lock()
"""Held while texts are embedded: two threads must not use one tokenizer together."""


class Caption(NamedTuple):
    """A row of captions; see kinodex.index.additions.CaptionLike."""

    segment_no: int
    start_s: float
    end_s: float
    text: str
    confidence: float | None
    vector: NDArray[np.float16] | None


@dataclass(frozen=True, slots=True)
class Captions(EndpointAddition):
    """Settings of captions; `confidence` is the captioner's (see pipeline.models.captioner), or the endpoint's own."""

    frames_a_segment: int = 4
    name: str = "captions"

    def prepare(self, library: Library) -> None:
        check_settings(library, self, "frames_a_segment", *(() if self.base_url else ("max_new_tokens",)))
        text_tower(library)
        if self.base_url is None:
            _captioner(self.model, self.device, self.max_new_tokens)
        else:
            self.check_key()

    def rows_here(self, library: Library, video: VideoRow) -> AddedRows:
        segments = uncaptioned(library, video, self.model)
        return _rows(library, video, self.model, segments, CaptionBatch(_local_texts(self, library, video, segments)))

    def rows_at(self, thread: ModelThread, library: Library, video: VideoRow) -> AddedRows:
        segments = uncaptioned(library, video, self.model)
        batch = describe_segments(thread, library, video, segments, self.frames_a_segment)
        return _rows(library, video, self.model, segments, batch)

    def write(self, library: Library, rows: Mapping[str, Any]) -> None:
        library.additions.add_captions(rows, self.model)

    def incomplete_videos(self, library: Library) -> list[str]:
        """Ids of videos that this model captioned but for some segments."""
        held = library.additions.counts("captions", self.model)
        return [row.video_id for row in library.videos() if held.get(row.video_id, row.segments) < row.segments]


def uncaptioned(library: Library, video: VideoRow, model: str) -> list[SegmentRow]:
    """List the segments of a video that this model has not captioned."""
    held = {each.segment_no for each in library.captions(video.video_id, model)}
    return [each for each in library.segments(video.video_id) if each.segment_no not in held]


def _rows(
    library: Library, video: VideoRow, model: str, segments: Sequence[SegmentRow], batch: CaptionBatch
) -> AddedRows:
    """Rows of the segments that a model described, and the problem of the others."""
    if batch.is_refused:
        return AddedRows((), 0, usage=batch.usage, failed=batch.refused[-1])
    pairs = zip(segments, batch.texts, strict=True)
    described = [(segment, text) for segment, text in pairs if text and text.caption.strip()]
    vectors = text_vectors(library, [text.caption for _, text in described])
    rows = [
        Caption(segment.segment_no, segment.start_s, segment.end_s, text.caption, text.confidence, vector)
        for (segment, text), vector in zip(described, vectors, strict=True)
    ]
    missing = len(segments) - len(rows)
    total = len(library.segments(video.video_id))
    problem = f"{missing} of {total} segments got no caption that could be used" if missing else None
    if problem and batch.refused:
        problem += f"; requests refused: {len(batch.refused)}, the last because {batch.refused[-1]}"
    held = len(library.captions(video.video_id, model))  # perhaps of segments whose cuts were moved since
    return AddedRows(rows, held + len(rows), problem, batch.usage)


def _local_texts(
    addition: Captions, library: Library, video: VideoRow, segments: Sequence[SegmentRow]
) -> list[Text | None]:
    """Texts of the local model for each segment, None where it gives none."""
    from kinodex.pipeline.models.captioner import SegmentFrames

    captioner = _captioner(addition.model, addition.device, addition.max_new_tokens)
    texts: list[Text | None] = []
    for batch in batched(segments, addition.batch):
        spans_s = [(segment.start_s, segment.end_s) for segment in batch]
        shown = frames_between(library, video, spans_s, addition.frames_a_segment)
        requests = [
            SegmentFrames(tuple(picture_of(frame) for frame in frames), segment.end_s - segment.start_s)
            for segment, frames in zip(batch, shown, strict=True)
        ]
        texts += [Text(caption.text, caption.confidence) for caption in captioner.caption(requests)]
    return texts


def text_vectors(library: Library, texts: Sequence[str]) -> list[NDArray[np.float16]]:
    """Embed texts in the library's own space, so that a caption is found by meaning as a frame is."""
    with EMBEDDING:
        tower = text_tower(library)
        return [
            vector.astype(np.float16) for batch in batched(texts, TEXTS_A_BATCH) for vector in tower.embed_text(batch)
        ]


@lru_cache(maxsize=1)
def _captioner(model: str, device: str, max_new_tokens: int) -> Captioner:
    from kinodex.pipeline.models.captioner import load_captioner

    with hub_for(model):
        return load_captioner(model, device, max_new_tokens)


@lru_cache(maxsize=1)
def text_tower(library: Library) -> TextEmbedder:
    """Load the text tower of a library's own space, once; raises what `LibraryReader.load_space` does."""
    return library.load_space(None, "text")


# Captions by an endpoint.


class Text(NamedTuple):
    """Description of a segment by a model; `confidence` is 0 to 1."""

    caption: str
    confidence: float


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
    """Describe a video's segments with an endpoint, until it has rejected a request and described none."""
    captions = CaptionBatch()
    waiting: deque[Future[list[Outcome[Description]]]] = deque()
    try:
        for batch in batched(segments, thread.model.role.at_once):
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


def _collect(captions: CaptionBatch, outcomes: Sequence[Outcome[Description]]) -> None:
    for outcome in outcomes:
        reply = outcome.reply
        captions.texts.append(None if reply is None else Text(reply.caption, reply.confidence / 100))
        captions.usage += outcome.usage
        captions.refused += filter(None, [outcome.refused])


async def describe_all(
    model: OpenAIModel, segments: Sequence[SegmentRow], shown: Sequence[Sequence[StoredFrame]]
) -> list[Outcome[Description]]:
    """Ask for a description of each segment, all at once."""
    from kinodex.agent.limits import gather_all

    requests = [description_request(*each) for each in zip(segments, shown, strict=True)]
    return await gather_all([ask_again(model, request) for request in requests])


def description_request(segment: SegmentRow, frames: Sequence[StoredFrame]) -> DescribeSegment:
    """Make the request for a description of a segment by some of its frames."""
    return DescribeSegment(
        segment=Segment(segment.segment_no, segment.video_id, segment.start_s, segment.end_s),
        frames=tuple(ShownFrame(**asdict(frame)) for frame in frames),
    )
