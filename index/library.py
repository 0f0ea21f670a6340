"""One library on LanceDB: made, opened, written and read.

Many processes may read and write at once. A video's rows come first and its row in `videos` last; every
reader looks only at videos that have that row, so nobody sees half a video, whenever a writer dies.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from index.annotations import additions
from index.annotations.captions import CaptionLike, add_captions
from index.annotations.clip_captions import add_clips, forget
from index.annotations.detections import DetectionLike, add_detections
from index.annotations.speech import AddedSource, SpeechLike, add_speech
from index.embedding.space import Fingerprint
from index.errors import LibraryError, NotALibrary, SettingsMismatch, SpaceMismatch
from index.library_reader import LibraryReader
from index.maintenance import maintain as upkeep
from index.maintenance import remove as removing
from index.maintenance import sweep as sweeping
from index.rows import (
    ClipRow,
    FailureRow,
    FrameVectors,
    Hit,
    RunRow,
    Scope,
    SourceRow,
    VideoRow,
)
from index.store.connection import check_vacant, connect, is_local, place, table_names
from index.store.create import make_tables
from index.store.filters import one_of
from index.store.indexes import AFTER_RUN, Thresholds, refresh
from index.store.leases import DEFAULT_LEASE, Lease, Pace, check_lease
from index.store.vector_tables import add_space, add_vectors
from index.videos import ingest_log as keeping
from index.videos import write as writing
from index.videos.commit import complete

__all__ = ["Hit", "Library", "Scope"]


class Library(LibraryReader):
    """A library, open for reading and writing. Pickling it sends its URI; it is opened anew on the other side."""

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
        """The library at `uri`; raises NotALibrary, NewerLibrary, OlderLibrary or StorageError."""
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
        make_tables(database, where, _plain(settings), fingerprint)
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

    def lease(self, name: str, owner: str, pace: Pace = DEFAULT_LEASE) -> Lease:
        """The right to be the only one to do `name`, such as "ingest"; a context manager, see `leases`.

        Raises LibraryBusy if another run has it.
        """
        return Lease(self._tables, name, owner, pace)

    def check_lease(self, name: str, token: str) -> None:
        """Raise LeaseLost unless the lease of this name still has this token."""
        check_lease(self._tables, name, token)

    def discard(self, *video_ids: str) -> None:
        """Delete all that is stored of videos, complete or left over from an interrupted run."""
        writing.discard(self._tables, self._vectors, video_ids)

    def remove_videos(self, *video_ids: str) -> None:
        """Take complete videos out, with all that was added to them; raises LibraryBusy beside an ingest.

        Readers no longer see them at once; the room comes back with `maintain`, an hour later if nothing else is said.
        """
        removing.remove_videos(self._tables, self._vectors, video_ids)

    def remove_added(self, stage: str, model: str, *video_ids: str) -> None:
        """Take what a model added to videos out: captions, detections, speech, vectors (by digest), or kept clips.

        Raises LibraryBusy beside a run that adds the same stage, LibraryError for the library's own space.
        """
        self._check_addition(stage, model)
        removing.remove_added(self._tables, stage, model, video_ids)

    def discard_frames(self, video_id: str, first_number: int, until_number: int | None) -> None:
        """Delete a video's frames and vectors numbered `[first_number, until_number)`; None: all from the first on."""
        writing.discard_frames(self._tables, self._vectors, video_id, first_number, until_number)

    def add_frames(self, videos: Mapping[str, Sequence[writing.FrameLike]]) -> None:
        """Append frames and their vectors by video id: one commit a table. Few large ones are quicker than many."""
        writing.add_frames(self._tables, self._vectors, videos)

    def add_segments(self, videos: Mapping[str, Iterable[writing.SegmentLike]]) -> None:
        """Append the segments of videos, all of each in order, by video id."""
        writing.add_segments(self._tables, videos)

    def add_transcript(self, videos: Mapping[str, Iterable[writing.LineLike]]) -> None:
        """Append the transcript lines of videos by video id."""
        writing.add_transcript(self._tables, videos)

    def complete(self, rows: Sequence[VideoRow]) -> tuple[str, ...]:
        """Let readers see videos: the last thing written of them, after all else is on the disk.

        Returns the ids of those that were rejected, because they have not exactly the frames, vectors, segments
        and lines that their row says: then two runs wrote them at once, and all of it is deleted.
        """
        return complete(self._tables, self._vectors, rows)

    def sweep(self) -> int:
        """Delete what interrupted ingests left of videos that are not complete; returns of how many videos.

        Call it when no ingest is at work, that is under its lease. Quick where there is nothing to delete.
        """
        return sweeping.sweep(self._tables, self._vectors)

    def audit(self) -> sweeping.Audit:
        """Check that every complete video and addition has all its rows, and that there are no others; reads much."""
        return sweeping.audit(self._tables, self._vectors)

    def health(self) -> upkeep.Health:
        """What an audit finds that no run at work explains, and what the tables take; only reads."""
        return upkeep.health(self._tables, self._vectors)

    def maintain(
        self,
        keep_s: float = AFTER_RUN.keep_s,
        discard_broken: bool = False,
        purge: bool = False,
        tell: upkeep.Tell = lambda step: None,
    ) -> upkeep.Upkeep:
        """Remove what interrupted runs left, join files, bring indexes up to date, delete states over `keep_s` old.

        Safe beside runs and readers: what a run at work may be writing stays. With `discard_broken`, videos and
        additions that lost rows go too, so that the next run makes them anew. With `purge`, files and indexes that
        hold anything deleted are made anew. `keep_s` of 0 is for who is alone: what others are reading may fail.
        Raises LibraryBusy if another maintenance is at work, and any run where `keep_s` is 0; StorageError where the
        library may only be read.
        """
        return upkeep.maintain(self._tables, self._vectors, keep_s, discard_broken, purge, tell)

    def add_space(self, fingerprint: Fingerprint) -> None:
        """Make room for another space's vectors; raises LibraryError for the library's own space."""
        self._check_addition("vectors", fingerprint.digest)
        add_space(self._tables, fingerprint)

    def add_captions(self, videos: Mapping[str, Sequence[CaptionLike]], model: str) -> None:
        """Append captions of several videos; nobody sees them before `complete_addition`."""
        add_captions(self._tables, videos, model)

    def add_detections(self, videos: Mapping[str, Sequence[DetectionLike]], model: str) -> None:
        """Append detections of several videos; nobody sees them before `complete_addition`."""
        add_detections(self._tables, videos, model)

    def add_speech(self, videos: Mapping[str, Sequence[SpeechLike]], model: str, source: AddedSource = "asr") -> None:
        """Append transcript lines that a model heard, or that were imported; unseen before `complete_addition`."""
        add_speech(self._tables, videos, model, source)

    def add_vectors(self, videos: Mapping[str, FrameVectors], fingerprint: Fingerprint) -> None:
        """Append all frames' vectors in another space (see `add_space`), unseen before `complete_addition`."""
        self._check_addition("vectors", fingerprint.digest)
        add_vectors(self._tables, fingerprint, videos)

    def add_clips(self, rows: Sequence[ClipRow]) -> None:
        """Keep what a model wrote of parts of videos: seen at once, each part of a model once, the first one.

        Rows of videos that the library does not hold are left out. Several processes may write, beside anything else.
        """
        held = self._catalogue.videos({row.video_id for row in rows})
        add_clips(self._tables, [row for row in rows if row.video_id in held])
        gone = held.keys() - self._catalogue.videos(held)
        if gone:
            forget(self._tables, one_of("video_id", sorted(gone)))

    def complete_addition(
        self, stage: str, model: str, counts: Mapping[str, int], settings: Mapping[str, Any]
    ) -> tuple[str, ...]:
        """Let readers see what was added to videos, the last thing written of them; `counts` says how many rows.

        Returns the ids that were rejected, because their rows are not as many or the video is gone by now: what
        was added to them is deleted.
        """
        self._check_addition(stage, model)
        rejected = additions.complete(self._tables, self._catalogue.videos(counts), stage, model, counts, settings)
        gone = counts.keys() - self._catalogue.videos(counts)
        additions.discard(self._tables, stage, model, gone)
        return tuple(dict.fromkeys([*rejected, *gone]))

    def discard_addition(self, stage: str, model: str, *video_ids: str) -> None:
        """Delete what a model added to videos, complete or not: before it is done again."""
        self._check_addition(stage, model)
        additions.discard(self._tables, stage, model, video_ids)

    def discard_leftovers(self, stage: str, model: str) -> int:
        """Delete what interrupted runs of a stage left; returns of how many videos. Call it when no other runs."""
        self._check_addition(stage, model)
        return additions.discard_leftovers(self._tables, stage, model)

    def _check_addition(self, stage: str, model: str) -> None:
        """Vectors in the library's own space are no addition: ingest writes them, and nothing here may delete them."""
        if stage == "vectors" and model == self.fingerprint.digest:
            raise LibraryError(f"got space {self.fingerprint}, which is {self.uri}'s own: every frame has its vector")

    def video_ids(self) -> set[str]:
        """The ids of all complete videos: of a million in a second, which `videos` takes twenty for."""
        return keeping.video_ids(self._tables)

    def sources(self) -> dict[str, SourceRow]:
        """Every source that an ingest found a video in, by URI."""
        return keeping.sources(self._tables)

    def add_sources(self, rows: Iterable[SourceRow]) -> None:
        """Record sources, each in place of what was known of its URI."""
        keeping.add_sources(self._tables, rows)

    def failures(self) -> list[FailureRow]:
        return keeping.failures(self._tables)

    def add_failures(self, rows: Sequence[FailureRow]) -> None:
        """Record failed sources; the same source and stage again count as further attempts."""
        keeping.add_failures(self._tables, rows)

    def clear_failures(self, uris: Sequence[str], stages: Sequence[str] | None = None) -> None:
        """Forget the failures of sources, or only those of some stages."""
        keeping.clear_failures(self._tables, uris, stages)

    def runs(self) -> list[RunRow]:
        """What every run said of itself, the latest first."""
        return keeping.runs(self._tables)

    def add_run(self, row: RunRow) -> None:
        """Record a run, in place of what it said before."""
        keeping.add_run(self._tables, row)

    def refresh(self, when: Thresholds = AFTER_RUN) -> None:
        """Bring indexes up to date, join small files and delete outdated ones, from one process.

        Writers and readers need not stop. `when` is PAYING after a run, BESIDE_INGEST now and then in a long one.
        """
        refresh(self._tables, when)


def _plain(settings: Any) -> dict[str, Any]:
    """Settings as they come back from a library, that is from JSON."""
    known = asdict(settings) if is_dataclass(settings) and not isinstance(settings, type) else dict(settings)
    plain: dict[str, Any] = json.loads(json.dumps(known))
    return plain
