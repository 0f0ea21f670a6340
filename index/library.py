"""A library of Lance tables: created or opened for reading and writing.

Many processes may read and write at once. A video's rows come first and its row in `videos` last; every
reader looks only at videos that have that row, so nobody sees half a video, whenever a writer dies.

Tables are created by one process at a time: two that create one table at the same moment would otherwise replace each
other's, rows and all. The table of leases comes first, so that the others are made under a lease; `videos` comes last:
where it is, all is.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import asdict, is_dataclass
from functools import cached_property, partial
from pathlib import Path
from shlex import quote
from typing import Any, Literal, Self, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kinodex.index.additions import Additions, plain_label
from kinodex.index.annotations.chapters import Chapters
from kinodex.index.annotations.lines import Lines
from kinodex.index.annotations.newest_rows import newest_rows
from kinodex.index.annotations.notes import Notes
from kinodex.index.annotations.speakers import Speakers
from kinodex.index.clocks import moved, moved_s, stored_range
from kinodex.index.durations import counted
from kinodex.index.errors import (
    LeaseLost,
    LibraryBusy,
    LibraryDamaged,
    LibraryError,
    NotALibrary,
    NoVectors,
    QueryError,
    SettingsMismatch,
    SpaceMismatch,
    TimeOutside,
    UnknownVideo,
    UnknownWords,
)
from kinodex.index.extracts import Extracts
from kinodex.index.metadata import Metadata
from kinodex.index.rows import (
    CaptionRow,
    DetectionRow,
    FrameVectors,
    LibraryFacts,
    ScreenTextRow,
    SegmentRow,
    SpeechRow,
    StoredFrame,
    VideoRow,
    known,
)
from kinodex.index.search.in_memory import InMemory
from kinodex.index.search.search import Search
from kinodex.index.sentences import Sentences
from kinodex.index.spaces.embedders import ImageEmbedder, TextEmbedder
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.spaces.named_models import note_model
from kinodex.index.spaces.space import Space
from kinodex.index.spaces.towers import TOWERS, Sigmoid, SpaceTowers
from kinodex.index.store.carried_towers import described_towers
from kinodex.index.store.commit_probe import check_commits
from kinodex.index.store.database import Tables, has_table
from kinodex.index.store.filters import (
    Filter,
    all_of,
    at_least,
    equal,
    of_frames,
    one_of,
    other_than,
    overlapping,
    within,
)
from kinodex.index.store.frame_keys import LAST_FRAME_NO
from kinodex.index.store.held_tables import find_space, space_tables
from kinodex.index.store.late_tables import create_table
from kinodex.index.store.leases import DEFAULT_LEASE, Lease, Pace, guard
from kinodex.index.store.load_tower import load_tower_of
from kinodex.index.store.places import TABLE_SUFFIX, entries_at, is_local, place
from kinodex.index.store.schema import (
    OUR_TABLES,
    SHOTS,
    captions_space,
    own_vectors_table,
    read_heading,
    table_schemas,
)
from kinodex.index.store.storage_errors import storage_errors
from kinodex.index.vector_columns import matrix_of
from kinodex.index.videos.damage import check_pictures, check_vectors, with_checksum
from kinodex.index.videos.ingest_log import IngestLog
from kinodex.index.videos.visibility import VisibilityCache, matching_videos, space_scope
from kinodex.index.videos.writer import VideoWriter

FRAME_COLUMNS = ["video_id", "frame_no", "time_s", "width_px", "height_px", "jpeg"]
EXACT_S = 1e-6
GLOB = re.compile(r"[*?\[]")


class LibraryReader:
    """An open library for reading; `Library` opens one. Its parts are made on first use."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.tables = Tables(uri)
        heading = read_heading(self.tables.schema("videos"), uri)
        self.settings = heading.settings
        self.fingerprint = heading.fingerprint
        self.format_version = heading.format_version
        self.own_vectors = own_vectors_table(heading.fingerprint)
        """The table of vectors that ingest fills; None in a library without a space."""
        self.tables.expect(table_schemas(heading.settings, heading.fingerprint))
        self.visible = VisibilityCache(self.tables)
        self.condition: str | None = None
        """Of a library that `where` gave: videos for which it does not hold are not seen."""
        self._descriptions: dict[str, SpaceTowers | None] = {}

    def sigmoid(self, space: Fingerprint, text: str) -> Sigmoid | None:
        """Return the sigmoid by which a text's cosines in one of `spaces()` are probabilities.

        Return None where they are not.
        """
        described = self._described(space)
        known = described.sigmoid if described else None
        return known if known is not None and known.reads(text) else None

    def _described(self, space: Fingerprint) -> SpaceTowers | None:
        """Return what is known of a space by its towers, which is read once: they may lie in an object store."""
        if space.digest not in self._descriptions:
            self._descriptions[space.digest] = described_towers(self.uri, space)
        return self._descriptions[space.digest]

    def where(self, condition: str | None) -> Self:
        """Return the library with only those videos for which a condition in SQL holds, now and later; itself for None.

        It is for reading. Raises QueryError for a condition that cannot run (see `kinodex.index.conditions`), or that
        holds for no video.
        """
        if condition is None:
            return self
        found, every = self.metadata.holding(condition)
        if self.condition is not None:
            condition = f"({self.condition}) AND ({condition})"
            found, every = self.metadata.holding(condition)
        if not found:
            raise QueryError(
                f"got the condition {condition!r}: 0 of {counted(every, 'video')} match; `kinodex info` shows what the "
                "columns hold"
            )
        view = copy(self)
        for part in _parts(type(self)):  # they look at the videos that are seen
            vars(view).pop(part, None)
        view.condition = condition
        view.visible = self.visible.narrowed(partial(self.metadata.holding, condition))
        view.sentences = self.sentences.seen_in(view.visible)
        return view

    @cached_property
    def search(self) -> Search:
        """Searches by vector and by words."""
        return Search(self.tables, self.visible, self.fingerprint)

    @cached_property
    def additions(self) -> Additions:
        """Optional stages, and the rows that they added."""
        return Additions(self.tables, self.visible, self.fingerprint)

    @cached_property
    def notes(self) -> Notes:
        """Captions that agents wrote."""
        return Notes(self.tables, self.visible)

    @cached_property
    def lines(self) -> Lines:
        """Lines of text of all kinds."""
        return Lines(self.tables, self.visible)

    @cached_property
    def chapters(self) -> Chapters:
        """Scenes and chapters."""
        return Chapters(self.tables, self.visible)

    @cached_property
    def sentences(self) -> Sentences:
        """Lines of text by meaning."""
        return Sentences(self.tables, self.visible)

    @cached_property
    def extracts(self) -> Extracts:
        """Tables that a model filled in under a schema."""
        return Extracts(self.tables, self.visible)

    @cached_property
    def speakers(self) -> Speakers:
        """Voices and their names."""
        return Speakers(self.tables)

    @cached_property
    def ingest_log(self) -> IngestLog:
        """Sources, failures and runs of ingest."""
        return IngestLog(self.tables)

    @cached_property
    def metadata(self) -> Metadata:
        """Columns of the library's own about its videos."""
        return Metadata(self.tables)

    @property
    def vectors_table(self) -> str:
        """The table of vectors that ingest fills; raises NoVectors."""
        if self.own_vectors is None:
            raise NoVectors.of(self.uri)
        return self.own_vectors

    @property
    def space_name(self) -> str:
        """Name of this library's space, for `load_space`."""
        return self.fingerprint.name

    def video_ids(self) -> set[str]:
        """List the ids of all complete videos: of a million in a second, which `videos` takes twenty for."""
        some, _ = self.visible.among()
        if some is not None:
            return set(some)
        return set(self.tables.rows("videos", equal("state", "complete"), ["video_id"])["video_id"].to_pylist())

    def count_videos(self) -> int:
        """Count the complete videos, without reading them."""
        some, _ = self.visible.among()
        return self.tables.count("videos", equal("state", "complete")) if some is None else len(some)

    def video_columns(self, columns: Sequence[str]) -> pa.Table:
        """Read some columns of all complete videos, in no particular order: those of ten thousand in milliseconds."""
        rows = self.tables.rows("videos", equal("state", "complete"), list(dict.fromkeys(["video_id", *columns])))
        return self.visible.seen(rows).select(list(columns))

    def has_video(self, video_id: str) -> bool:
        """Return True if the library holds this video, complete."""
        return video_id in self.visible.videos([video_id])

    def videos(self) -> list[VideoRow]:
        """List the complete videos, by title."""
        return sorted(self.visible.videos().values(), key=lambda row: (row.title, row.video_id))

    def video(self, name: str, *, whole_name: bool = False) -> VideoRow:
        """Find a complete video by its id, the first digits of it (at least 4), its title, file name or URI.

        A part of one title will do (at least 3 letters), unless the `whole_name` is required. Raises UnknownVideo.
        """
        try:
            return self.visible.video(name, whole_name=whole_name)
        except UnknownVideo as error:
            if self.condition is None:
                raise
            raise UnknownVideo(f"{error}; no others are seen than those for which {self.condition} holds") from error

    def videos_named(self, names: Sequence[str], *, whole_name: bool = False) -> list[VideoRow]:
        """Find the videos of some names (see `video`) and globs (`2026/*.mp4`), each once; raises UnknownVideo."""
        rows: dict[str, VideoRow] = {}
        for name in names:
            matches = matching_videos(self.visible.videos(), name) if GLOB.search(name) else []
            rows |= {row.video_id: row for row in matches or [self.video(name, whole_name=whole_name)]}
        return list(rows.values())

    def ids_named(self, names: Sequence[str] = ()) -> tuple[str, ...] | None:
        """Return the ids of the videos of some names (see `videos_named`); without any None, for all that are seen."""
        return tuple(row.video_id for row in self.videos_named(names)) if names else None

    def select(self, names: Sequence[str] = (), where: str | None = None) -> list[VideoRow] | None:
        """Return the videos of some names, of those for which a condition holds; None, for all, without either."""
        among = self.where(where)
        return among.chosen(names) if names or among.condition is not None else None

    def chosen(self, names: Sequence[str] = ()) -> list[VideoRow]:
        """Return the videos of some names (see `videos_named`), or all that are seen."""
        return self.videos_named(names) if names else self.videos()

    def spaces(self) -> tuple[Fingerprint, ...]:
        """List the spaces that frames have vectors in, the library's own first."""
        own, held = self.fingerprint, space_tables(self.tables).values()
        return *((own,) if own.has_vectors else ()), *(space for space in held if space.digest != own.digest)

    def space(self, name: str | None = None) -> Fingerprint:
        """Find one of `spaces()` by its name or digest, None being the library's own; raises SpaceMismatch."""
        if name is None or self.fingerprint.is_own(name):  # which needs no look at the other tables
            return self.fingerprint
        return find_space(self.tables, name)[1]

    @overload
    def load_space(self, name: str | None = None, towers: Literal["both"] = "both") -> Space: ...
    @overload
    def load_space(self, name: str | None, towers: Literal["text"]) -> TextEmbedder: ...
    @overload
    def load_space(self, name: str | None, towers: Literal["image"]) -> ImageEmbedder: ...
    def load_space(
        self, name: str | None = None, towers: Literal["both", "text", "image"] = "both"
    ) -> Space | TextEmbedder | ImageEmbedder:
        """Load the model of one of `spaces()`, whose vectors can be compared with the stored ones.

        One tower is the exported one, without torch, where the library carries it or the space's name gives its folder.
        Without one the model's name in full, as `name`, counts as the caller's (see `spaces/named_models`). Raises
        SpaceMismatch, NoVectors, or a SpaceError: TorchMissing where there is no exported tower and no torch,
        ModelNotNamed.
        """
        space = self.space(name)
        if not space.has_vectors:
            raise NoVectors.of(self.uri)
        if name == space.name:
            note_model(name)
        return load_tower_of(self.uri, space, towers)

    def text_embedder(self, name: str | None = None) -> Callable[[Sequence[str]], NDArray[np.float32]]:
        """Return the function that embeds texts in one of `spaces()`, as `load_space` loads it.

        In a library without a space it raises NoVectors when it is called: not all who may need it do.
        """
        if self.space(name).has_vectors:
            return self.load_space(name, "text").embed_text

        def refuse(texts: Sequence[str]) -> NDArray[np.float32]:
            raise NoVectors.of(self.uri)

        return refuse

    @cached_property
    def text_tower(self) -> TextEmbedder:
        """The text tower of the library's own space, loaded once; raises as `load_space` does."""
        return self.load_space(None, "text")

    def query_vector(self, text: str) -> NDArray[np.float32] | None:
        """Embed a text in the library's own space; None in a library without one, or of a text without a known word."""
        if not self.fingerprint.has_vectors:
            return None
        vector: NDArray[np.float32] = self.text_tower.embed_text([text])[0]
        return vector if vector.any() else None

    def incomparable(self, text: str) -> QueryError | None:
        """Say why a text cannot be compared with pictures (NoVectors, UnknownWords); None where it can."""
        if not self.fingerprint.has_vectors:
            return NoVectors.of(self.uri)
        return None if self.query_vector(text) is not None else UnknownWords.of(self.space_name, text)

    def vectors(self, video_id: str, space: str | None = None) -> FrameVectors:
        """Read a video's frame vectors in time order, in a space by name or digest; raises DamagedRows."""
        video = self.video(video_id)
        in_space = space_scope(self.tables, self.visible, self.fingerprint, space)
        in_space.check([video.video_id])
        of_video = equal("video_id", video.video_id)
        rows = self.tables.rows(in_space.table, of_video, ["video_id", "frame_no", "time_s", "vector"])
        check_vectors(rows, self.uri)
        frame_no, first = np.unique(rows["frame_no"].to_numpy(), return_index=True)
        times_s = moved_s(rows["time_s"].to_numpy()[first], -video.zero_s)
        return FrameVectors(frame_no, times_s, matrix_of(rows["vector"])[first])

    def frame_times(self, video_id: str) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Read the numbers and times of a video's stored frames in time order, without vectors; empty where none."""
        video = self.video(video_id)
        rows = self.tables.rows("frames", equal("video_id", video.video_id), ["frame_no", "time_s"])
        frame_no, first = np.unique(rows["frame_no"].to_numpy(), return_index=True)
        return frame_no, moved_s(rows["time_s"].to_numpy()[first], -video.zero_s)

    def in_memory(self, video_id: str, space: str | None = None) -> InMemory:
        """Read a video's frames to search them again and again, a hundred times faster than by `search.frames`."""
        return InMemory.of(self.vectors(video_id, space))

    def frames(self, video_id: str, frame_nos: Sequence[int]) -> list[StoredFrame]:
        """Read stored frames with their pictures, in the order given; raises TimeOutside or DamagedRows."""
        video, numbers = self.video(video_id), [int(number) for number in frame_nos]
        if not numbers:
            return []
        possible = [number for number in numbers if 0 <= number <= LAST_FRAME_NO]
        columns = with_checksum(FRAME_COLUMNS)
        table = self.tables.rows("frames", of_frames(video.video_id, possible), columns)
        check_pictures(table, self.uri)
        rows = table.select(FRAME_COLUMNS).to_pylist()
        stored = {row["frame_no"]: StoredFrame(**moved(row, -video.zero_s)) for row in rows}
        for number in numbers:
            if number not in stored:
                raise TimeOutside(f"got frame {number} of {video.title}, which has no such frame; ask for it by time")
        return [stored[number] for number in numbers]

    def frames_at(self, video_id: str, times_s: Sequence[float], mode: str = "nearest") -> list[StoredFrame]:
        """Read one stored frame for each time, which must be in the video's `[start_s, end_s)`, else TimeOutside.

        `mode` is "nearest"; "shown", the frame on screen then: the latest at or before; or "exact", a frame
        at exactly this time (within a microsecond) or TimeOutside.
        """
        video = self.video(video_id)
        for time_s in times_s:
            if not video.start_s <= time_s < video.end_s:
                allowed = f"[{video.start_s:.3f}, {video.end_s:.3f})"
                raise TimeOutside(
                    f"got {time_s:.3f} s of {video.title}, which covers {allowed} s; give a time in there"
                )
        if times_s and not video.frames:
            raise TimeOutside(f"got {times_s[0]:.3f} s of {video.title}, which was imported as text and has no frames")
        numbers, stored_s = self.frame_times(video.video_id)
        return self.frames(video.video_id, [int(numbers[_position(stored_s, t, mode, video)]) for t in times_s])

    def segments(self, video_id: str) -> list[SegmentRow]:
        """Read the segments in order, each with its caption by the newest model that captioned the video.

        Those of `kinodex add shots` where it was run, else those of ingest, whose shots begin with a sampled frame.
        Imported captions may be of other ranges, so times decide; `captions` returns them all. A caption that was
        written before the cuts were moved to their frames belongs to the segment that it shares most with.
        """
        video = self.video(video_id)
        captions = sorted(self.captions(video.video_id), key=lambda each: each.start_s)
        same = {(each.start_s, each.end_s): each for each in captions}
        exact = newest_rows(self.tables, self.visible, "shots", video.video_id, SHOTS.names)
        stored = exact or self.tables.rows("segments", equal("video_id", video.video_id)).to_pylist()
        segments = []
        for each in sorted(stored, key=lambda each: int(each["segment_no"])):
            row = each if exact else moved(each, -video.zero_s)
            said = same.get((row["start_s"], row["end_s"])) or (_nearest(captions, row) if exact else None)
            facts = {name: row[name] for name in row if name != "model"}
            if said is not None:
                facts |= {"caption": said.text, "caption_confidence": said.confidence, "caption_model": said.model}
            segments.append(known(SegmentRow, facts))
        return segments

    def captions(self, video_id: str, model: str | None = None) -> list[CaptionRow]:
        """Read the captions in order, by this model or the newest that captioned the video; empty where none did."""
        video = self.video(video_id)
        rows = self._added("captions", video, [*CaptionRow.__slots__], newest=True, model=model).sort_by("segment_no")
        return [CaptionRow(**moved(row, -video.zero_s)) for row in rows.to_pylist()]

    @property
    def has_caption_vectors(self) -> bool:
        """False while captions still have vectors of the space that was the library's own before `use-space`."""
        return captions_space(self.tables.schema("captions"), self.fingerprint.digest) == self.fingerprint.digest

    def caption_vectors(self, video_id: str) -> FrameVectors:
        """Read the vectors of the captions that `captions` returns, in the library's own space; raises DamagedRows.

        `frame_no` is a caption's `segment_no` and `time_s` its start; captions without a vector are left out.
        """
        video = self.video(video_id)
        columns = ["video_id", "segment_no", "start_s", "vector"]
        rows = self._added("captions", video, columns, newest=True)
        rows = rows.filter(rows["vector"].is_valid()).sort_by("segment_no")
        check_vectors(rows, self.uri)
        starts_s = moved_s(rows["start_s"].to_numpy(), -video.zero_s)
        return FrameVectors(rows["segment_no"].to_numpy(), starts_s, matrix_of(rows["vector"]))

    def detections(
        self,
        video_id: str,
        start_s: float | None = None,
        end_s: float | None = None,
        label: str | None = None,
        min_score: float = 0.0,
    ) -> list[DetectionRow]:
        """Read the detections at times in `[start_s, end_s)` by all models, by time, then the surest first."""
        video = self.video(video_id)
        of_label = [] if label is None else [equal("label", plain_label(label))]
        limits = within(*stored_range(video.zero_s, start_s, end_s))
        where = [at_least("score", min_score), *of_label, *limits]
        rows = self._added("detections", video, where=where)
        rows = rows.sort_by([("time_s", "ascending"), ("score", "descending"), ("label", "ascending")])
        return [known(DetectionRow, moved(row, -video.zero_s) | {"box": tuple(row["box"])}) for row in rows.to_pylist()]

    def detection_labels(self, video_id: str) -> list[str]:
        """List the labels of a video's detections, those found most often first; without reading the detections."""
        video = self.video(video_id)
        rows = self._added("detections", video, ["label"])
        counts = rows["label"].value_counts().to_pylist()
        return [each["values"] for each in sorted(counts, key=lambda each: (-each["counts"], each["values"]))]

    def detected_frames(self, video_id: str) -> dict[str, NDArray[np.int32]]:
        """Read the numbers of the frames that each label was detected in, without boxes; most often found first."""
        video = self.video(video_id)
        rows = self._added("detections", video, ["label", "frame_no"])
        labels, inverse = np.unique(np.array(rows["label"].to_pylist(), object), return_inverse=True)
        numbers = rows["frame_no"].to_numpy()
        frames = {str(label): np.unique(numbers[inverse == at]) for at, label in enumerate(labels)}
        return dict(sorted(frames.items(), key=lambda each: (-len(each[1]), each[0])))

    def speech(self, video_id: str, start_s: float | None = None, end_s: float | None = None) -> list[SpeechRow]:
        """Read the lines that share some time with `[start_s, end_s)`: subtitles and the newest model's speech."""
        video = self.video(video_id)
        shown = (None, *self._models("speech", video)[-1:])
        limits = overlapping(*stored_range(video.zero_s, start_s, end_s))
        where = all_of([equal("video_id", video.video_id), *limits])
        rows = self.tables.rows("speech", where).sort_by([("start_s", "ascending"), ("end_s", "ascending")])
        seen = (row for row in rows.to_pylist() if row["model"] in shown)
        return self.speakers.lines(moved(row, -video.zero_s) for row in seen)

    def screen_text(
        self, video_id: str, start_s: float | None = None, end_s: float | None = None
    ) -> list[ScreenTextRow]:
        """Read the text on screen that shares some time with `[start_s, end_s)`, from top to bottom."""
        columns = [*ScreenTextRow.__slots__]
        rows = newest_rows(self.tables, self.visible, "screen_text", video_id, columns, start_s=start_s, end_s=end_s)
        found = [known(ScreenTextRow, row | {"box": tuple(row["box"])}) for row in rows]
        return sorted(found, key=lambda row: (row.start_s, row.box[1], row.box[0]))

    def info(self) -> LibraryFacts:
        """Summarise the library in numbers."""
        videos = self.video_columns(["duration_s", "frames", "segments", "speech_lines"])
        totals = {name: pc.sum(videos[name]).as_py() or 0 for name in videos.column_names}
        described = self._described(self.fingerprint)
        return LibraryFacts(
            uri=self.uri,
            format_version=self.format_version,
            videos=videos.num_rows,
            hours=totals["duration_s"] / 3600,
            frames=totals["frames"],
            segments=totals["segments"],
            speech_lines=totals["speech_lines"],
            added=(*self.additions.facts(), *self.notes.facts()),
            failures=self._count_failures(),
            stored_bytes=self.tables.stored_bytes(),
            space=self.space_name,
            space_digest=self.fingerprint.digest,
            space_card=described.card if described else None,
            settings=self.settings,
            columns={name: str(kind) for name, kind in self.metadata.columns().items()},
        )

    def _count_failures(self) -> int:
        if self.condition is None:
            return self.tables.count("failures")
        uris = set(self.video_columns(["uri"])["uri"].to_pylist())
        return sum(failure.uri in uris for failure in self.ingest_log.failures())

    def _models(self, stage: str, video: VideoRow) -> tuple[str, ...]:
        return self.visible.models(stage, [video.video_id]).get(video.video_id, ())

    def _added(
        self,
        stage: str,
        video: VideoRow,
        columns: Sequence[str] | None = None,
        where: Sequence[Filter] = (),
        newest: bool = False,
        model: str | None = None,
    ) -> pa.Table:
        """Read what all models added of a video, or the newest, or this model."""
        models = [name for name in self._models(stage, video) if model in (None, name)]
        shown = one_of("model", models[-1:] if newest else models)
        of_video = [equal("video_id", video.video_id), shown, *where]
        return self.tables.rows(stage, all_of(of_video), columns)


def _position(stored_s: NDArray[np.float64], time_s: float, mode: str, video: VideoRow) -> int:
    """Find which of the rising `stored_s` stands for `time_s`; of two equally near ones the earlier."""
    nearest = int(np.argmin(np.abs(stored_s - time_s)))
    if mode == "nearest":
        return nearest
    if mode == "shown":
        return max(int(np.searchsorted(stored_s, time_s + EXACT_S, side="right")) - 1, 0)
    if mode != "exact":
        raise QueryError(f"got mode {mode!r}; it is nearest, exact or shown")
    if abs(stored_s[nearest] - time_s) > EXACT_S:
        raise TimeOutside(
            f"got {time_s:.6f} s of {video.title}, where no frame is stored; the nearest is at "
            f"{stored_s[nearest]:.6f} s: ask for that, or with mode nearest"
        )
    return nearest


def _parts(of: type[LibraryReader]) -> Iterator[str]:
    """Name the parts of an open library that are made on first use."""
    return (name for each in of.__mro__ for name, part in vars(each).items() if isinstance(part, cached_property))


def _opened(uri: str, condition: str | None) -> Library:
    return Library.open(uri).where(condition)


CREATION = "creation"
"""The lease of a process that makes a library: its row alone is no trace of one that was there."""


class Library(LibraryReader):
    """An open library for reading and writing. Pickling it sends its URI; the receiver opens it again."""

    def __reduce__(self) -> tuple[Any, tuple[str, str | None]]:
        return _opened, (self.uri, self.condition)

    @cached_property
    def writer(self) -> VideoWriter:
        """Writer of the rows of videos."""
        return VideoWriter(self.tables, self.own_vectors)

    @classmethod
    def exists(cls, uri: str) -> bool:
        """Return True if there is a library at `uri`, of whatever version.

        Raises LibraryDamaged where the rest of a library lies without its table of videos: an ingest would delete it.
        """
        where = place(uri)
        with storage_errors(where):
            if is_local(where) and not Path(where).is_dir():
                return False
        if has_table(where, "videos"):
            return True
        remains = _remains(where)
        if remains is None or has_table(where, "videos"):  # which another process makes at this moment
            return remains is not None
        raise LibraryDamaged(
            f"got {uri}, a damaged library: its table of videos is gone, and {remains}; nothing was changed: restore "
            f"it from a copy, or `kinodex maintain {uri} --repair` makes it again from what is left"
        )

    @classmethod
    def open(cls, uri: str) -> Library:
        """Open the library at `uri`; raises NotALibrary, NewerLibrary, LibraryDamaged or StorageError."""
        if not cls.exists(uri):
            raise NotALibrary(f"got {uri}, where there is no library; `kinodex ingest` makes one")
        return cls(place(uri))

    @classmethod
    def create(cls, uri: str, settings: Any, fingerprint: Fingerprint) -> Library:
        """Create a library at `uri`. `settings` is a dataclass or mapping of everything that its rows depend on."""
        where = place(uri)
        if cls.exists(uri):
            raise LibraryError(f"got {uri}, where there is a library already; open it, or give a new place")
        _check_vacant(where)
        _make_tables(where, _plain(settings), fingerprint)
        return cls(where)

    @classmethod
    def open_or_create(cls, uri: str, settings: Any, fingerprint: Fingerprint) -> Library:
        """Open the library at `uri`, or create it if there is none; raises SettingsMismatch or SpaceMismatch."""
        library = cls.open(uri) if cls.exists(uri) else cls.create(uri, settings, fingerprint)
        library.check_settings(settings)
        library.check_space(fingerprint)
        return library

    def check_settings(self, settings: Any) -> None:
        """Raise SettingsMismatch unless the library was made with these settings: a mapping or a dataclass."""
        settings = _plain(settings)
        changed = [key for key in sorted({*settings, *self.settings}) if settings.get(key) != self.settings.get(key)]
        if changed:
            got = ", ".join(f"{key}={settings.get(key)}" for key in changed)
            held = ", ".join(f"{key}={self.settings.get(key)}" for key in changed)
            raise SettingsMismatch(
                f"got {got}, but {self.uri} was made with {held}; use its settings or another library"
            )

    def check_space(self, fingerprint: Fingerprint) -> None:
        """Raise SpaceMismatch unless the library's own space has this fingerprint."""
        if fingerprint.digest != self.fingerprint.digest:
            if not self.fingerprint.has_vectors:
                raise SpaceMismatch(
                    f"got space {fingerprint}, but {self.uri} was made without one; embed its frames first: "
                    f"kinodex add vectors {quote(self.uri)} --space {quote(fingerprint.name)}"
                )
            raise SpaceMismatch(
                f"got space {fingerprint}, but {self.uri} was made with {self.fingerprint}; "
                f"use that space or another library"
            )

    def lease(self, name: str, owner: str, pace: Pace = DEFAULT_LEASE) -> Lease:
        """Make a lease, the right to be the only one to do `name`; entering it raises LibraryBusy if it is held."""
        if self.condition is not None:  # a run tidies up: what it does not see, it would take for leftovers
            raise LibraryError(f"got a library limited to {self.condition}, which can be read only; open all of it")
        return Lease(self.tables, name, owner, pace)

    def guard(self, name: str, token: str) -> None:
        """Write under a lease that another process holds for this one: LeaseLost is raised once it is lost."""
        guard(self.tables, name, token)


def _nearest(captions: Sequence[CaptionRow], row: Mapping[str, Any]) -> CaptionRow | None:
    """Return the caption, of those in order, that shares most time with a segment, if that is most of what both are."""
    first, end = (bisect_right(captions, row[name], key=lambda each: each.start_s) for name in ("start_s", "end_s"))

    def alike(each: CaptionRow) -> float:
        shared_s = min(each.end_s, row["end_s"]) - max(each.start_s, row["start_s"])
        return float(shared_s / (max(each.end_s, row["end_s"]) - min(each.start_s, row["start_s"])))

    best = max(captions[max(first - 1, 0) : end], key=alike, default=None)
    return best if best is not None and alike(best) > 0.5 else None


def _plain(settings: Any) -> dict[str, Any]:
    """Convert settings to the form in which a library returns them, that is through JSON."""
    known = asdict(settings) if is_dataclass(settings) and not isinstance(settings, type) else dict(settings)
    plain: dict[str, Any] = json.loads(json.dumps(known))
    return plain


def _check_vacant(uri: str) -> None:
    """Raise NotALibrary if a local place holds anything but the files of an interrupted creation."""
    if not is_local(uri) or not Path(uri).exists():
        return
    if not Path(uri).is_dir():
        raise NotALibrary(f"got {uri}, which is a file; a library is a folder: give one that is new or empty")
    names = sorted(
        entry.name for entry in Path(uri).iterdir() if not entry.name.startswith(".") and entry.name != TOWERS
    )
    foreign = [name for name in names if not (name.endswith(TABLE_SUFFIX) and name.startswith(OUR_TABLES))]
    if foreign:
        raise NotALibrary(f"got {uri}, which holds other things ({foreign[0]}); give a folder that is new or empty")


def _remains(uri: str) -> str | None:
    """Say what lies there that an interrupted creation never leaves: towers, rows, leases of other work; else None."""
    tables = Tables(uri)
    for name in (each for each in tables.names() if each.startswith(OUR_TABLES)):
        try:
            held = tables.has(name) and tables.count(name, other_than("name", CREATION) if name == "leases" else None)
        except LibraryDamaged:
            return f"its table {name} cannot be read"
        if held:
            return f"its table {name} has {held:,} rows"
    return "it carries towers" if TOWERS in entries_at(uri) else None


def _make_tables(uri: str, settings: Mapping[str, Any], fingerprint: Fingerprint) -> None:
    """Create all tables, those that an interrupted creation left out included; raises LibraryBusy or UnsafeStore."""
    if not is_local(uri):
        check_commits(uri)
    tables = Tables(uri)
    schemas = table_schemas(settings, fingerprint)
    try:
        tables.create("leases", schemas["leases"])
        with Lease(tables, CREATION, "another ingest", DEFAULT_LEASE) as lease:
            if tables.has("videos"):
                raise LibraryError(f"got {uri}, where another process just made a library; run again to use it")
            for name, schema in schemas.items():
                lease.check()
                create_table(tables, name, schema)
    except LeaseLost as error:  # of two that made the leases at the same moment the second's table counts
        raise LibraryBusy(f"got {uri}, where another process makes a library at this moment; run again") from error
