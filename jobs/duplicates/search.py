"""The search for near-duplicates of a library: candidate pairs by a few frames of each video, then their alignment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from kinodex.index.library import LibraryReader
from kinodex.index.rows import VideoRow
from kinodex.jobs.duplicates.alignment import Alignment, DuplicateRange, covered_s, shared_parts
from kinodex.jobs.duplicates.candidates import IN_MEMORY_FRAMES, Pair, pairs_by_index, pairs_in_memory
from kinodex.jobs.duplicates.timelines import Timeline, read_mean, read_timeline
from kinodex.jobs.errors import UsageError

MIN_S, EVERY_S = 5.0, 30.0
KEPT_TIMELINES = 64
Progress = Callable[[str, int, int], None]
"""Gets what is being done, and how many of how many are done."""


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Two videos that show the same: a time t of `a` is `speed * t + offset_s` of `b`, as a player shows times.

    Where something was cut out, put in or moved, the `ranges`, by time in `a`, have several offsets; those of the pair,
    its `score` (agreement of the changes, up to 1) and its `likeness` (mean cosine, less the library's mean) are of the
    part that explains most. `shared_s` is the time in `a` that the ranges cover, and shares are of each video.
    """

    a: VideoRow
    b: VideoRow
    offset_s: float
    speed: float
    ranges: tuple[DuplicateRange, ...]
    shared_s: float
    share_a: float
    share_b: float
    score: float
    likeness: float


def find_duplicates(
    library: LibraryReader,
    videos: Sequence[str] = (),
    *,
    min_s: float = MIN_S,
    every_s: float = EVERY_S,
    space: str | None = None,
    progress: Progress | None = None,
    in_memory_frames: int = IN_MEMORY_FRAMES,
) -> list[Duplicate]:
    """Find pairs of videos that share `min_s` seconds or more, the longest first; with `videos` those of these ids.

    One frame each `every_s` of a video looks for others, eight or more a video: a shared part in which no such frame of
    either video falls is not found. Raises UsageError for a number that is not more than 0 and for a video without
    frames, SpaceMismatch for one without vectors in the space.
    """
    for name, value in {"least seconds": min_s, "seconds between searched frames": every_s}.items():
        if not value > 0:
            raise UsageError(f"got {value:g} {name}; give more than 0")
    rows = {row.video_id: row for row in library.videos() if row.frames}
    without = next((video_id for video_id in videos if video_id not in rows), None)
    if without is not None:
        title = library.video(without).title
        raise UsageError(f"got {title}, which was imported as text and has no frames to compare; leave it out")
    if len(rows) < 2:
        return []
    tell = progress or (lambda what, done, of: None)
    read, pairs = _candidates(library, rows, set(videos) or set(rows), every_s, space, tell, in_memory_frames)
    found = []
    for number, (one, other) in enumerate(pairs, start=1):
        if parts := shared_parts(read(one), read(other), min_s):
            found.append(_duplicate(rows[one], rows[other], parts))
        tell("aligning pairs", number, len(pairs))
    longest = sorted(found, key=lambda each: (-each.shared_s, each.a.title, each.b.title))
    return [each for each in longest if each.shared_s >= min_s]


def _candidates(
    library: LibraryReader,
    rows: dict[str, VideoRow],
    chosen: set[str],
    every_s: float,
    space: str | None,
    tell: Progress,
    in_memory_frames: int,
) -> tuple[Callable[[str], Timeline], list[Pair]]:
    """Return a reader of timelines, and the pairs to align."""
    mean = read_mean(library, rows, space)
    searching = "searching frames of videos"
    if sum(row.frames for row in rows.values()) <= in_memory_frames:
        held = {video_id: read_timeline(library, video_id, space, mean) for video_id in sorted(rows)}
        pairs = pairs_in_memory(held, every_s, chosen, lambda number: tell(searching, number, len(held)))
        return held.__getitem__, pairs
    searched = [video_id for video_id in sorted(chosen) if video_id in rows]
    pairs = pairs_by_index(library, searched, every_s, space, lambda number: tell(searching, number, len(searched)))
    return lru_cache(KEPT_TIMELINES)(lambda video_id: read_timeline(library, video_id, space, mean)), pairs


def _duplicate(one: VideoRow, other: VideoRow, parts: Sequence[Alignment]) -> Duplicate:
    """Return the pair in the order of titles."""
    ranges = [each for part in parts for each in part.ranges]
    main = ranges[0]
    if (other.title, other.video_id) < (one.title, one.video_id):
        one, other = other, one
        ranges, main = [_turned(each) for each in ranges], _turned(main)
    ranges.sort(key=lambda each: (each.start_a_s, each.start_b_s))
    shared_s = covered_s((each.start_a_s, each.end_a_s) for each in ranges)
    return Duplicate(
        one,
        other,
        main.offset_s,
        main.speed,
        tuple(ranges),
        shared_s,
        _share(shared_s, one),
        _share(covered_s((each.start_b_s, each.end_b_s) for each in ranges), other),
        parts[0].agreement,
        parts[0].likeness,
    )


def _turned(each: DuplicateRange) -> DuplicateRange:
    """Return a range as that of the same pair the other way round."""
    speed, offset_s = 1 / each.speed, -each.offset_s / each.speed
    return DuplicateRange(each.start_b_s, each.end_b_s, each.start_a_s, each.end_a_s, offset_s, speed)


def _share(shared_s: float, row: VideoRow) -> float:
    return min(1.0, shared_s / row.duration_s) if row.duration_s > 0 else 1.0
