"""A library as readers see it: complete videos and complete additions, found by name, by time and by searching."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

from numpy.typing import NDArray

from index.annotations.additions import added_facts, newest_counts, newest_settings
from index.annotations.captions import caption_vectors, captions
from index.annotations.clip_captions import clip_facts, clips
from index.annotations.detections import detections
from index.embedding.space import Fingerprint, Space, load_space
from index.errors import SpaceMismatch
from index.rows import (
    CaptionRow,
    ClipRow,
    DetectionRow,
    FrameVectors,
    Hit,
    LibraryFacts,
    Scope,
    SegmentRow,
    StoredFrame,
    TranscriptRow,
    VideoRow,
)
from index.search import search
from index.search.fusion import fuse, shares_words, spaced
from index.search.in_memory import InMemory
from index.search.space_scope import seen_in
from index.search.visibility import VisibilityCache
from index.store.connection import read_heading
from index.store.schema import vectors_table
from index.store.tables import Tables
from index.store.vector_tables import find_space, space_tables
from index.videos import read as reading

EVERYWHERE = Scope()
GLOB = re.compile(r"[*?\[]")


class LibraryReader:
    """What can be asked of an open library; `Library` opens one."""

    def __init__(self, uri: str, database: Any) -> None:
        self.uri = uri
        self._tables = Tables(uri, database)
        heading = read_heading(self._tables["videos"].schema, uri)
        self.settings = heading.settings
        self.fingerprint = heading.fingerprint
        self.format_version = heading.format_version
        self._vectors = vectors_table(heading.fingerprint)
        self._catalogue = VisibilityCache(self._tables)

    @property
    def space_name(self) -> str:
        """What `load_space` takes for this library's space."""
        return self.fingerprint.name

    def has_video(self, video_id: str) -> bool:
        return video_id in self._catalogue.videos([video_id])

    def videos(self) -> list[VideoRow]:
        """Complete videos, by title."""
        return sorted(self._catalogue.videos().values(), key=lambda row: (row.title, row.video_id))

    def video(self, name: str) -> VideoRow:
        """A complete video by its id, the first digits of it (at least 4), its title, file name or URI.

        Raises UnknownVideo if there is none or more than one.
        """
        by_id = self._catalogue.videos([name])
        return by_id[name] if by_id else reading.find_video(self._catalogue.videos(), name)

    def videos_named(self, names: Sequence[str]) -> list[VideoRow]:
        """The videos of some names (see `video`) and globs (`holiday-*`, `2026/*.mp4`), each once.

        Raises UnknownVideo for a name of none or several, and for a glob that matches none.
        """
        rows: dict[str, VideoRow] = {}
        for name in names:
            globbed = reading.matching_videos(self._catalogue.videos(), name) if GLOB.search(name) else []
            rows |= {row.video_id: row for row in globbed or [self.video(name)]}
        return list(rows.values())

    def spaces(self) -> tuple[Fingerprint, ...]:
        """The spaces that frames have vectors in, the library's own first."""
        held = space_tables(self._tables).values()
        return self.fingerprint, *(space for space in held if space.digest != self.fingerprint.digest)

    def space(self, name: str | None = None) -> Fingerprint:
        """One of `spaces()` by its name or digest, None being the library's own; raises SpaceMismatch."""
        return self.fingerprint if name is None else find_space(self._tables, name)[1]

    def load_space(self, name: str | None = None, towers: Literal["both", "text", "image"] = "both") -> Space:
        """The model of one of `spaces()`, to embed what is compared with the vectors that are stored.

        Raises SpaceMismatch if it is not held or its name stands for other weights here, or a SpaceError.
        """
        held = self.space(name)
        loaded = load_space(held.name, towers=towers)
        if loaded.fingerprint.digest != held.digest:
            raise SpaceMismatch(
                f"got space {loaded.fingerprint}, but {self.uri} holds {held}: other weights or other preprocessing "
                "go by that name here; use those that it was made with"
            )
        return loaded

    def pending(self, stage: str, model: str) -> list[VideoRow]:
        """Complete videos that this model has not added its stage to.

        `stage` is captions, detections, speech or vectors; for vectors, `model` is the space's digest.
        """
        done = self._catalogue.models(stage)
        return [row for row in self.videos() if model not in done.get(row.video_id, ())]

    def added_settings(self, stage: str, model: str) -> dict[str, Any]:
        """What a model's newest addition of a stage was made with; empty where it added nothing."""
        return newest_settings(self._tables, stage, model)

    def _models(self, stage: str, video: VideoRow) -> tuple[str, ...]:
        return self._catalogue.models(stage, [video.video_id]).get(video.video_id, ())

    def vectors(self, video_id: str, space: str | None = None) -> FrameVectors:
        """All frame vectors of a video in time order, to be read once and then searched in memory.

        `space` is the name or digest of one of `spaces()`; None is the library's own.
        """
        video = self.video(video_id)
        seen = seen_in(self._tables, self._catalogue, self.fingerprint, space)
        seen.check([video.video_id])
        return reading.vectors(self._tables, seen.table, video)

    def in_memory(self, video_id: str, space: str | None = None) -> InMemory:
        """A video's frames to be searched again and again, a hundred times quicker than by `search_frames`."""
        return InMemory.of(self.vectors(video_id, space))

    def frames(self, video_id: str, frame_nos: Sequence[int]) -> list[StoredFrame]:
        """Stored frames with their pictures, in the order asked for; raises TimeOutside for an unknown number."""
        return reading.frames(self._tables, self.video(video_id), frame_nos)

    def frames_at(self, video_id: str, times_s: Sequence[float], mode: str = "nearest") -> list[StoredFrame]:
        """One stored frame for each time, which must be in the video's `[start_s, end_s)`, else TimeOutside.

        `mode` is "nearest"; "shown", the frame on screen then: the latest at or before; or "exact", a frame
        at just this time (within a microsecond) or TimeOutside.
        """
        return reading.frames_at(self._tables, self.video(video_id), times_s, mode)

    def segments(self, video_id: str) -> list[SegmentRow]:
        """Segments in order, each with its caption by the newest model that captioned the video.

        Imported captions may be of other ranges; `captions` gives them all.
        """
        return reading.segments(self._tables, self.video(video_id), self.captions(video_id))

    def captions(self, video_id: str, model: str | None = None) -> list[CaptionRow]:
        """Captions in order, by this model or the newest that captioned the video; empty where none did."""
        video = self.video(video_id)
        models = self._models("captions", video)
        chosen = [name for name in models if model in (None, name)]
        return captions(self._tables, video, chosen[-1]) if chosen else []

    def caption_counts(self, model: str | None = None) -> dict[str, int]:
        """How many captions `captions` gives of each video that has an addition of them, without reading them."""
        return newest_counts(self._tables, "captions", model)

    def caption_vectors(self, video_id: str) -> FrameVectors:
        """The vectors of what `captions` gives, in the library's own space, for a video that is known by its words.

        `frame_no` is a caption's `segment_no` and `time_s` its start; captions without a vector are left out.
        """
        video = self.video(video_id)
        return caption_vectors(self._tables, video, self._models("captions", video))

    def clips(self, video_id: str, model: str) -> list[ClipRow]:
        """What a model wrote of parts of a video while agents asked, by time; neither segments nor searches show it."""
        return clips(self._tables, self.video(video_id).video_id, model)

    def detections(
        self,
        video_id: str,
        start_s: float | None = None,
        end_s: float | None = None,
        label: str | None = None,
        min_score: float = 0.0,
    ) -> list[DetectionRow]:
        """What was detected at times in `[start_s, end_s)`, in order, by all models that looked."""
        video = self.video(video_id)
        return detections(self._tables, video, self._models("detections", video), start_s, end_s, label, min_score)

    def transcript(
        self, video_id: str, start_s: float | None = None, end_s: float | None = None
    ) -> list[TranscriptRow]:
        """Lines that share some time with `[start_s, end_s)`, in order: subtitles and the newest model's speech."""
        video = self.video(video_id)
        newest = self._models("speech", video)[-1:]
        return reading.transcript(self._tables, video, newest, start_s, end_s)

    def search_frames(
        self,
        vector: NDArray[Any],
        scope: Scope = EVERYWHERE,
        k: int = 10,
        min_gap_s: float = 0.0,
        space: str | None = None,
    ) -> list[Hit]:
        """The `k` frames nearest to a unit vector `[dim]` by cosine, best first, `min_gap_s` apart in a video.

        In another space (see `vectors`) only videos that have vectors there are searched.
        """
        seen = seen_in(self._tables, self._catalogue, self.fingerprint, space)
        return search.search_frames(self._tables, seen, vector, scope, k, min_gap_s)

    def search_transcript(self, text: str, scope: Scope = EVERYWHERE, k: int = 10) -> list[Hit]:
        """The `k` transcript lines that match a text best by BM25; words in "quotes" must follow each other."""
        return search.search_transcript(self._tables, self._catalogue, text, scope, k)

    def search_captions(
        self, text: str, vector: NDArray[Any] | None = None, scope: Scope = EVERYWHERE, k: int = 10
    ) -> list[Hit]:
        """The `k` captions that match a text best by BM25, fused with those nearest to its vector, if one is given."""
        return search.search_captions(self._tables, self._catalogue, text, vector, scope, k)

    def search_detections(
        self, label: str, min_score: float = 0.0, scope: Scope = EVERYWHERE, k: int = 10, min_gap_s: float = 0.0
    ) -> list[Hit]:
        """The `k` frames with the surest detections of a label, whatever its case, `min_gap_s` apart in a video."""
        return search.search_detections(self._tables, self._catalogue, label, min_score, scope, k, min_gap_s)

    def search(
        self,
        text: str,
        vector: NDArray[Any],
        scope: Scope = EVERYWHERE,
        k: int = 10,
        min_gap_s: float = 0.0,
        space: str | None = None,
    ) -> list[Hit]:
        """Frames, transcript and captions together: four times `k` hits of each, fused by rank (see `fusion.fuse`).

        A line of the transcript that shares only a small word with the text is left out (see `fusion.shares_words`).
        In another space (see `vectors`) captions, whose vectors are in the library's own, are found by words alone.
        """
        in_own = self.space(space).digest == self.fingerprint.digest
        frames = self.search_frames(vector, scope, 4 * k, min_gap_s, space)
        lines = [line for line in self.search_transcript(text, scope, 4 * k) if shares_words(text, line.text)]
        captions = self.search_captions(text, vector if in_own else None, scope, 4 * k)
        return spaced(fuse(frames, lines, captions), min_gap_s)[:k]

    def info(self) -> LibraryFacts:
        """What the library holds, in numbers."""
        videos = self._catalogue.videos().values()
        return LibraryFacts(
            uri=self.uri,
            format_version=self.format_version,
            videos=len(videos),
            hours=sum(row.duration_s for row in videos) / 3600,
            frames=sum(row.frames for row in videos),
            segments=sum(row.segments for row in videos),
            transcript_lines=sum(row.transcript_lines for row in videos),
            added=(*added_facts(self._tables), *clip_facts(self._tables)),
            failures=self._tables.count("failures"),
            stored_bytes=self._tables.stored_bytes(),
            space=self.space_name,
            space_digest=self.fingerprint.digest,
            settings=self.settings,
        )
