"""Captions of segments: by a local image-text-to-text model, or by any OpenAI-compatible endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agent.errors import AllRejected, ModelRejected
from agent.model import ShownFrame, Usage
from index.library import Library
from index.rows import SegmentRow, StoredFrame, VideoRow
from jobs.adding import Made, check_settings, hub_for
from jobs.stored_pictures import frames_between, picture_of

if TYPE_CHECKING:
    from agent.openai_model import OpenAIModel
    from agent.roles import Role
    from index.spaces import Space
    from pipeline.captioner import Captioner

ATTEMPTS = 2
ASKED_TOGETHER = 64
"""Segments whose frames are in memory while an endpoint is asked: some 10 MB."""
TEXTS_A_BATCH = 64


class Text(NamedTuple):
    """What a model says of a segment; `confidence` is 0 to 1."""

    caption: str
    confidence: float


class Said(NamedTuple):
    """What an endpoint says of a segment and what that cost; without a text, `refused` says why if it would not."""

    text: Text | None
    usage: Usage
    refused: ModelRejected | None = None


class Caption(NamedTuple):
    """A row of captions; see index.captions.CaptionLike."""

    segment_no: int
    start_s: float
    end_s: float
    text: str
    confidence: float | None
    vector: NDArray[np.float16] | None


@dataclass(frozen=True, slots=True)
class Captions:
    """Settings of the stage. With `base_url` the model is one that an OpenAI-compatible endpoint serves.

    `confidence` is the captioner's (see pipeline.captioner), or what the endpoint's model says of itself.
    """

    model: str
    base_url: str | None = None
    frames_a_segment: int = 4
    batch: int = 4
    """Segments that a local model captions at once, or that an endpoint is asked about at once."""
    max_new_tokens: int = 96
    device: str = "auto"
    input_price: float = 0.0
    output_price: float = 0.0
    name: str = "captions"

    @property
    def settings(self) -> Mapping[str, Any]:
        return {name: value for name, value in asdict(self).items() if name not in ("name", "device", "batch")}

    def prepare(self, library: Library) -> None:
        check_settings(library, self, "frames_a_segment", *(() if self.base_url else ("max_new_tokens",)))
        text_tower(library.space_name)
        library.check_space(text_tower(library.space_name).fingerprint)
        if self.base_url is None:
            _captioner(self.model, self.device, self.max_new_tokens)
        else:
            from agent.roles import api_key

            api_key(_role(self))

    def rows_of(self, library: Library, video: VideoRow) -> Made:
        segments = library.segments(video.video_id)
        texts, usage, refused = _texts(self, library, video, segments)
        told = [(segment, text) for segment, text in zip(segments, texts, strict=True) if text and text.caption.strip()]
        vectors = text_vectors(library, [text.caption for _, text in told])
        rows = [
            Caption(segment.segment_no, segment.start_s, segment.end_s, text.caption, text.confidence, vector)
            for (segment, text), vector in zip(told, vectors, strict=True)
        ]
        missing = len(segments) - len(rows)
        problem = f"{missing} of {len(segments)} segments got no caption that could be used" if missing else None
        if problem and refused:
            problem += f"; requests refused: {len(refused)}, the last because {refused[-1]}"
        return Made(rows, len(rows), problem, usage)

    def write(self, library: Library, rows: Mapping[str, Any]) -> None:
        library.add_captions(rows, self.model)


def _texts(
    stage: Captions, library: Library, video: VideoRow, segments: Sequence[SegmentRow]
) -> tuple[list[Text | None], Usage, list[ModelRejected]]:
    """A text for each segment, None where none could be had, what they cost, and refusals of single requests.

    Raises `ModelRejected` once an endpoint has refused a portion before it described anything.
    """
    texts: list[Text | None] = []
    usage, refused = Usage(), list[ModelRejected]()
    for few in _portions(segments, stage.batch if stage.base_url is None else ASKED_TOGETHER):
        spans_s = [(segment.start_s, segment.end_s) for segment in few]
        shown = frames_between(library, video, spans_s, stage.frames_a_segment)
        if stage.base_url is None:
            texts += _by_model(stage, few, shown)
        else:
            for said in asyncio.run(_by_endpoint(stage, few, shown)):
                texts.append(said.text)
                usage += said.usage
                refused += filter(None, [said.refused])
            if refused and not any(texts):
                raise refused[-1]
    return texts, usage, refused


def _by_model(
    stage: Captions, segments: Sequence[SegmentRow], shown: Sequence[Sequence[StoredFrame]]
) -> Iterator[Text | None]:
    from pipeline.captioner import Shown

    captioner = _captioner(stage.model, stage.device, stage.max_new_tokens)
    asked = [
        Shown(tuple(picture_of(frame) for frame in frames), segment.end_s - segment.start_s)
        for segment, frames in zip(segments, shown, strict=True)
    ]
    for caption in captioner.caption(asked):
        yield Text(caption.text, caption.confidence)


async def _by_endpoint(
    stage: Captions, segments: Sequence[SegmentRow], shown: Sequence[Sequence[StoredFrame]]
) -> list[Said]:
    from agent.cache import ResponseCache
    from agent.openai_model import OpenAIModel
    from agent.session import at_once
    from jobs.models import cache_file

    with ResponseCache(cache_file()) as cache:
        async with OpenAIModel(_role(stage), cache=cache) as model:
            pairs = zip(segments, shown, strict=True)
            return await at_once([_describe(model, segment, frames) for segment, frames in pairs])


async def _describe(model: OpenAIModel, segment: SegmentRow, frames: Iterable[StoredFrame]) -> Said:
    """The description of one segment, asked for twice at most."""
    from agent.question import Segment
    from agent.requests.describe import DescribeSegment

    part = Segment(segment.segment_no, segment.video_id, segment.start_s, segment.end_s)
    request = DescribeSegment(segment=part, frames=tuple(ShownFrame(**asdict(frame)) for frame in frames))
    usage = Usage()
    for attempt in range(ATTEMPTS):
        try:
            exchange = await model.ask(request)
        except AllRejected:
            raise
        except ModelRejected as error:  # of what these frames show: the others may do
            return Said(None, usage, error)
        usage += exchange.usage
        if (reply := exchange.reply) is not None:
            return Said(Text(reply.caption, reply.confidence / 100), usage)
        request = replace(request, attempt=attempt + 1, complaint=exchange.invalid or "", bad_reply=exchange.raw)
    return Said(None, usage)


def _role(stage: Captions) -> Role:
    from agent.roles import read_roles

    price = {"input": stage.input_price, "output": stage.output_price}
    role = {"model": stage.model, "base_url": stage.base_url, "at_once": stage.batch, "price": price}
    return read_roles({"default": role})["default"]


def text_vectors(library: Library, texts: Sequence[str]) -> list[NDArray[np.float16]]:
    """Texts in the library's own space, so that a caption is found by meaning as a frame is."""
    tower = text_tower(library.space_name)
    return [vector.astype(np.float16) for few in _portions(texts, TEXTS_A_BATCH) for vector in tower.embed_text(few)]


def _portions(items: Sequence[Any], size: int) -> Iterator[Any]:
    for first in range(0, len(items), size):
        yield items[first : first + size]


@lru_cache(maxsize=1)
def _captioner(model: str, device: str, max_new_tokens: int) -> Captioner:
    from pipeline.captioner import load_captioner

    with hub_for(model):
        return load_captioner(model, device, max_new_tokens)


@lru_cache(maxsize=1)
def text_tower(space: str) -> Space:
    from index.spaces import load_space

    return load_space(space, towers="text")
