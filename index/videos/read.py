"""Reading one library's rows: a video by any of its names, its frames by number or time, its text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray

from index.errors import QueryError, TimeOutside, UnknownVideo
from index.rows import CaptionRow, FrameVectors, SegmentRow, StoredFrame, TranscriptRow, VideoRow
from index.store.filters import all_of, equal, of_frames, one_of, overlapping
from index.store.schema import FRAME_NO_BITS
from index.store.tables import Tables

LEAST_PREFIX = 4
EXACT_S = 1e-6
NAMES_SHOWN = 5


def complete_videos(tables: Tables, ids: Sequence[str] | None = None) -> dict[str, VideoRow]:
    """The complete ones of these videos, or all of the library, by id."""
    chosen = [] if ids is None else [one_of("video_id", ids)]
    rows = tables.rows("videos", all_of([*chosen, equal("state", "complete")])).to_pylist()
    return {row["video_id"]: VideoRow(**row) for row in rows}


def find_video(videos: Mapping[str, VideoRow], name: str) -> VideoRow:
    """The one video of that id, id prefix, title, file name or URI; raises UnknownVideo."""
    if name in videos:
        return videos[name]
    named = _going_by(videos, name)
    if not named and len(name) >= LEAST_PREFIX:
        named = [row for row in videos.values() if row.video_id.startswith(name)]
    if len(named) == 1:
        return named[0]
    if named:
        several = _listed([f"{row.title} ({row.video_id[:12]})" for row in named])
        raise UnknownVideo(f"got video {name!r}, which {len(named)} videos go by: {several}; give an id")
    if not videos:
        raise UnknownVideo(f"got video {name!r}, but the library holds no video yet; ingest some")
    titles = [row.title for row in videos.values()]
    near = get_close_matches(name, titles, n=NAMES_SHOWN, cutoff=0.3) or sorted(titles)
    raise UnknownVideo(f"got video {name!r}, which is none of the {len(videos)} here, such as {_listed(near)}")


def matching_videos(videos: Mapping[str, VideoRow], pattern: str) -> list[VideoRow]:
    """Videos whose title, or whose URI from its end, matches a glob: `holiday-*`, `2026/*.mp4`; by title.

    None where a video goes by just this name, such as `film [abc].mp4`: it is meant, not `film a.mp4`.
    """
    if _going_by(videos, pattern):
        return []
    found = [row for row in videos.values() if fnmatchcase(row.title, pattern) or PurePosixPath(row.uri).match(pattern)]
    return sorted(found, key=lambda row: (row.title, row.video_id))


def _going_by(videos: Mapping[str, VideoRow], name: str) -> list[VideoRow]:
    return [row for row in videos.values() if name in (row.title, row.uri, PurePosixPath(row.uri).name)]


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMES_SHOWN])
    return shown + (", ..." if len(names) > NAMES_SHOWN else "")


def vectors(tables: Tables, table: str, video: VideoRow) -> FrameVectors:
    rows = tables.rows(table, equal("video_id", video.video_id), ["frame_no", "time_s", "vector"])
    column = rows["vector"].combine_chunks()
    numbers = column.flatten().to_numpy().reshape(rows.num_rows, column.type.list_size)
    frame_no, once = np.unique(rows["frame_no"].to_numpy(), return_index=True)
    return FrameVectors(frame_no, rows["time_s"].to_numpy()[once], numbers[once])


def frames(tables: Tables, video: VideoRow, frame_nos: Sequence[int]) -> list[StoredFrame]:
    if not len(frame_nos):
        return []
    wanted = [int(number) for number in frame_nos]
    columns = ["video_id", "frame_no", "time_s", "width_px", "height_px", "jpeg"]
    possible = [number for number in wanted if 0 <= number < 1 << FRAME_NO_BITS]
    rows = tables.rows("frames", of_frames(video.video_id, possible), columns).to_pylist()
    stored = {row["frame_no"]: StoredFrame(**row) for row in rows}
    for number in wanted:
        if number not in stored:
            raise TimeOutside(f"got frame {number} of {video.title}, which has no such frame; ask for it by time")
    return [stored[number] for number in wanted]


def frames_at(tables: Tables, video: VideoRow, times_s: Sequence[float], mode: str) -> list[StoredFrame]:
    for time_s in times_s:
        if not video.start_s <= time_s < video.end_s:
            allowed = f"[{video.start_s:.3f}, {video.end_s:.3f})"
            raise TimeOutside(f"got {time_s:.3f} s of {video.title}, which covers {allowed} s; give a time in there")
    if times_s and not video.frames:
        raise TimeOutside(f"got {times_s[0]:.3f} s of {video.title}, which was imported as text and has no frames")
    rows = tables.rows("frames", equal("video_id", video.video_id), ["frame_no", "time_s"]).sort_by("time_s")
    numbers, stored_s = rows["frame_no"].to_numpy(), rows["time_s"].to_numpy()
    return frames(tables, video, [int(numbers[_position(stored_s, t, mode, video)]) for t in times_s])


def _position(stored_s: NDArray[np.float64], time_s: float, mode: str, video: VideoRow) -> int:
    """Which of the rising `stored_s` stands for `time_s`; of two equally near ones the earlier."""
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


def segments(tables: Tables, video: VideoRow, captions: Sequence[CaptionRow]) -> list[SegmentRow]:
    """See Library.segments. Captions that were imported need not be of these segments, so times tell."""
    written = {(each.start_s, each.end_s): (each.text, each.confidence, each.model) for each in captions}
    rows = tables.rows("segments", equal("video_id", video.video_id)).sort_by("segment_no")
    return [SegmentRow(*row.values(), *written.get((row["start_s"], row["end_s"]), ())) for row in rows.to_pylist()]


def transcript(
    tables: Tables, video: VideoRow, models: Sequence[str], start_s: float | None, end_s: float | None
) -> list[TranscriptRow]:
    """See Library.transcript; of speech only what these models heard."""
    where = all_of([equal("video_id", video.video_id), *overlapping(start_s, end_s)])
    rows = tables.rows("transcript", where).sort_by([("start_s", "ascending"), ("end_s", "ascending")])
    return [TranscriptRow(**row) for row in rows.to_pylist() if row["model"] in (None, *models)]
