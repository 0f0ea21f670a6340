"""Match the videos of a benchmark to those of a library. A missing one is listed, never silently left out."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from index.rows import VideoRow
from jobs.benchmarks.parse_rows import csv_table, json_file
from jobs.benchmarks.sample import Missing, Sample
from jobs.errors import UsageError
from pipeline.sources.discover import VIDEO_SUFFIXES

URI_PARTS = 3


@dataclass(frozen=True, slots=True)
class VideoMatches:
    """The library's video ids by the benchmark's names, one or all of an episode, and the videos without a match."""

    videos: Mapping[str, tuple[str, ...]]
    missing: tuple[Missing, ...]


def match_videos(
    samples: Sequence[Sample], videos: Sequence[VideoRow], id_map: Mapping[str, str] | None, episodes: bool
) -> VideoMatches:
    """Find each video of the samples by its name in `id_map`, else by its own name.

    The names of a library's video are its id, its title, and the last one to three parts of its URI, with and without
    the file ending. `episodes`: if no video has a name, all whose names begin with it match, in order of title.
    """
    by_name: dict[str, dict[str, VideoRow]] = defaultdict(dict)
    by_prefix: dict[str, dict[str, VideoRow]] = defaultdict(dict)
    for row in videos:
        for name in _names(row):
            by_name[name][row.video_id] = row
            for prefix in _prefixes(name) if episodes else ():
                by_prefix[prefix][row.video_id] = row
    found: dict[str, tuple[str, ...]] = {}
    missing = []
    for video, questions in Counter(each.video for each in samples).items():
        name = (id_map or {}).get(video, video)
        same = list(by_name.get(_bare(name), {}).values())
        parts = sorted(by_prefix.get(name, {}).values(), key=lambda row: (row.title, row.video_id))
        if len(same) == 1 or (parts and not same):
            found[video] = tuple(row.video_id for row in same or parts)
        else:
            missing.append(Missing(video, _why(name, same), questions))
    return VideoMatches(found, tuple(missing))


def read_id_map(path: Path) -> dict[str, str]:
    """Read the library's names of videos: a JSON object, such as NExT-QA's `map_vid_vidorID.json`, or CSV.

    The CSV has two columns, the benchmark's name first. Raises `UsageError` for anything else.
    """
    if path.suffix.lower() == ".json":
        names = json_file(path)
        pairs = [list(pair) for pair in names.items()] if isinstance(names, dict) else []
    else:
        pairs = csv_table(path)
    wrong = next((pair for pair in pairs if len(pair) != 2 or not isinstance(pair[1], str | int)), None)
    if wrong is not None or not pairs:
        raise UsageError(
            f"{path} maps no names: got {wrong or 'nothing'}; give a JSON object of the benchmark's video names to "
            "the library's, or a CSV of two such columns"
        )
    return {str(name): str(other) for name, other in pairs}


def _names(row: VideoRow) -> set[str]:
    parts = [part for part in re.split(r"[/\\]", row.uri) if part]
    ends = ("/".join(parts[-count:]) for count in range(1, URI_PARTS + 1))
    return {row.video_id, *(_bare(name) for name in (row.title, *ends))}


def _bare(name: str) -> str:
    """Strip a video's file ending from a name."""
    stem, dot, ending = name.rpartition(".")
    return stem if f"{dot}{ending}".lower() in VIDEO_SUFFIXES else name


def _prefixes(name: str) -> Iterator[str]:
    """List the prefixes of a name up to each mark between its words: s05e06, s05e06_seg02, ..."""
    return (name[: mark.start()] for mark in re.finditer(r"[\W_]", name))


def _why(name: str, rows: Sequence[VideoRow]) -> str:
    if not rows:
        return f"no video of the library has the name {name}"
    return f"{len(rows)} videos of the library have the name {name}: {', '.join(row.uri for row in rows[:3])}"
