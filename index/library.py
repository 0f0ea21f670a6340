"""One library on LanceDB: made, opened, written and read.

Many processes may read and write at once. A video's rows come first and its row in `videos` last; every
reader looks only at videos that have that row, so nobody sees half a video, whenever a writer dies.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from index import additions, reading, search, writing
from index.captions import CaptionLike, add_captions
from index.detections import DetectionLike, add_detections
from index.errors import LibraryError, NotALibrary, SettingsMismatch, SpaceMismatch
from index.filters import all_of, equal
from index.maintenance import Thresholds, index_text, refresh
from index.other_spaces import add_space, add_vectors, space_tables
from index.rows import (
    FailureRow,
    FrameVectors,
    Hit,
    LibraryFacts,
    Scope,
    SegmentRow,
    StoredFrame,
    TranscriptRow,
    VideoRow,
)
from index.schema import table_schemas, vectors_table
from index.spaces import Fingerprint
from index.speech import SpeechLike, add_speech
from index.storage import check_vacant, connect, is_local, place, read_heading, storage_errors, table_names
from index.tables import Tables

__all__ = ["Hit", "Library", "Scope"]

EVERYWHERE = Scope()
PAYING = Thresholds()


class Library:
    """A library, open for reading and writing. Pickling it sends its URI; it is opened anew on the other side."""

    def __init__(self, uri: str, database: Any) -> None:
        self.uri = uri
        self._tables = Tables(uri, database)
        heading = read_heading(self._tables["videos"].schema, uri)
        self.settings = heading.settings
        self.fingerprint = heading.fingerprint
        self.format_version = heading.format_version
        self._vectors = vectors_table(heading.fingerprint)
        self._complete: tuple[int, dict[str, VideoRow]] = (-1, {})

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return Library.open, (self.uri,)

    @classmethod
    def exists(cls, uri: str) -> bool:
        """Whether there is a library at `uri`, of whatever version."""
        where = place(uri)
        if is_local(where) and not Path(where).is_dir():
            return False
        return "videos" in table_names(connect(where), where)

    @classmethod
    def open(cls, uri: str) -> Library:
        """The library at `uri`; raises NotALibrary, NewerLibrary or StorageError."""
        if not cls.exists(uri):
            raise NotALibrary(f"got {uri}, where there is no library; `kinodex ingest` makes one")
        where = place(uri)
        return cls(where, connect(where))

    @classmethod
    def create(cls, uri: str, settings: Any, fingerprint: Fingerprint) -> Library:
        """A new library at `uri`. `settings` is a dataclass or mapping of what its rows depend on."""
        where = place(uri)
        if cls.exists(uri):
            raise LibraryError(f"got {uri}, where there is a library already; open it, or give a new place")
        check_vacant(where)
        database = connect(where)
        with storage_errors(where):
            for name, schema in table_schemas(_plain(settings), fingerprint).items():
                table = database.create_table(name, schema=schema, exist_ok=True)
                if name in ("transcript", "captions"):
                    index_text(table)
        return cls(where, database)

    @classmethod
    def open_or_create(cls, uri: str, settings: Any, fingerprint: Fingerprint) -> Library:
        """The library at `uri`, made if there is none.

        Raises SettingsMismatch or SpaceMismatch if there is one of other settings or another space.
        """
        library = cls.open(uri) if cls.exists(uri) else cls.create(uri, settings, fingerprint)
        library.check_settings(_plain(settings))
        library.check_space(fingerprint)
        return library

    @property
    def space_name(self) -> str:
        """What `load_space` takes for this library's space."""
        return self.fingerprint.name

    def check_settings(self, settings: Mapping[str, Any]) -> None:
        changed = [key for key in sorted({*settings, *self.settings}) if settings.get(key) != self.settings.get(key)]
        if changed:
            got = ", ".join(f"{key}={settings.get(key)}" for key in changed)
            held = ", ".join(f"{key}={self.settings.get(key)}" for key in changed)
            raise SettingsMismatch(
                f"got {got}, but {self.uri} was made with {held}; use its settings or another library"
            )

    def check_space(self, fingerprint: Fingerprint) -> None:
        if fingerprint.digest != self.fingerprint.digest:
            raise SpaceMismatch(
                f"got space {fingerprint}, but {self.uri} was made with {self.fingerprint}; "
                f"use that space or another library"
            )

    def has_video(self, video_id: str) -> bool:
        return video_id in self._videos()

    def discard(self, video_id: str) -> None:
        """Delete all that is stored of a video, complete or left over from an interrupted run."""
        where = equal("video_id", video_id)
        for name in ("videos", "frames", self._vectors, "segments", "transcript"):
            self._tables.delete(name, where)
        additions.forget_video(self._tables, where)

    def add_frames(self, video_id: str, rows: Sequence[writing.FrameLike]) -> None:
        """Append frames and their vectors. Few large appends are much quicker than many small ones."""
        writing.add_frames(self._tables, self._vectors, video_id, rows)

    def add_segments(self, video_id: str, segments: Iterable[writing.SegmentLike]) -> None:
        writing.add_segments(self._tables, video_id, segments)

    def add_transcript(self, video_id: str, lines: Iterable[writing.LineLike]) -> None:
        writing.add_transcript(self._tables, video_id, lines)

    def complete(self, *rows: VideoRow) -> None:
        """Let readers see videos: the last thing written of them, after all else is on the disk.

        Raises LibraryError if a video has not exactly the frames that its row says: then two runs wrote it
        at once. What they wrote is deleted.
        """
        for row in rows:
            pictures, vectors = writing.frames_held(self._tables, self._vectors, row.video_id)
            if not pictures == vectors == row.frames:
                self.discard(row.video_id)
                raise LibraryError(
                    f"{row.title} has {pictures} frames and {vectors} vectors instead of {row.frames} each: two runs "
                    f"wrote it at once; it was taken out again, run ingest once more"
                )
        if is_local(self.uri):
            os.sync()  # LanceDB never does: after a power cut a row could else outlive what it vouches for
        self._tables.upsert("videos", ["video_id"], [asdict(row) for row in rows])

    def add_space(self, fingerprint: Fingerprint) -> None:
        """Make room for another space's vectors; raises LibraryError for the library's own space."""
        if fingerprint.digest == self.fingerprint.digest:
            raise LibraryError(f"got space {fingerprint}, which is {self.uri}'s own: every frame has its vector")
        add_space(self._tables, fingerprint)

    def spaces(self) -> tuple[Fingerprint, ...]:
        """The spaces that frames have vectors in, the library's own first."""
        held = space_tables(self._tables).values()
        return self.fingerprint, *(space for space in held if space.digest != self.fingerprint.digest)

    def pending(self, stage: str, model: str) -> list[VideoRow]:
        """Complete videos that this model has not added its stage to.

        `stage` is captions, detections, speech or vectors; for vectors, `model` is the space's digest.
        """
        done = additions.complete_models(self._tables, stage)
        return [row for row in self.videos() if model not in done.get(row.video_id, ())]

    def add_captions(self, videos: Mapping[str, Sequence[CaptionLike]], model: str) -> None:
        """Append captions of several videos; nobody sees them before `complete_addition`."""
        add_captions(self._tables, videos, model)

    def add_detections(self, videos: Mapping[str, Sequence[DetectionLike]], model: str) -> None:
        """Append detections of several videos; nobody sees them before `complete_addition`."""
        add_detections(self._tables, videos, model)

    def add_speech(self, videos: Mapping[str, Sequence[SpeechLike]], model: str) -> None:
        """Append transcript lines that a model heard; nobody sees them before `complete_addition`."""
        add_speech(self._tables, videos, model)

    def add_vectors(self, videos: Mapping[str, FrameVectors], fingerprint: Fingerprint) -> None:
        """Append all frames' vectors in another space (see `add_space`), unseen before `complete_addition`."""
        add_vectors(self._tables, fingerprint, videos)

    def complete_addition(
        self, stage: str, model: str, counts: Mapping[str, int], settings: Mapping[str, Any]
    ) -> tuple[str, ...]:
        """Let readers see what was added to videos, the last thing written of them; `counts` says how many rows.

        Returns the ids that were rejected, because their rows are not as many or the video is gone by now: what
        was added to them is deleted.
        """
        return additions.complete(self._tables, self._videos(), stage, model, counts, settings)

    def discard_addition(self, stage: str, model: str, *video_ids: str) -> None:
        """Delete what a model added to videos, complete or not: before it is done again."""
        additions.discard(self._tables, stage, model, video_ids)

    def discard_leftovers(self, stage: str, model: str) -> int:
        """Delete what interrupted runs of a stage left; returns of how many videos. Call it when no other runs."""
        return additions.discard_leftovers(self._tables, stage, model)

    def add_failure(self, failure: FailureRow) -> None:
        """Record a failed source; the same source and stage again count as one more attempt."""
        same = all_of([equal("uri", failure.uri), equal("stage", failure.stage)])
        before = self._tables.rows("failures", same, ["attempts"])["attempts"].to_pylist()
        counted = replace(failure, attempts=failure.attempts + sum(before))
        self._tables.upsert("failures", ["uri", "stage"], [asdict(counted)])

    def clear_failure(self, uri: str, stage: str | None = None) -> None:
        """Forget a source's failures, or only those of one stage."""
        of_source = equal("uri", uri)
        self._tables.delete("failures", of_source if stage is None else of_source & equal("stage", stage))

    def refresh(self, when: Thresholds = PAYING) -> None:
        """Bring indexes up to date; call it from one process, after an ingest. Readers need not stop."""
        refresh(self._tables, self._vectors, when)

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

    def failures(self) -> list[FailureRow]:
        rows = [FailureRow(**row) for row in self._tables.rows("failures").to_pylist()]
        return sorted(rows, key=lambda row: (row.uri, row.stage))

    def vectors(self, video_id: str) -> FrameVectors:
        """All frame vectors of a video in time order, to be read once and then searched in memory."""
        return reading.vectors(self._tables, self._vectors, self._known(video_id))

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
        return reading.segments(self._tables, self._known(video_id))

    def transcript(
        self, video_id: str, start_s: float | None = None, end_s: float | None = None
    ) -> list[TranscriptRow]:
        """Lines that share some time with `[start_s, end_s)`, in order."""
        return reading.transcript(self._tables, self._known(video_id), start_s, end_s)

    def _known(self, video_id: str) -> VideoRow:
        videos = self._videos()
        return videos[video_id] if video_id in videos else reading.find_video(videos, video_id)

    def search_frames(
        self, vector: NDArray[Any], scope: Scope = EVERYWHERE, k: int = 10, min_gap_s: float = 0.0
    ) -> list[Hit]:
        """The `k` frames nearest to a unit vector `[dim]` by cosine, best first, `min_gap_s` apart in a video."""
        return search.search_frames(self._tables, self._vectors, self._videos(), vector, scope, k, min_gap_s)

    def search_transcript(self, text: str, scope: Scope = EVERYWHERE, k: int = 10) -> list[Hit]:
        """The `k` transcript lines that match a text best by BM25; words in "quotes" must follow each other."""
        return search.search_transcript(self._tables, self._videos(), text, scope, k)

    def search(
        self, text: str, vector: NDArray[Any], scope: Scope = EVERYWHERE, k: int = 10, min_gap_s: float = 0.0
    ) -> list[Hit]:
        """Frames and transcript together, fused by rank; see `search.fuse`."""
        return search.search(self._tables, self._vectors, self._videos(), text, vector, scope, k, min_gap_s)

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


def _plain(settings: Any) -> dict[str, Any]:
    """Settings as they come back from a library, that is from JSON."""
    known = asdict(settings) if is_dataclass(settings) and not isinstance(settings, type) else dict(settings)
    plain: dict[str, Any] = json.loads(json.dumps(known))
    return plain
