"""A library as readers see it: complete videos and complete additions, found by name, by time and by searching."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from index import additions, reading, search
from index.captions import captions
from index.detections import detections
from index.fusion import fuse, spaced
from index.other_spaces import find_space, space_tables, videos_in
from index.queries import Videos
from index.rows import (
    CaptionRow,
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
from index.schema import vectors_table
from index.spaces import Fingerprint
from index.storage import read_heading
from index.tables import Tables

EVERYWHERE = Scope()


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
        self._complete: tuple[int, dict[str, VideoRow]] = (-1, {})
        self._added: dict[str, tuple[int, additions.Models]] = {}

    @property
    def space_name(self) -> str:
        """What `load_space` takes for this library's space."""
        return self.fingerprint.name

    def has_video(self, video_id: str) -> bool:
        return video_id in self._videos()

    def videos(self) -> list[VideoRow]:
        """Complete videos, by title."""
        return sorted(self._videos().values(), key=lambda row: (row.title, row.video_id))

    def _videos(self) -> dict[str, VideoRow]:
        """Complete videos by id, read again only when the table has changed."""
        version = self._tables.version("videos")
        if version != self._complete[0]:
            self._complete = version, reading.complete_videos(self._tables)
        return self._complete[1]

    def video(self, name: str) -> VideoRow:
        """A complete video by its id, the first digits of it (at least 4), its title, file name or URI.

        Raises UnknownVideo if there is none or more than one.
        """
        return reading.find_video(self._videos(), name)

    def _known(self, video_id: str) -> VideoRow:
        videos = self._videos()
        return videos[video_id] if video_id in videos else reading.find_video(videos, video_id)

    def spaces(self) -> tuple[Fingerprint, ...]:
        """The spaces that frames have vectors in, the library's own first."""
        held = space_tables(self._tables).values()
        return self.fingerprint, *(space for space in held if space.digest != self.fingerprint.digest)

    def pending(self, stage: str, model: str) -> list[VideoRow]:
        """Complete videos that this model has not added its stage to.

        `stage` is captions, detections, speech or vectors; for vectors, `model` is the space's digest.
        """
        done = self._models(stage)
        return [row for row in self.videos() if model not in done.get(row.video_id, ())]

    def _models(self, stage: str) -> additions.Models:
        """The complete models of a stage by video, read again only when additions have changed."""
        version = self._tables.version("additions")
        if stage not in self._added or self._added[stage][0] != version:
            self._added[stage] = version, additions.complete_models(self._tables, stage)
        return self._added[stage][1]

    def _seen_in(self, space: str | None, *video_ids: str) -> tuple[str, Videos]:
        """The table of a space's vectors and the videos that have them; SpaceMismatch if one of `video_ids` has not."""
        table, fingerprint = (self._vectors, None) if space is None else find_space(self._tables, space)
        if fingerprint is None or table == self._vectors:
            return table, self._videos()
        return table, videos_in(fingerprint, self._videos(), self._models("vectors"), video_ids)

    def vectors(self, video_id: str, space: str | None = None) -> FrameVectors:
        """All frame vectors of a video in time order, to be read once and then searched in memory.

        `space` is the name or digest of one of `spaces()`; None is the library's own.
        """
        video = self._known(video_id)
        return reading.vectors(self._tables, self._seen_in(space, video.video_id)[0], video)

    def frames(self, video_id: str, frame_nos: Sequence[int]) -> list[StoredFrame]:
        """Stored frames with their pictures, in the order asked for; raises TimeOutside for an unknown number."""
        return reading.frames(self._tables, self._known(video_id), frame_nos)

    def frames_at(self, video_id: str, times_s: Sequence[float], mode: str = "nearest") -> list[StoredFrame]:
        """One stored frame for each time, which must be in the video's `[start_s, end_s)`, else TimeOutside.

        `mode` is "nearest"; "shown", the frame on screen then: the latest at or before; or "exact", a frame
        at just this time (within a microsecond) or TimeOutside.
        """
        return reading.frames_at(self._tables, self._known(video_id), times_s, mode)

    def segments(self, video_id: str) -> list[SegmentRow]:
        """Segments in order, each with its caption by the newest model that captioned the video."""
        return reading.segments(self._tables, self._known(video_id), self.captions(video_id))

    def captions(self, video_id: str, model: str | None = None) -> list[CaptionRow]:
        """Captions in order, by this model or the newest that captioned the video; empty where none did."""
        video = self._known(video_id)
        chosen = additions.newest(self._models("captions"), video.video_id, model)
        return [] if chosen is None else captions(self._tables, video, chosen)

    def detections(
        self,
        video_id: str,
        start_s: float | None = None,
        end_s: float | None = None,
        label: str | None = None,
        min_score: float = 0.0,
    ) -> list[DetectionRow]:
        """What was detected at times in `[start_s, end_s)`, in order, by all models that looked."""
        video = self._known(video_id)
        models = self._models("detections").get(video.video_id, ())
        return detections(self._tables, video, models, start_s, end_s, label, min_score)

    def transcript(
        self, video_id: str, start_s: float | None = None, end_s: float | None = None
    ) -> list[TranscriptRow]:
        """Lines that share some time with `[start_s, end_s)`, in order: subtitles and the newest model's speech."""
        video = self._known(video_id)
        model = additions.newest(self._models("speech"), video.video_id)
        return reading.transcript(self._tables, video, model, start_s, end_s)

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
        table, videos = self._seen_in(space, *(scope.video_ids or ()))
        return search.search_frames(self._tables, table, videos, vector, scope, k, min_gap_s)

    def search_transcript(self, text: str, scope: Scope = EVERYWHERE, k: int = 10) -> list[Hit]:
        """The `k` transcript lines that match a text best by BM25; words in "quotes" must follow each other."""
        return search.search_transcript(self._tables, self._videos(), self._models("speech"), text, scope, k)

    def search_captions(
        self, text: str, vector: NDArray[Any] | None = None, scope: Scope = EVERYWHERE, k: int = 10
    ) -> list[Hit]:
        """The `k` captions that match a text best by BM25, fused with those nearest to its vector, if one is given."""
        return search.search_captions(self._tables, self._videos(), self._models("captions"), text, vector, scope, k)

    def search_detections(
        self, label: str, min_score: float = 0.0, scope: Scope = EVERYWHERE, k: int = 10, min_gap_s: float = 0.0
    ) -> list[Hit]:
        """The `k` frames with the surest detections of a label, whatever its case, `min_gap_s` apart in a video."""
        return search.search_detections(
            self._tables, self._videos(), self._models("detections"), label, min_score, scope, k, min_gap_s
        )

    def search(
        self, text: str, vector: NDArray[Any], scope: Scope = EVERYWHERE, k: int = 10, min_gap_s: float = 0.0
    ) -> list[Hit]:
        """Frames, transcript and captions together: four times `k` hits of each, fused by rank (see `fusion.fuse`)."""
        frames = self.search_frames(vector, scope, 4 * k, min_gap_s)
        lines = self.search_transcript(text, scope, 4 * k)
        seen = self.search_captions(text, vector, scope, 4 * k) if self._models("captions") else []
        return spaced(fuse(frames, lines, seen), min_gap_s)[:k]

    def info(self) -> LibraryFacts:
        """What the library holds, in numbers."""
        videos = self._videos().values()
        return LibraryFacts(
            uri=self.uri,
            format_version=self.format_version,
            videos=len(videos),
            hours=sum(row.duration_s for row in videos) / 3600,
            frames=sum(row.frames for row in videos),
            segments=sum(row.segments for row in videos),
            transcript_lines=sum(row.transcript_lines for row in videos),
            failures=self._tables.count("failures"),
            stored_bytes=self._tables.stored_bytes(),
            space=self.space_name,
            space_digest=self.fingerprint.digest,
            settings=self.settings,
        )
