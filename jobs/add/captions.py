"""Captions of segments: by a local image-text-to-text model, or by any OpenAI-compatible endpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.attempts import Outcome
from kinodex.agent.protocol.request import Request
from kinodex.agent.protocol.videos import Segment
from kinodex.agent.requests.describe import DescribeSegment, Description
from kinodex.index.library import Library
from kinodex.index.rows import SegmentRow, VideoRow
from kinodex.jobs.add.rounds import Round, Rounds, reasons
from kinodex.jobs.add.run import AddedRows
from kinodex.jobs.add.stages import Captions
from kinodex.jobs.add.writer import Writer
from kinodex.jobs.library import batched, picture_of, shown_between
from kinodex.jobs.models import hub_for

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


class CaptionWriter(Writer[Captions]):
    """Captions of the segments of a library; `confidence` is the captioner's, or the endpoint's own."""

    def prepare(self) -> None:
        """Load the text tower: a caption has a vector in the library's own space, if it has one."""
        if self.library.fingerprint.has_vectors:
            _ = self.library.text_tower

    def again(self) -> list[str]:
        """Ids of videos that this model captioned but for some segments."""
        if not self.stage.retry_failed:
            return []
        held = self.library.additions.counts("captions", self.stage.model)
        return [row.video_id for row in self.library.videos() if held.get(row.video_id, row.segments) < row.segments]

    def rounds(self, video: VideoRow) -> Rounds:
        """Describe the segments that this model has not captioned."""
        held = {each.segment_no for each in self.library.captions(video.video_id, self.stage.model)}
        segments = self.library.segments(video.video_id)
        lacking = [each for each in segments if each.segment_no not in held]
        outcomes = yield Round(len(lacking), lambda numbers: self._requests(video, [lacking[n] for n in numbers]))
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

    def _requests(self, video: VideoRow, segments: Sequence[SegmentRow]) -> list[DescribeSegment]:
        spans_s = [(segment.start_s, segment.end_s) for segment in segments]
        shown = shown_between(self.library, video, spans_s, self.stage.frames_a_segment)
        return [
            DescribeSegment(
                segment=Segment(segment.segment_no, segment.video_id, segment.start_s, segment.end_s),
                frames=frames,
            )
            for segment, frames in zip(segments, shown, strict=True)
        ]

    def load(self) -> Callable[[Sequence[Request[Any]]], list[Outcome[Any]]]:
        from kinodex.pipeline.models.captioner import SegmentFrames, load_captioner

        with hub_for(self.stage.model):
            captioner = load_captioner(self.stage.model, self.stage.device, self.stage.max_new_tokens)

        def replies(requests: Sequence[Request[Any]]) -> list[Outcome[Any]]:
            shown = [
                SegmentFrames(tuple(map(picture_of, each.frames)), each.segment.end_s - each.segment.start_s)
                for each in cast(Sequence[DescribeSegment], requests)
            ]
            return [
                Outcome(Description(caption=each.text, confidence=min(100.0, 100 * each.confidence)))
                for each in captioner.caption(shown)
            ]

        return replies

    def write(self, rows: Mapping[str, Any]) -> None:
        vectors = iter(text_vectors(self.library, [each.text for of_video in rows.values() for each in of_video]))
        with_vectors = {id_: [each._replace(vector=next(vectors)) for each in found] for id_, found in rows.items()}
        self.library.additions.add_captions(with_vectors, self.stage.model)


def text_vectors(library: Library, texts: Sequence[str]) -> Sequence[NDArray[np.float16] | None]:
    """Embed texts in the library's own space, so that a caption is found by meaning as a frame is.

    None stands for those of unknown words, and for all in a library without a space.
    """
    if not library.fingerprint.has_vectors:
        return [None] * len(texts)
    with EMBEDDING:
        embed = library.text_tower.embed_text
        vectors = [vector for batch in batched(texts, TEXTS_A_BATCH) for vector in embed(batch)]
    return [vector.astype(np.float16) if vector.any() else None for vector in vectors]
