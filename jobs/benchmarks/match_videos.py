"""The videos of a library that a benchmark asks about. One that is not there is listed, never silently left out."""

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
    """`videos` has the library's video ids for every name of the benchmark that was found: one, or an episode's all."""

    videos: Mapping[str, tuple[str, ...]]
    missing: tuple[Missing, ...]


def match(
    items: Sequence[Sample], videos: Sequence[VideoRow], id_map: Mapping[str, str] | None, episodes: bool
) -> VideoMatches:
    """Finds each video of the items by what `id_map` calls it, else by its own name.

    A library's video goes by its id, its title, and the last one to three parts of its URI, with and without the file
    ending. `episodes`: where no video goes by a name, all whose names begin with it are it, in order of title.
    """
    known: dict[str, dict[str, VideoRow]] = defaultdict(dict)
    begun: dict[str, dict[str, VideoRow]] = defaultdict(dict)
    for row in videos:
        for name in _names(row):
            known[name][row.video_id] = row
            for beginning in _beginnings(name) if episodes else ():
                begun[beginning][row.video_id] = row
    found: dict[str, tuple[str, ...]] = {}
    missing = []
    for video, questions in Counter(item.video for item in items).items():
        wanted = (id_map or {}).get(video, video)
        same = list(known.get(_bare(wanted), {}).values())
        parts = sorted(begun.get(wanted, {}).values(), key=lambda row: (row.title, row.video_id))
        if len(same) == 1 or (parts and not same):
            found[video] = tuple(row.video_id for row in same or parts)
        else:
            missing.append(Missing(video, _why(wanted, same), questions))
    return VideoMatches(found, tuple(missing))


def read_id_map(path: Path) -> dict[str, str]:
    """A benchmark's names of videos to the library's: a JSON object, such as NExT-QA's `map_vid_vidorID.json`, or CSV.

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
    return {str(name): str(called) for name, called in pairs}


def _names(row: VideoRow) -> set[str]:
    parts = [part for part in re.split(r"[/\\]", row.uri) if part]
    ends = ("/".join(parts[-count:]) for count in range(1, URI_PARTS + 1))
    return {row.video_id, *(_bare(name) for name in (row.title, *ends))}


def _bare(name: str) -> str:
    """A name without its file ending, if it has one of a video's."""
    stem, dot, ending = name.rpartition(".")
    return stem if f"{dot}{ending}".lower() in VIDEO_SUFFIXES else name


def _beginnings(name: str) -> Iterator[str]:
    """What a name begins with, up to each mark between its words: s05e06, s05e06_seg02, s05e06_seg02_clip."""
    return (name[: mark.start()] for mark in re.finditer(r"[\W_]", name))


def _why(wanted: str, rows: Sequence[VideoRow]) -> str:
    if not rows:
        return f"no video of the library goes by {wanted}"
    return f"{len(rows)} videos of the library go by {wanted}: {', '.join(row.uri for row in rows[:3])}"
