"""Ranges of a library that fit a text best, as the page shows them, and what may be said of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from kinodex.index.kinds import WORDS
from kinodex.index.library import LibraryReader
from kinodex.index.rows import VideoRow
from kinodex.jobs.export.moment_rule import watched
from kinodex.jobs.grounding.result import Grounding, as_json
from kinodex.web.reasons import excerpt, word_set

if TYPE_CHECKING:
    from kinodex.agent.videos.environment import Environment

EXACT_S = 1e-6


def grounding_view(
    library: LibraryReader, grounding: Grounding, environment: Environment | None = None
) -> dict[str, Any]:
    """Return a grounding as JSON (`grounding.result.as_json`), with the frames at both ends of each range, and its
    `play`.

    `begin_frame` and `end_frame` are the first and the last frame on screen, None without frames. Ranges that words
    were found in have these as `words`, if the `environment` is there to read them from. `videos` are the length and
    begin of each, for its time line.
    """
    value = as_json(grounding)
    for each in (*value["ranges"], *value["weaker"]):
        each |= _ends(library, each["video_id"], each["start_s"], each["end_s"])
        each["play"] = play_range(library.video(each["video_id"]), each["start_s"], each["end_s"])
        each["words"] = _words(environment, each, grounding.text) if each["found_in"] == WORDS else ""
    rows = {each.video.video_id: each.video for each in grounding.candidates}
    return value | {
        "videos": {
            video_id: {"title": row.title, "start_s": row.start_s, "duration_s": row.duration_s}
            for video_id, row in rows.items()
        },
    }


def _ends(library: LibraryReader, video_id: str, start_s: float, end_s: float) -> dict[str, int | None]:
    """Numbers of the frame on screen at the begin of a range, and of the last one before its end."""
    numbers, times_s = library.frame_times(video_id)
    if not len(numbers):
        return {"begin_frame": None, "end_frame": None}
    begin = max(int(np.searchsorted(times_s, start_s + EXACT_S, side="right")) - 1, 0)
    end = max(int(np.searchsorted(times_s, end_s - EXACT_S)) - 1, begin)
    return {"begin_frame": int(numbers[begin]), "end_frame": int(numbers[end])}


def _words(environment: Environment | None, found: Mapping[str, Any], text: str) -> str:
    """Join the lines said, written or described in a range, those with most words of a text first; cut short."""
    if environment is None:
        return ""
    wanted = word_set(text)
    lines = [
        line.text
        for line in environment.source.lines(found["video_id"])
        if line.start_s < found["end_s"] and line.end_s > found["start_s"]
    ]
    return excerpt(" · ".join(sorted(lines, key=lambda line: -len(word_set(line) & wanted))), text)


def play_range(video: VideoRow, start_s: float, end_s: float) -> dict[str, float]:
    """Return the range that a player plays of one that was found, by the rule of exports."""
    return dict(zip(("start_s", "end_s"), watched(video, start_s, end_s), strict=True))
