"""Videos of a library by the names that a benchmark has for them.

A video that the library lacks is listed, never silently left out.
"""

from __future__ import annotations

import re
import string
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from kinodex.index.rows import SegmentRow, VideoRow
from kinodex.index.text import composed
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.items import Item, Problem, Target
from kinodex.jobs.eval.row_files import csv_table, json_file
from kinodex.pipeline.sources import VIDEO_SUFFIXES

OWN = ("own", "own-open")
"""Benchmarks of a user's own file."""
OWN_NAMED = 3
"""The videos of a user's own file that an error names."""
URI_PARTS = 3


@dataclass(frozen=True, slots=True)
class MissingVideo:
    """A video of a benchmark that the library lacks, the reason, and the number of its questions, all left out."""

    video: str
    why: str
    questions: int


@dataclass(frozen=True, slots=True)
class VideoMatches:
    """The library's video ids by the benchmark's names, one or all of an episode, and the videos without a match.

    Names in `ambiguous` are among the missing, because several videos of the library have them.
    """

    videos: Mapping[str, tuple[str, ...]]
    missing: tuple[MissingVideo, ...]
    ambiguous: frozenset[str] = frozenset()


def match_videos(
    items: Sequence[Item], videos: Sequence[VideoRow], id_map: Mapping[str, str] | None, episodes: bool
) -> VideoMatches:
    """Find each video of the items by its name in `id_map`, else by its own name; see `match_names`."""
    return match_names(Counter(each.video for each in items), videos, id_map, episodes)


def match_names(
    names: Mapping[str, int], videos: Sequence[VideoRow], id_map: Mapping[str, str] | None, episodes: bool = False
) -> VideoMatches:
    """Find the videos of these names, each with the number of questions about it, by `id_map` or by the name itself.

    The names of a library's video are its id, the first digits of it (at least 4), its title, and the last one to three
    parts of its URI, with and without the file ending. `episodes`: a name that no video has stands for all whose names
    begin with it, in order of title.
    """
    mapped = {composed(name): other for name, other in (id_map or {}).items()}
    by_name: dict[str, dict[str, VideoRow]] = defaultdict(dict)
    by_prefix: dict[str, dict[str, VideoRow]] = defaultdict(dict)
    for row in videos:
        places = [part for part in re.split(r"[/\\]", row.uri) if part]
        ends = ("/".join(places[-count:]) for count in range(1, URI_PARTS + 1))
        for name in {row.video_id, *(_bare(composed(name)) for name in (row.title, *ends))}:
            by_name[name][row.video_id] = row
            for mark in re.finditer(r"[\W_]", name) if episodes else ():  # s05e06, s05e06_seg02, ...
                by_prefix[name[: mark.start()]][row.video_id] = row
    found: dict[str, tuple[str, ...]] = {}
    missing: list[MissingVideo] = []
    ambiguous: set[str] = set()
    for video, questions in names.items():
        name = composed(mapped.get(composed(video), video))
        same = list(by_name.get(_bare(name), {}).values())
        if not same and len(name) >= 4 and set(name) <= set(string.hexdigits):
            same = [row for row in videos if row.video_id.startswith(name)]
        parts = sorted(by_prefix.get(name, {}).values(), key=lambda row: (by_number(row.title), row.video_id))
        if len(same) == 1 or (parts and not same):
            found[video] = tuple(row.video_id for row in same or parts)
        else:
            why = f"no video of the library has the name {name}"
            if same:
                uris = ", ".join(row.uri for row in same[:3])
                why = f"{len(same)} videos of the library have the name {name}: {uris}"
            missing.append(MissingVideo(video, why, questions))
            ambiguous |= {video} if same else set()
    return VideoMatches(found, tuple(missing), frozenset(ambiguous))


def with_nearest(missing: MissingVideo, videos: Sequence[VideoRow]) -> str:
    """Return the reason why a video is missing, and the titles that come nearest to its name."""
    name, titles = composed(missing.video), {row.title for row in videos}
    if _bare(name) in titles:  # of several videos
        return missing.why
    near = get_close_matches(_bare(name), titles, n=3, cutoff=0.4)
    return f"{missing.why}; the nearest are {', '.join(near)}" if near else missing.why


def check_own(names: VideoMatches, benchmark: str, videos: Sequence[VideoRow]) -> None:
    """Raise `UsageError` for a video that a user's own file names and the library lacks; others miss some for good."""
    if benchmark in OWN and names.missing:
        missing = "; ".join(f"{each.video}: {with_nearest(each, videos)}" for each in names.missing[:OWN_NAMED])
        more = f", and {len(names.missing) - OWN_NAMED:,} more" if len(names.missing) > OWN_NAMED else ""
        raise UsageError(f"{missing}{more}; write a video's title, file name or id, or ingest it")


def by_number(name: str) -> list[int | str]:
    """Return the key by which names with numbers are sorted: "part 9" before "part 10"."""
    return [int(part) if place % 2 else part for place, part in enumerate(re.split(r"(\d{1,18})", name))]


def read_id_map(path: Path) -> dict[str, str]:
    """Read the library's names of videos: a JSON object, such as NExT-QA's `map_vid_vidorID.json`, or a CSV of two."""
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
    names = {str(name): str(other) for name, other in pairs}
    twice = next((name for name, other in pairs if names[str(name)] != str(other)), None)
    if twice is not None:
        raise UsageError(f"{path} maps {twice} to several names; leave one of them")
    return names


def _bare(name: str) -> str:
    """Strip a video's file ending from a name."""
    stem, dot, ending = name.rpartition(".")
    return stem if f"{dot}{ending}".lower() in VIDEO_SUFFIXES else name


def complete_items(
    items: Sequence[Item],
    video_ids: Mapping[str, Sequence[str]],
    rows: Mapping[str, VideoRow],
    id_map: Mapping[str, str] | None,
    segments: Callable[[str], Sequence[SegmentRow]],
) -> tuple[tuple[Item, ...], tuple[Problem, ...]]:
    """Complete items with the library's lengths and ids of clips, and note the evidence that lies outside of its video.

    `video_ids` are the library's videos of each item, `rows` all of its videos by id, `segments` gives those of one.
    """
    clips = [replace(each, video=each.truth.clip) for each in items if each.truth.clip is not None]
    found = match_videos(clips, list(rows.values()), id_map, episodes=False).videos
    ids = {name: matched[0] for name, matched in found.items()}
    named = {video for item in clips for video in video_ids[item.item_id]}
    places = {(video, row.clip_name): row for video in named for row in segments(video) if row.clip_name}
    completed: list[Item] = []
    problems: list[Problem] = []
    for item in items:
        videos = [rows[each] for each in video_ids[item.item_id]]
        truth = replace(item.truth, clip=ids.get(item.truth.clip or "", item.truth.clip))
        for video in videos:
            if (place := places.get((video.video_id, item.truth.clip or ""))) is not None:
                truth = _on_time_line(item.truth, place)
        # The evidence is of the clip, or of the only video; else the benchmark does not tell, or the library lacks it.
        shown = [each for each in videos if each.video_id == truth.clip or (truth.clip is None and len(videos) == 1)]
        problems += [
            Problem(
                f"question {item.item_id}",
                f"evidence: got {start_s:g} s to {end_s:g} s, and {video.title} in the library lasts from "
                f"{video.start_s:g} s to {video.end_s:g} s as a player shows it; the question is kept",
            )
            for video in shown
            for start_s, end_s in truth.evidence
            if not (start_s < video.end_s and video.start_s < end_s)
        ]
        duration_s = item.duration_s or sum(each.duration_s for each in videos)
        completed.append(replace(item, duration_s=duration_s, truth=truth))
    return tuple(completed), tuple(problems)


def _on_time_line(truth: Target, clip: SegmentRow) -> Target:
    """Return a truth about a clip in the time of its episode."""
    evidence = tuple((start_s + clip.start_s, end_s + clip.start_s) for start_s, end_s in truth.evidence)
    return replace(truth, evidence=evidence, clip=clip.video_id, clip_s=(clip.start_s, clip.end_s))
