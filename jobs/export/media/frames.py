"""`kinodex export frames`: the stored frames of moments as JPEGs, and a table of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from index.library_reader import LibraryReader
from index.redact import redact_uri
from index.rows import StoredFrame, VideoRow
from jobs.export.moments.moment import Moment, moment_facts
from jobs.export.target_folder import target_folder
from jobs.export.texts.names import distinct, file_stem, time_stem
from jobs.export.texts.tables import table_text

TABLE = "frames.csv"
COLUMNS = (
    "file",
    "video_id",
    "title",
    "uri",
    "frame_no",
    "time_s",
    "width_px",
    "height_px",
    "label",
    "score",
    "source",
)
FRAMES_A_READ = 64


def export_frames(
    library: LibraryReader, moments: Sequence[Moment], folder: Path, most: int | None = None
) -> list[dict[str, Any]]:
    """Write the frames of each moment, at most so many, and `frames.csv` into a folder that is new or empty.

    Returns the rows of the table: a frame of two moments is one file in two rows. Raises UsageError as `target_folder`.
    """
    videos = list({each.video.video_id: each.video for each in moments}.values())
    stems = dict(zip((each.video_id for each in videos), distinct(file_stem(it.title) for it in videos), strict=True))
    rows: list[dict[str, Any]] = []
    with target_folder(folder, {**moment_facts(moments), "most": most}, dict) as target:
        for moment, frame in frames_of(library, moments, most):
            name = f"frames/{stems[frame.video_id]}_{time_stem(frame.time_s)}_{frame.frame_no}.jpg"
            if not target.has(name):
                target.write_bytes(name, frame.jpeg)
            rows.append(_row(name, moment, frame))
        target.write_bytes(TABLE, table_text(COLUMNS, rows))
        target.finish("frames", TABLE)
    return rows


def frames_of(
    library: LibraryReader, moments: Sequence[Moment], most: int | None = None
) -> Iterator[tuple[Moment, StoredFrame]]:
    """Yield the stored frames within each moment, with their pictures, at most so many of each and evenly spread.

    Where none lies in a moment it is the one that is shown at its beginning; videos without pictures have none.
    """
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


def _row(name: str, moment: Moment, frame: StoredFrame) -> dict[str, Any]:
    video: VideoRow = moment.video
    values = (
        name,
        video.video_id,
        video.title,
        redact_uri(video.uri),
        frame.frame_no,
        frame.time_s,
        frame.width_px,
        frame.height_px,
        moment.label,
        moment.score,
        moment.source,
    )
    return dict(zip(COLUMNS, values, strict=True))
