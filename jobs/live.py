"""Watch a source that grows: its frames are rows of a library within seconds. `kinodex watch --live`.

An unbroken stretch of a source, of at most an hour, is one video that grows: a part. So an hour of a camera is one film
for search and for agents, and a day is 24. Each few seconds the new frames, their vectors and one segment are appended,
and then the part's own row is replaced, by which readers see them. All that is done under the lease of an ingest, which
is free in between: other ingests, other cameras and `kinodex maintain` have their turn. A process that dies in the
middle leaves rows that no row promises; the next sweep deletes them, and the next process goes on from the row.

What a process needs to go on is a row of `runs`: where it read, and the notices of standing queries that nobody took.
"""

from __future__ import annotations

import hashlib
import math
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from kinodex.index.clocks import first_zero_s, player_s
from kinodex.index.errors import LibraryBusy
from kinodex.index.library import Library
from kinodex.index.metadata import GAP, LIVE_SOURCE, RECORDED_AT
from kinodex.index.rows import FrameVectors, RunRow, SourceRow, VideoRow
from kinodex.index.spaces.embedders import ImageEmbedder
from kinodex.index.spaces.image_tower import ImageTower
from kinodex.index.spaces.model_names import BUILTIN_SPACE
from kinodex.index.store.filters import equal
from kinodex.index.store.indexes import DURING_RUN, clean, refresh
from kinodex.index.store.leases import awaited_lease
from kinodex.index.store.stored_digests import read_digests
from kinodex.index.sweep import sweep
from kinodex.index.videos.row_counts import expected_rows
from kinodex.jobs.errors import UsageError
from kinodex.jobs.ingest.config import IngestConfig
from kinodex.jobs.ingest.run import CLEAN_EVERY_S, LEASE
from kinodex.jobs.ingest.worker import embed_frames
from kinodex.jobs.library import batched
from kinodex.jobs.standing_queries import Sender, Standing, StandingQueries, check_queries
from kinodex.jobs.towers import begin_carrying, load_embedder, log_notes
from kinodex.pipeline.errors import PipelineError, PlaylistRefused
from kinodex.pipeline.fetch import FetchedVideo
from kinodex.pipeline.filesystems import is_remote, mount_of
from kinodex.pipeline.live.beats import Beat, Resume, is_live_address
from kinodex.pipeline.sample import Chunk, FrameRow, SampledFrame, SamplingSettings, frame_row
from kinodex.pipeline.sandbox import SandboxLimits, SandboxSampler
from kinodex.pipeline.segments import Segment
from kinodex.pipeline.source import Source
from kinodex.pipeline.stamps import stamp
from kinodex.redaction import redact_uri

KIND = "watch"
SCHEMES = ("http", "https", "rtsp", "rtsps")
OWNER = "kinodex watch"
LOOK_S = 0.25
CLOCK_STEP_S = 1.0
"""A change between the clock and the time since the machine started that was a step of the clock."""
REFRESH_EVERY_S = 60.0
WAITING_BEATS = 2000
"""Beats that wait while another run holds the library; then the source waits."""
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 10.0


@dataclass(frozen=True, slots=True)
class LiveSource:
    """A source that grows: a file, an HLS playlist's address or an RTSP address; its user and password stay in here.

    Its `name` is how parts are called and found again. Rows appear every `flush_s` seconds; nothing for `stall_s`
    seconds is a stall; a part lasts at most `part_s`.
    """

    address: str = field(repr=False)
    name: str = ""
    flush_s: float = 3.0
    stall_s: float = 15.0
    part_s: float = 3600.0

    @property
    def uri(self) -> str:
        """The address without what grants access to it."""
        return redact_uri(self.address) if is_remote(self.address) else str(Path(self.address).absolute())

    @property
    def called(self) -> str:
        return self.name or (self.uri if is_remote(self.address) else Path(self.address).name)

    @property
    def is_file(self) -> bool:
        return not is_remote(self.address)


@dataclass(frozen=True, slots=True)
class NewRows:
    """Rows that readers see now: `frames` new ones of a part, up to its end, and the part's columns."""

    video: VideoRow
    columns: Mapping[str, Any]
    frames: int
    is_first: bool
    """The part begins with them; its column `gap_s` is the seconds missing before it, None of a source's first."""
    notices: Sequence[dict[str, Any]] = ()


def watch_live(
    config: IngestConfig,
    live: LiveSource,
    uri: str,
    *,
    stop: Callable[[], bool] = lambda: False,
    on_rows: Callable[[NewRows], None] = lambda rows: None,
    on_wait: Callable[[str], None] = lambda reason: None,
    queries: StandingQueries | None = None,
) -> None:
    """Put the frames of a source into the library at `uri` as they come, until it ends or `stop` says so.

    A source that was read once and cannot be any more is opened again, after longer and longer pauses; `on_wait` gets
    the reasons. Raises a PipelineError for one that cannot be read at first, LibraryBusy for a name that is watched
    already, and as an ingest does.
    """
    if not live.is_file and live.address.partition("://")[0].lower() not in SCHEMES:
        raise UsageError(f"got {live.uri} to watch; give a local file, an HLS playlist (http) or an rtsp:// address")
    library = Library.open(uri) if Library.exists(uri) else None
    space = load_embedder(config.space, config.device, library)
    library = Library.open_or_create(uri, asdict(config.settings()), space.fingerprint)
    with ExitStack() as stack:
        stack.enter_context(library.lease(f"{KIND} {live.called}", OWNER))
        stack.enter_context(space.threads(1))
        carried = begin_carrying(library.uri, space.fingerprint, config.towers)
        with awaited_lease(library.tables, LEASE, OWNER, math.inf):
            sweep(library)
        log_notes(carried())
        writer = _Writer(library, live, config, space, on_rows, on_wait, queries)
        stack.callback(writer.close)
        _read_on(config, live, writer, stop, on_wait)


def _read_on(
    config: IngestConfig,
    live: LiveSource,
    writer: _Writer,
    stop: Callable[[], bool],
    on_wait: Callable[[str], None],
) -> None:
    """Read a source, and open a stream again whenever it ends or fails."""
    pause_s, said = SHORTEST_PAUSE_S, ""
    while not stop():
        reason, read = f"{live.uri}: the stream ended", writer.frames
        try:
            _read(config, live, writer, stop)
            if not is_live_address(live.address):
                writer.note_end()
                return
        except PipelineError as error:
            if writer.part is None or live.is_file or isinstance(error, PlaylistRefused):
                raise
            reason = str(error)
        is_new = writer.frames > read
        pause_s = SHORTEST_PAUSE_S if is_new else min(2 * pause_s, LONGEST_PAUSE_S)
        if (is_new or reason != said) and not stop():
            on_wait(f"{reason}; it is opened again")
        said, until = reason, time.monotonic() + pause_s
        while time.monotonic() < until and not stop():
            time.sleep(LOOK_S)


def _read(config: IngestConfig, live: LiveSource, writer: _Writer, stop: Callable[[], bool]) -> None:
    """Read a source until it ends or stops, and have its frames written every few seconds."""
    waiting: list[Beat] = []
    since, end = time.monotonic(), None
    with _beats(config, live, writer) as beats:
        while end is None and not stop():
            came: Beat | _End | None = None
            if len(waiting) < WAITING_BEATS:
                with suppress(queue.Empty):
                    came = beats.get(timeout=LOOK_S)
            else:
                time.sleep(LOOK_S)
            if isinstance(came, Beat):
                since = since if waiting else time.monotonic()
                waiting.append(came)
            elif came is not None:
                end = came
            if waiting and time.monotonic() - since >= live.flush_s:
                waiting, since = writer.write(waiting), time.monotonic()
            writer.send()
    while (waiting := writer.write(waiting)) and not stop():
        time.sleep(LOOK_S)
    if end is not None and end.error is not None:
        raise end.error


@dataclass(frozen=True, slots=True)
class _End:
    error: BaseException | None = None


@contextmanager
def _beats(config: IngestConfig, live: LiveSource, writer: _Writer) -> Iterator[queue.Queue[Beat | _End]]:
    """Read a source in a thread, and there in a child process: beats, and how it ended."""
    beats: queue.Queue[Beat | _End] = queue.Queue(WAITING_BEATS)
    source = Source(live.uri, live.called, timeout_s=live.stall_s)
    chunk = Chunk(FetchedVideo(source, live.address, "", 0))
    limits = SandboxLimits(math.inf, 0.0, 2 * live.stall_s + 30, config.video_memory_mb * 1_000_000)
    sampler, over = SandboxSampler(limits), threading.Event()
    resume = writer.resume()

    def read() -> None:
        end = _End()
        try:
            with closing(sampler.follow(chunk, writer.sampling, resume)) as found:
                for beat in found:
                    beats.put(beat)
                    if over.is_set():
                        return
        except BaseException as error:
            end = _End(error)
        beats.put(end)

    thread = threading.Thread(target=read, name="live", daemon=True)
    thread.start()
    try:
        yield beats
    finally:
        over.set()
        sampler.close()
        while thread.is_alive():
            with suppress(queue.Empty):  # it may wait for room
                beats.get(timeout=LOOK_S)


@dataclass
class _Part:
    """A part that grows: its row as it is stored, where it begins in its run, and the digests of its rows."""

    row: VideoRow
    recorded_at: datetime
    zero_s: float
    """Presentation time, in the source, of the run's time 0."""
    offset_s: float
    """Time in the run at which the part begins."""
    first_number: int
    clock_s: float
    """Of the clock at its beginning, less the time since the machine started."""
    digests: dict[str, Counter[str]] = field(default_factory=dict)
    gap_s: float | None = None
    last_no: int = -1


class _Writer:
    """Writes the parts of one source: their rows, their state, and what standing queries find in them."""

    def __init__(
        self,
        library: Library,
        live: LiveSource,
        config: IngestConfig,
        space: ImageEmbedder,
        on_rows: Callable[[NewRows], None],
        on_wait: Callable[[str], None],
        queries: StandingQueries | None,
    ) -> None:
        self._library, self._live, self._config, self._space = library, live, config, space
        self._on_rows, self._on_wait = on_rows, on_wait
        self.sampling: SamplingSettings = config.sampling(space.fingerprint.preprocess, space.device_type == "cuda")
        self.frames = 0
        self._run_id = hashlib.sha256(f"{KIND}\n{live.called}".encode()).hexdigest()[:16]
        self._began = datetime.now(UTC)
        self._sequence, self._is_busy = 0, False
        self._refreshed = self._cleaned = time.monotonic()
        before = next((run for run in library.ingest_log.runs() if run.run_id == self._run_id), None)
        self._before = dict(before.report) if before is not None else {}
        self.part = self._known_part()
        self._standing: Standing | None = None
        self._sender = Sender(queries.notify) if queries is not None and queries.notify else None
        if queries is not None:
            check_queries(library, queries)
            self._standing = Standing(library, live.called, queries)
            self._standing.take_over(self._before)
            self._look_back()

    def resume(self) -> Resume | None:
        """Where to go on in a source that can be read again."""
        part = self.part
        if part is None or is_live_address(self._live.address):
            return None
        return Resume(part.zero_s, part.offset_s + part.row.duration_s, self._sequence)

    def write(self, beats: Sequence[Beat]) -> list[Beat]:
        """Write what came, and say what standing queries find; returns what has to wait, while others write."""
        left = list(beats)
        for run in list(_runs(beats, self.part, self._live)):
            try:
                with awaited_lease(self._library.tables, LEASE, OWNER, 10.0) as lease:
                    grown = self._grow(run, lease.check)
                    self._tidy()
            except LibraryBusy as error:
                if not self._is_busy:
                    self._on_wait(f"{error}; what comes meanwhile is kept")
                self._is_busy = True
                return left
            self._is_busy = False
            del left[: len(run)]
            if grown is not None:
                self._tell(*grown)
        return left

    def send(self) -> None:
        """Send what is to be told, and forget what its receiver has taken."""
        if self._sender is None or self._standing is None:
            return
        self._sender.send(self._standing.unsent)
        self._forget_taken(self._sender, self._standing)

    def _forget_taken(self, sender: Sender, standing: Standing) -> None:
        done, problems = sender.ended()
        for problem in problems:
            self._on_wait(problem)
        if done:
            standing.unsent = [each for each in standing.unsent if each["id"] not in done]
            self._keep_state("running")

    def note_end(self) -> None:
        """Take note of a file that has ended, so that an ingest of it finds it known."""
        if self._live.is_file and self.part is not None:
            found, uri = stamp(Source(self._live.uri, self._live.called)), self._live.uri
            if found is not None:
                about = found.size_bytes, found.mark, datetime.now(UTC), mount_of(uri)
                self._library.ingest_log.add_sources([SourceRow(uri, self.part.row.video_id, *about)])

    def close(self) -> None:
        self.send()
        if self._sender is not None and self._standing is not None:
            self._sender.close()
            self._forget_taken(self._sender, self._standing)
        if self.part is not None:
            self._keep_state("done")
        refresh(self._library.tables, DURING_RUN)

    # Parts

    def _known_part(self) -> _Part | None:
        """The part that an earlier process of this name wrote last, if it still is there."""
        state = self._before
        found = self._library.visible.videos([state.get("video_id", "")])
        if not found or state["source"] != self._live.uri:
            return None
        (row,) = found.values()
        row = replace(row, start_s=state["zero_s"] if self._live.is_file else 0.0)
        columns = self._library.metadata.of([row.video_id])[row.video_id]
        ours = equal("video_id", row.video_id)
        names = expected_rows(self._library.vectors_table)
        digests = {name: read_digests(self._library.tables, name, [ours]) for name in names}
        numbers = self._library.vectors(row.video_id).frame_no
        self._sequence = state["sequence"]
        return _Part(
            row, columns["recorded_at"], state["zero_s"], state["offset_s"], state["first_number"], _clock_s(), digests,
            last_no=int(numbers[-1]) if len(numbers) else -1,
        )  # fmt: skip

    def _begin(self, beat: Beat, began_at: float, offset_s: float, is_break: bool) -> _Part:
        """Begin a part at a time of a run; nothing of it is written yet."""
        recorded_at = datetime.fromtimestamp(began_at + offset_s, UTC)
        key = f"{self._live.uri}\n{self._live.called}\n{recorded_at.isoformat()}"
        before = self.part
        facts = beat.metadata or (before.row if before is not None else None)
        assert facts is not None, "a run begins with them"
        gap_s = None
        if before is not None:
            since_s = (recorded_at - before.recorded_at).total_seconds() - before.row.duration_s
            gap_s = max(since_s, 0.0) if is_break else 0.0
        title = f"{self._live.called} {recorded_at:%Y-%m-%d %H:%M:%S}"
        row = VideoRow(
            video_id=hashlib.sha256(key.encode()).hexdigest()[:32],
            uri=self._live.uri,
            title=Path(self._live.address).stem if self._live.is_file else title,
            start_s=beat.zero_s if self._live.is_file else 0.0,
            duration_s=0.0,
            fps=facts.fps,
            width_px=facts.width_px,
            height_px=facts.height_px,
            codec=facts.codec,
            frames=0,
            segments=0,
            speech_lines=0,
            decode_errors=0,
            sample_fps=self._config.fps,
            space=self._library.space_name,
            state="complete",
            ingested_at=datetime.now(UTC),
            zero_s=first_zero_s(self._live.uri, beat.zero_s) if self._live.is_file else 0.0,
        )
        number = math.ceil(round(offset_s * self._config.fps, 6))
        return _Part(row, recorded_at, beat.zero_s, offset_s, number, _clock_s(), {}, gap_s)

    def _grow(
        self, run: Sequence[Beat], check: Callable[[], None]
    ) -> tuple[str, dict[str, Any], list[FrameRow], bool] | None:
        """Append the rows of beats that belong to one part, and show them; returns them as `_tell` takes them."""
        part, last = self.part, run[-1]
        began_at = min(beat.began_at for beat in run)
        is_break = run[0].is_break
        if part is None or is_break or part.zero_s != last.zero_s:
            part = self._begin(run[0], began_at, 0.0, True)
        elif self._is_over(part):
            if not is_live_address(self._live.address):
                began_at = part.recorded_at.timestamp() - part.offset_s
            part = self._begin(run[0], began_at, part.offset_s + part.row.duration_s, False)
        frames = [frame for beat in run for frame in beat.frames]
        shift_s = part.zero_s if self._live.is_file else -part.offset_s
        moved = [each._replace(number=each.number - part.first_number, time_s=each.time_s + shift_s) for each in frames]
        rows = [frame_row(*pair) for pair in zip(moved, self._embed(moved), strict=True)]
        row, is_new = part.row, not part.row.segments
        begin_s, end_s = row.end_s, last.time_s + shift_s
        if end_s <= begin_s and not rows:
            return None
        if is_new:
            self._library.metadata.write({row.video_id: self._columns(part)}, {row.video_id: row.title})
            if self._library.space_name == BUILTIN_SPACE and not (run[0].metadata and run[0].metadata.drawn):
                self._library.writer.note_undrawn([row.video_id])
        writer = self._library.writer
        digests = writer.add_frames({row.video_id: rows})
        window = Segment(begin_s, end_s, "window")
        digests["segments"] = writer.add_segments({row.video_id: [window]}, row.segments)
        for name, found in digests.items():
            part.digests.setdefault(name, Counter()).update(found)
        part.row = replace(
            row,
            duration_s=end_s - row.start_s,
            frames=row.frames + len(rows),
            segments=row.segments + 1,
            decode_errors=row.decode_errors + sum(beat.decode_errors for beat in run),
        )
        writer.show([part.row], check, {name: dict(found) for name, found in part.digests.items()})
        part.last_no = rows[-1].frame_no if rows else part.last_no
        self.part, self._sequence = part, last.sequence
        self.frames += len(rows)
        return row.video_id, self._columns(part), rows, is_new

    def _tell(self, video_id: str, columns: dict[str, Any], rows: Sequence[FrameRow], is_first: bool) -> None:
        """Say what readers see now; standing queries are looked at first, and may have a model look."""
        video, standing = self._library.video(video_id), self._standing
        notices: Sequence[dict[str, Any]] = ()
        if standing is not None and rows:
            times_s = np.array([player_s(video, row.time_s) for row in rows])
            numbers = np.array([row.frame_no for row in rows], np.int32)
            notices = standing.look(video, columns, FrameVectors(numbers, times_s, np.stack([r.vector for r in rows])))
        printed = standing if self._sender is None else None
        if printed is not None:
            notices = printed.unsent
        self._keep_state("running")
        self._on_rows(NewRows(video, columns, len(rows), is_first, notices))
        if printed is not None:  # they are told by now
            printed.unsent = []

    def _columns(self, part: _Part) -> dict[str, Any]:
        return {RECORDED_AT: part.recorded_at, LIVE_SOURCE: self._live.called, GAP: part.gap_s}

    def _is_over(self, part: _Part) -> bool:
        """True for a part that is long enough, or in which the clock was set."""
        was_set = abs(_clock_s() - part.clock_s) > CLOCK_STEP_S
        is_long = part.row.duration_s >= self._live.part_s and not self._live.is_file
        return is_long or (was_set and is_live_address(self._live.address))

    def _embed(self, frames: Sequence[SampledFrame]) -> list[Any]:
        size = self.sampling.batch
        filled = 0 if isinstance(self._space, ImageTower) else size  # as in an ingest
        return [vector for some in batched(frames, size) for vector in embed_frames(some, self._space.embed, filled)]

    def _tidy(self) -> None:
        now = time.monotonic()
        if now - self._refreshed > REFRESH_EVERY_S:
            refresh(self._library.tables, DURING_RUN)
            self._refreshed = now
        if now - self._cleaned > CLEAN_EVERY_S:
            clean(self._library.tables, DURING_RUN)
            self._cleaned = now

    # State and standing queries

    def _keep_state(self, state: str) -> None:
        part = self.part
        assert part is not None
        before: dict[str, Any] = {name: self._before[name] for name in ("open", "unsent") if name in self._before}
        report = {
            "source": self._live.uri,
            "name": self._live.called,
            "video_id": part.row.video_id,
            "zero_s": part.zero_s,
            "offset_s": part.offset_s,
            "first_number": part.first_number,
            "sequence": self._sequence,
            "looked_to": [part.row.video_id, part.last_no],
            **before,
            **(self._standing.state() if self._standing is not None else {}),
        }
        ended = None if state == "running" else datetime.now(UTC)
        self._library.ingest_log.add_run(RunRow(self._run_id, KIND, state, self._began, ended, report))

    def _look_back(self) -> None:
        """Look at frames that were stored just before an earlier process died, which it did not look at."""
        video_id, last_no = self._before.get("looked_to", ["", -1])
        part = self.part
        if self._standing is None or part is None or self._before.get("open") is None:
            return
        held = self._library.vectors(part.row.video_id)
        new = held.frame_no > (last_no if video_id == part.row.video_id else -1)
        if new.any():
            found = FrameVectors(held.frame_no[new], held.time_s[new], held.vectors[new])
            self._standing.look(self._library.video(part.row.video_id), self._columns(part), found)
            self._keep_state("running")


def _runs(beats: Sequence[Beat], part: _Part | None, live: LiveSource) -> Iterator[list[Beat]]:
    """Group beats by the parts that they belong to: by run, and where a part is long enough."""
    group: list[Beat] = []
    begin_s = part.offset_s if part is not None else 0.0
    for beat in beats:
        if group and (beat.is_break or (not live.is_file and group[-1].time_s - begin_s >= live.part_s)):
            yield group
            begin_s = 0.0 if beat.is_break else group[-1].time_s
            group = []
        group.append(beat)
    if group:
        yield group


def _clock_s() -> float:
    return time.time() - time.monotonic()
