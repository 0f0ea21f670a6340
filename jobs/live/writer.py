"""Writer of the parts of a source: their rows, their state, and what standing queries find in them."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from kinodex.index.clocks import player_s
from kinodex.index.errors import LibraryBusy
from kinodex.index.library import Library
from kinodex.index.rows import FrameVectors, RunRow, SourceRow
from kinodex.index.spaces.embedders import ImageEmbedder
from kinodex.index.spaces.image_tower import ImageTower
from kinodex.index.store.indexes import DURING_RUN, clean, refresh
from kinodex.index.store.leases import awaited_lease
from kinodex.jobs.ingest.config import IngestConfig
from kinodex.jobs.ingest.refresh import CLEAN_EVERY_S
from kinodex.jobs.ingest.run_rows import LEASE
from kinodex.jobs.ingest.worker import embed_frames
from kinodex.jobs.library import batched
from kinodex.jobs.live.parts import Part, begin_part, known_part, runs_by_part
from kinodex.jobs.live.source import LiveSource, NewRows
from kinodex.jobs.notices import Sender
from kinodex.jobs.standing_queries import Standing, StandingQueries, check_queries
from kinodex.pipeline.filesystems import mount_of
from kinodex.pipeline.live.beats import Beat, Resume, is_live_address
from kinodex.pipeline.sample import FrameRow, SampledFrame, SamplingSettings, frame_row
from kinodex.pipeline.segments import Segment
from kinodex.pipeline.source import Source
from kinodex.pipeline.stamps import stamp

KIND = "watch"

OWNER = "kinodex watch"

REFRESH_EVERY_S = 60.0


class Writer:
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
        self.part = known_part(library, live, self._before)
        if self.part is not None:
            self._sequence = self._before["sequence"]
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
        for run in list(runs_by_part(beats, self.part, self._live)):
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

    def _begin(self, beat: Beat, began_at: float, offset_s: float, is_break: bool) -> Part:
        return begin_part(self._library, self._live, self._config.fps, self.part, beat, began_at, offset_s, is_break)

    def _grow(
        self, run: Sequence[Beat], check: Callable[[], None]
    ) -> tuple[str, dict[str, Any], list[FrameRow], bool] | None:
        """Append the rows of beats that belong to one part, and show them; returns them as `_tell` takes them."""
        part, last = self.part, run[-1]
        began_at = min(beat.began_at for beat in run)
        is_break = run[0].is_break
        if part is None or is_break or part.zero_s != last.zero_s:
            part = self._begin(run[0], began_at, 0.0, True)
        elif part.is_over(self._live):
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
            self._library.metadata.write({row.video_id: part.columns(self._live)}, {row.video_id: row.title})
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
        return row.video_id, part.columns(self._live), rows, is_new

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
        if printed is not None:  # the receiver has them already
            printed.unsent = []

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
            self._standing.look(self._library.video(part.row.video_id), part.columns(self._live), found)
            self._keep_state("running")
