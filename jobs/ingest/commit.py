"""Commit of videos: from chunks that were read to rows that readers of the library see, many videos at once."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from kinodex.index.clocks import first_zero_s
from kinodex.index.errors import MetadataConflict
from kinodex.index.library import Library
from kinodex.index.rows import FailureRow, SourceRow, VideoRow
from kinodex.jobs.addresses.moved_files import READING_STAGES, settle
from kinodex.jobs.ingest.messages import ChunkRead
from kinodex.jobs.ingest.reports import SourceOutcome, State, Tally
from kinodex.pipeline.decoding.tags import OTHER_STREAMS
from kinodex.pipeline.fetch import FetchedVideo
from kinodex.pipeline.filesystems import is_remote, mount_of
from kinodex.pipeline.sample import IngestSettings
from kinodex.pipeline.segments import Segment, find_segments
from kinodex.pipeline.source import Source
from kinodex.pipeline.sources import download_info
from kinodex.pipeline.subtitles.lines import Line

VIDEOS_AT_ONCE, MOST_AT_ONCE = 32, 500
SHORTEST_WAIT_S, LONGEST_WAIT_S = 1.0, 3.0
"""Half of a commit of 32 videos is the same for 500, and every commit makes the next look at a table slower.

So there is no more than one a second while fewer than 500 wait, and less often where fewer than 32 do.
"""


@dataclass(frozen=True, slots=True)
class ReadVideo:
    """Video of which all frames and vectors are written, ready to be shown to readers."""

    fetched: FetchedVideo
    row: VideoRow
    segments: tuple[Segment, ...]
    speech: tuple[Line, ...]
    problem: str | None
    digests: Mapping[str, int]
    """Of frames and vectors, by table."""
    """True if kinodex drew it."""
    tags: Mapping[str, Any] = field(default_factory=dict)
    """Columns of metadata that its file fills."""


def join_chunks(chunks: Sequence[ChunkRead], settings: IngestSettings, space: str) -> ReadVideo:
    """Join the chunks of a video, in order."""
    fetched, first, last = chunks[0].chunk.video, chunks[0].summary, chunks[-1].summary
    with_frames = [chunk for chunk in chunks if len(chunk.times_s)]
    times_s = np.concatenate([chunk.times_s for chunk in with_frames]).tolist()
    segments = tuple(find_segments(times_s, _distances(with_frames), last.end_s, settings.window_s))
    source, metadata = fetched.source, first.metadata
    zero_s = first_zero_s(source.uri, min(metadata.earliest_s, first.start_s))
    lines = [  # those of sidecars count from where a player starts
        replace(line, start_s=line.start_s + zero_s, end_s=line.end_s + zero_s) if line.source == "sidecar" else line
        for line in first.speech
    ]
    speech = tuple(sorted(lines, key=lambda line: (line.start_s, line.end_s)))
    row = VideoRow(
        video_id=fetched.video_id,
        uri=source.uri,
        title=source.title,
        start_s=first.start_s,
        duration_s=last.end_s - first.start_s,
        fps=metadata.fps,
        width_px=metadata.width_px,
        height_px=metadata.height_px,
        codec=metadata.codec,
        frames=len(times_s),
        segments=len(segments),
        speech_lines=len(speech),
        decode_errors=sum(chunk.summary.decode_errors for chunk in chunks),
        sample_fps=settings.fps,
        space=space,
        state="complete",
        ingested_at=datetime.now(UTC),
        zero_s=zero_s,
    )
    digests: Counter[str] = Counter()
    for chunk in chunks:
        digests.update(chunk.digests)
    problem = "; ".join(first.subtitle_errors) or None
    return ReadVideo(fetched, row, segments, speech, problem, digests, metadata.tags)


def _distances(chunks: Sequence[ChunkRead]) -> list[float]:
    """Cosine distances of all neighbouring frames, also across the borders of chunks."""
    distances: list[float] = []
    for number, chunk in enumerate(chunks):
        if number:
            before, after = chunks[number - 1].ends[-1].astype(np.float64), chunk.ends[0].astype(np.float64)
            distances.append(1.0 - float(before @ after))
        distances += chunk.distances.tolist()
    return distances


@dataclass
class VideoCommitter:
    """Collects the outcomes of sources and writes them, dozens of videos a commit.

    A source that carries its stamp is known to the next run. `check` raises once the run may not show videos any more.
    """

    library: Library
    clock: Callable[[], float] = time.monotonic
    check: Callable[[], None] = lambda: None
    tally: Tally = field(default_factory=lambda: Tally())
    _videos: list[ReadVideo] = field(default_factory=list)
    _sources: list[SourceRow] = field(default_factory=list)
    _readable: list[str] = field(default_factory=list)
    _failures: list[FailureRow] = field(default_factory=list)
    _found: list[FetchedVideo] = field(default_factory=list)
    """Sources of videos that the library holds, until it is known if the videos moved there."""
    _flushed: float = field(init=False)

    def __post_init__(self) -> None:
        self._flushed = self.clock()

    def add(self, video: ReadVideo) -> None:
        self._videos.append(video)

    def already_there(self, fetched: FetchedVideo) -> None:
        """Record a source whose video the library holds."""
        self._readable.append(fetched.source.uri)
        self._remember(fetched.source, fetched.video_id)
        self._found.append(fetched)

    def fail(self, source: Source, stage: str, error_class: str, message: str) -> None:
        self._failures.append(_failure(source, stage, error_class, message))
        if stage != "fetch":  # what could not be fetched is tried again
            self._remember(source, "")
        self._record(source, "failed", problem=message, error_class=error_class)

    @property
    def failed(self) -> int:
        return self.tally.states["failed"]

    @property
    def is_due(self) -> bool:
        """True if enough waits to be written, or has waited long enough."""
        videos, waited_s = len(self._videos), self.clock() - self._flushed
        if videos >= VIDEOS_AT_ONCE:
            return videos >= MOST_AT_ONCE or waited_s > SHORTEST_WAIT_S
        return waited_s > LONGEST_WAIT_S and bool(videos or self._found or self._sources or self._failures)

    def flush(self, *, is_last: bool = False) -> tuple[list[ReadVideo], list[ReadVideo]]:
        """Write all that waits; returns the videos that are complete now, and those that have to be read again."""
        videos, self._videos = self._videos, []
        rejected: tuple[str, ...] = ()
        if videos:
            digests: dict[str, Counter[str]] = defaultdict(Counter)
            for video in videos:
                for name, digest in video.digests.items():
                    digests[name][video.row.video_id] = digest
            writer = self.library.writer
            digests["segments"] = writer.add_segments({video.row.video_id: video.segments for video in videos})
            digests["speech"] = writer.add_speech(
                {video.row.video_id: video.speech for video in videos if video.speech}
            )
            self._write_tags(videos)
            rejected = writer.complete([video.row for video in videos], self.check, digests)
        complete = [video for video in videos if video.row.video_id not in rejected]
        for video in complete:
            self._record_complete(video)
        if self._readable:
            self.library.ingest_log.clear_failures(self._readable, READING_STAGES)
        if complete:
            self.library.ingest_log.clear_failures([video.row.uri for video in complete])
        if folders := _folders([*self._readable, *(video.row.uri for video in complete)]):
            self.library.ingest_log.clear_failures(folders, READING_STAGES)  # they could be listed
        if self._failures:
            self.library.ingest_log.add_failures(self._failures)
        if self._sources:
            self.library.ingest_log.add_sources(self._sources)
        self._sources, self._readable, self._failures = [], [], []
        self._settle(is_last)
        self._flushed = self.clock()
        return complete, [video for video in videos if video.row.video_id in rejected]

    def _write_tags(self, videos: Sequence[ReadVideo]) -> None:
        """Set the columns that files fill. Values that do not fit the library's columns are failures of that stage."""
        tags = {video.row.video_id: {**video.tags, **download_info(video.row.uri)} for video in videos}
        if not any(tags.values()):
            return
        names = {video.row.video_id: video.row.title for video in videos}
        try:
            self.library.metadata.write(tags, names)
        except MetadataConflict:
            for video in videos:
                try:
                    self.library.metadata.write({video.row.video_id: tags[video.row.video_id]}, names)
                except MetadataConflict as error:
                    self._failures.append(_failure(video.fetched.source, "metadata", type(error).__name__, str(error)))

    def _settle(self, is_last: bool) -> None:
        if not self._found:
            return
        settled = settle(self.library, self._found, self.check, is_last=is_last)
        for each in self._found:
            if each not in settled.waiting:
                old = settled.moved_from.get(each.source.uri)
                state: State = "already there" if old is None else "moved"
                self._record(each.source, state, video_id=each.video_id, moved_from=old)
        self._found = settled.waiting

    def _record_complete(self, video: ReadVideo) -> None:
        source, row = video.fetched.source, video.row
        if video.problem:
            self._failures.append(_failure(source, "subtitles", "SubtitleError", video.problem))
        self._remember(source, row.video_id)
        facts = {name: getattr(row, name) for name in ("video_id", "frames", "duration_s", "decode_errors")}
        others = video.tags.get(OTHER_STREAMS)
        left_out = f"of its video streams one is indexed, and not {others}" if others else None
        self._record(source, "indexed", **facts, problem="; ".join(filter(None, [video.problem, left_out])) or None)

    def _remember(self, source: Source, video_id: str) -> None:
        stamp, now, mount = source.stamp, datetime.now(UTC), mount_of(source.uri)
        if stamp is not None or video_id:
            size_bytes, mark = (None, "") if stamp is None else (stamp.size_bytes, stamp.mark)
            self._sources.append(SourceRow(source.uri, video_id, size_bytes, mark, now, mount))

    def _record(self, source: Source, state: State, **facts: Any) -> None:
        size_bytes = source.stamp.size_bytes if source.stamp is not None else 0
        self.tally.add(SourceOutcome(source.uri, source.title, state, **facts), size_bytes)


def _folders(uris: Iterable[str]) -> list[str]:
    """List the local folders that these files lie in, however deep."""
    return sorted({str(each) for uri in uris if not is_remote(uri) for each in PurePosixPath(uri).parents})


def _failure(source: Source, stage: str, error_class: str, message: str) -> FailureRow:
    return FailureRow(source.uri, stage, error_class, message, 1, datetime.now(UTC))
