"""Captions of segments: by a local image-text-to-text model, or by any OpenAI-compatible endpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.protocol import Request, Segment
from kinodex.agent.requests.describe import DescribeSegment, Description
from kinodex.index.library import Library
from kinodex.index.rows import SegmentRow, VideoRow
from kinodex.jobs.add.endpoint import EndpointAddition, Outcome, Round, Rounds, reasons
from kinodex.jobs.add.run import AddedRows, check_settings, hub_for
from kinodex.jobs.library import batched, picture_of, shown_between

if TYPE_CHECKING:
    from kinodex.index.spaces.embedders import TextEmbedder
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

    def rounds(self, library: Library, video: VideoRow) -> Rounds:
        """Describe the segments that this model has not captioned."""
        held = {each.segment_no for each in library.captions(video.video_id, self.model)}
        segments = library.segments(video.video_id)
        lacking = [each for each in segments if each.segment_no not in held]
        outcomes = yield Round(
            len(lacking), lambda numbers: self._requests(library, video, [lacking[n] for n in numbers])
        )
        pairs = zip(lacking, (each.reply for each in outcomes), strict=True)
        rows = [
            Caption(segment.segment_no, segment.start_s, segment.end_s, reply.caption, reply.confidence / 100, None)
            for segment, reply in pairs
            if reply is not None and reply.caption.strip()
        ]
        missing = len(lacking) - len(rows)
        problem = f"{missing} of {len(segments)} segments got no caption that could be used{reasons(outcomes)}"
        # Those held are perhaps of segments whose cuts were moved since.
        return AddedRows(rows, len(held) + len(rows), problem if missing else None)

    def _requests(self, library: Library, video: VideoRow, segments: Sequence[SegmentRow]) -> list[DescribeSegment]:
        spans_s = [(segment.start_s, segment.end_s) for segment in segments]
        shown = shown_between(library, video, spans_s, self.frames_a_segment)
        return [
            DescribeSegment(
                segment=Segment(segment.segment_no, segment.video_id, segment.start_s, segment.end_s),
                frames=frames,
            )
            for segment, frames in zip(segments, shown, strict=True)
        ]

    def replies_here(self, requests: Sequence[Request[Any]]) -> list[Outcome[Any]]:
        from kinodex.pipeline.models.captioner import SegmentFrames

        captioner = _captioner(self.model, self.device, self.max_new_tokens)
        shown = [
            SegmentFrames(tuple(map(picture_of, each.frames)), each.segment.end_s - each.segment.start_s)
            for each in cast(Sequence[DescribeSegment], requests)
        ]
        return [
            Outcome(Description(caption=each.text, confidence=min(100.0, 100 * each.confidence)))
            for each in captioner.caption(shown)
        ]

    def write(self, library: Library, rows: Mapping[str, Any]) -> None:
        vectors = iter(text_vectors(library, [each.text for of_video in rows.values() for each in of_video]))
        with_vectors = {id_: [each._replace(vector=next(vectors)) for each in found] for id_, found in rows.items()}
        library.additions.add_captions(with_vectors, self.model)

    def incomplete_videos(self, library: Library) -> list[str]:
        """Ids of videos that this model captioned but for some segments."""
        held = library.additions.counts("captions", self.model)
        return [row.video_id for row in library.videos() if held.get(row.video_id, row.segments) < row.segments]


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
