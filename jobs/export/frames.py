"""`kinodex export frames`: the stored frames of moments as JPEGs, and a table of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kinodex.index.library import LibraryReader
from kinodex.index.rows import StoredFrame
from kinodex.jobs.export.file_names import time_stem, video_stems
from kinodex.jobs.export.moments import Moment, moment_facts
from kinodex.jobs.export.tables import table_text
from kinodex.jobs.export.target_folder import target_folder
from kinodex.redaction import redact_uri

TABLE = "frames.csv"
COLUMNS = (
    *("file", "video_id", "title", "uri", "frame_no", "time_s", "width_px", "height_px", "label", "score"),
    "source",
)
FRAMES_A_READ = 64


def export_frames(
    library: LibraryReader, moments: Sequence[Moment], folder: Path, most: int | None = None
) -> list[dict[str, Any]]:
    """Write the frames of each moment, at most this many, and `frames.csv` into a folder that is new or empty.

    Returns the rows of the table: a frame of two moments is one file in two rows.
    """
    stems = video_stems(moments)
    rows: list[dict[str, Any]] = []
    with target_folder(folder, {**moment_facts(moments), "most": most}, dict) as target:
        for moment, frame in frames_of(library, moments, most):
            name = f"frames/{stems[frame.video_id]}_{time_stem(frame.time_s)}_{frame.frame_no}.jpg"
            if not target.has(name):
                target.write_bytes(name, frame.jpeg)
            video = moment.video
            about = name, video.video_id, video.title, redact_uri(video.uri), frame.frame_no, frame.time_s
            facts = *about, frame.width_px, frame.height_px, moment.label, moment.score, moment.source
            rows.append(dict(zip(COLUMNS, facts, strict=True)))
        target.write_bytes(TABLE, table_text(COLUMNS, rows))
        target.finish("frames", TABLE)
    return rows


def frames_of(
    library: LibraryReader, moments: Sequence[Moment], most: int | None = None
) -> Iterator[tuple[Moment, StoredFrame]]:
    """Yield the stored frames within each moment, or the one shown when it begins; at most this many, evenly spread."""
    held: dict[str, tuple[Any, Any]] = {}
    for moment in moments:
        video = moment.video
        if not video.frames:
            continue
        if video.video_id not in held:
            held = {video.video_id: library.frame_times(video.video_id)}
        numbers = _numbers(*held[video.video_id], moment, most)
        for first in range(0, len(numbers), FRAMES_A_READ):
            for frame in library.frames(video.video_id, numbers[first : first + FRAMES_A_READ]):
                yield moment, frame


def _numbers(frame_no: Any, time_s: Any, moment: Moment, most: int | None) -> list[int]:
    first, last = np.searchsorted(time_s, [moment.start_s, moment.end_s])
    if first == last:
        return [int(frame_no[max(int(np.searchsorted(time_s, moment.start_s, side="right")) - 1, 0)])]
    found = frame_no[first:last]
    if most is not None and len(found) > most:
        found = found[((np.arange(most) + 0.5) * len(found) / most).astype(int)]
    return [int(number) for number in found]
