"""The two clocks of a video: the time that a player shows, and presentation time, the timestamps of the file.

People, models, subtitle files and benchmarks speak of the time that a player shows, which is 0:00 at the beginning,
and so does every row that this room gives out or takes in. Tables hold presentation times: rows are turned from one
into the other where they are read and written. Above this room only what opens a video's file needs `presentation_s`
and `player_s`.

A transport or program stream counts from an arbitrary time, and players take for 0:00 when the first of its pictures,
sounds and texts begins. Other containers count from 0, and a picture that begins at 1.1 s is shown at 1.1 s; but a
file of which nothing begins for long was cut out of a longer one with its timestamps kept, and counts from there too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from kinodex.index.rows import VideoRow

if TYPE_CHECKING:
    import pyarrow as pa

ARBITRARY_SUFFIXES = frozenset({".ts", ".m2ts", ".mts", ".m2t", ".mpg", ".mpeg", ".vob", ".m2p", ".tod", ".mod"})
"""Endings of files whose timestamps begin anywhere."""
LATE_START_S = 10.0
"""No encoder delays everything by so much; a file that begins later was cut with its timestamps kept."""
DECIMALS = 9
"""Times that were moved are rounded to nanoseconds: equal ones then stay equal when they are moved there and back."""
TIMES = ("time_s", "start_s", "end_s", "fade_start_s", "fade_end_s")
"""Names of the columns of times, and of their fields in rows."""
Times = TypeVar("Times", float, NDArray[np.float64])


def first_zero_s(uri: str, earliest_s: float) -> float:
    """Presentation time in seconds of what a player shows as 0:00, for a file whose first stream begins then."""
    path = urlsplit(uri).path if "://" in uri else uri  # in the name of a local file # and ? are letters
    suffix = PurePosixPath(path).suffix.lower()
    return earliest_s if suffix in ARBITRARY_SUFFIXES or earliest_s >= LATE_START_S else 0.0


def presentation_s(video: VideoRow, player_s: float) -> float:
    """Presentation time in seconds, as the file has it, of a time that a player shows."""
    return moved_s(player_s, video.zero_s)


def player_s(video: VideoRow, presentation_s: float) -> float:
    """Time in seconds that a player shows at a presentation time of the file."""
    return moved_s(presentation_s, -video.zero_s)


def moved_s(times_s: Times, by_s: float) -> Times:
    """Return a time, or an array of times, moved by this many seconds; exactly the same where these are 0."""
    if not by_s:
        return times_s
    rounded = np.round(times_s + by_s, DECIMALS)  # one rounding for both, so that a time equals itself in an array
    return rounded if isinstance(times_s, np.ndarray) else float(rounded)


def moved(row: Mapping[str, Any], by_s: float) -> dict[str, Any]:
    """Return the values of a row with all its times, those of its words too, moved by this many seconds."""
    if not by_s:
        return dict(row)
    times: dict[str, Any] = {name: moved_s(row[name], by_s) for name in TIMES if row.get(name) is not None}
    if row.get("words"):
        times["words"] = [moved(word, by_s) for word in row["words"]]
    return {**row, **times}


def moved_table(rows: pa.Table, by_s: Mapping[str, float], names: Collection[str] = TIMES) -> pa.Table:
    """Return the rows with their times moved, each by the seconds of its video.

    Rows of other videos stay as they are.
    """
    import pyarrow as pa

    late = {video_id: seconds for video_id, seconds in by_s.items() if seconds}
    if not late:
        return rows
    ids = rows["video_id"].combine_chunks().dictionary_encode()
    of_row = np.array([late.get(id_, 0.0) for id_ in ids.dictionary.to_pylist()])[ids.indices.to_numpy()]
    for at, column in enumerate(rows.schema):
        if column.name in names:
            times_s = rows[column.name].to_numpy()
            shown_s = np.where(of_row == 0.0, times_s, np.round(times_s + of_row, DECIMALS))
            values = pa.array(shown_s, mask=rows[column.name].is_null().to_numpy())
            rows = rows.set_column(at, column, values.cast(column.type))
    return rows


def stored_range(zero_s: float, start_s: float | None, end_s: float | None) -> tuple[float | None, float | None]:
    """Presentation times of a range that a player shows, earlier by half a unit of rounding, for stored ones."""
    by_s = zero_s - 0.5 * 10.0**-DECIMALS if zero_s else 0.0
    return None if start_s is None else start_s + by_s, None if end_s is None else end_s + by_s
