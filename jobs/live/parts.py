"""Parts of a source that grows: where one begins, how far it goes, and the one that an earlier process wrote last."""

from __future__ import annotations

import hashlib
import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kinodex.index.clocks import first_zero_s
from kinodex.index.library import Library
from kinodex.index.metadata import GAP, LIVE_SOURCE, RECORDED_AT
from kinodex.index.rows import VideoRow
from kinodex.index.store.filters import equal
from kinodex.index.store.stored_digests import read_digests
from kinodex.index.videos.row_counts import expected_rows
from kinodex.jobs.live.source import LiveSource
from kinodex.pipeline.live.beats import Beat, is_live_address

CLOCK_STEP_S = 1.0
"""A change between the clock and the time since the machine started that was a step of the clock."""


@dataclass
class Part:
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

    def columns(self, live: LiveSource) -> dict[str, Any]:
        """Return the part's columns of its own in the library."""
        return {RECORDED_AT: self.recorded_at, LIVE_SOURCE: live.called, GAP: self.gap_s}

    def is_over(self, live: LiveSource) -> bool:
        """Return True for a part that is long enough, or in which the clock was set."""
        was_set = abs(clock_offset_s() - self.clock_s) > CLOCK_STEP_S
        is_long = self.row.duration_s >= live.part_s and not live.is_file
        return is_long or (was_set and is_live_address(live.address))


def known_part(library: Library, live: LiveSource, state: Mapping[str, Any]) -> Part | None:
    """Return the part that an earlier process of this name wrote last, by the state that it kept, if it still is
    there.
    """
    found = library.visible.videos([state.get("video_id", "")])
    if not found or state["source"] != live.uri:
        return None
    (row,) = found.values()
    row = replace(row, start_s=state["zero_s"] if live.is_file else 0.0)
    columns = library.metadata.of([row.video_id])[row.video_id]
    ours = equal("video_id", row.video_id)
    digests = {name: read_digests(library.tables, name, [ours]) for name in expected_rows(library.own_vectors)}
    numbers = library.frame_times(row.video_id)[0]
    return Part(
        row=row,
        recorded_at=columns["recorded_at"],
        zero_s=state["zero_s"],
        offset_s=state["offset_s"],
        first_number=state["first_number"],
        clock_s=clock_offset_s(),
        digests=digests,
        last_no=int(numbers[-1]) if len(numbers) else -1,
    )


def begin_part(
    library: Library,
    live: LiveSource,
    fps: float,
    before: Part | None,
    beat: Beat,
    began_at: float,
    offset_s: float,
    is_break: bool,
) -> Part:
    """Begin a part at a time of a run, after the one `before`; nothing of it is written yet."""
    recorded_at = datetime.fromtimestamp(began_at + offset_s, UTC)
    key = f"{live.uri}\n{live.called}\n{recorded_at.isoformat()}"
    facts = beat.metadata or (before.row if before is not None else None)
    assert facts is not None, "a run begins with them"
    gap_s = None
    if before is not None:
        since_s = (recorded_at - before.recorded_at).total_seconds() - before.row.duration_s
        gap_s = max(since_s, 0.0) if is_break else 0.0
    title = f"{live.called} {recorded_at:%Y-%m-%d %H:%M:%S}"
    row = VideoRow(
        video_id=hashlib.sha256(key.encode()).hexdigest()[:32],
        uri=live.uri,
        title=Path(live.address).stem if live.is_file else title,
        start_s=beat.zero_s if live.is_file else 0.0,
        duration_s=0.0,
        fps=facts.fps,
        width_px=facts.width_px,
        height_px=facts.height_px,
        codec=facts.codec,
        frames=0,
        segments=0,
        speech_lines=0,
        decode_errors=0,
        sample_fps=fps,
        space=library.space_name,
        state="complete",
        ingested_at=datetime.now(UTC),
        zero_s=first_zero_s(live.uri, beat.zero_s) if live.is_file else 0.0,
    )
    number = math.ceil(round(offset_s * fps, 6))
    return Part(row, recorded_at, beat.zero_s, offset_s, number, clock_offset_s(), {}, gap_s)


def runs_by_part(beats: Sequence[Beat], part: Part | None, live: LiveSource) -> Iterator[list[Beat]]:
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


def clock_offset_s() -> float:
    return time.time() - time.monotonic()
