"""Ranges of a library in which something happens, as the page shows them; or that it happens nowhere, and why.

The environment is made for each search: what was added to the library since is found, and the vectors of many videos do
not stay in memory. What stays is the vectors of texts, because each search compares with the same everyday ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from agent.environment import Environment
from agent.retrieval.calibration import calibrate
from agent.retrieval.line_matches import AnchorsFrom
from index.embedding.space import Fingerprint
from index.errors import QueryError
from index.library import Library
from index.library_reader import LibraryReader
from jobs.errors import UsageError
from jobs.ground.ground import MOST, Grounding, as_json, ground
from jobs.viewer.search.reasons import WORD, excerpt
from jobs.viewer.search.request import LONGEST_TEXT, whole_number
from jobs.viewer.search.text_towers import TextTowers

MOST_RANGES = 50
TEXTS_KEPT = 512
WORDS = "words"
EXACT_S = 1e-6


@dataclass(frozen=True, slots=True)
class GroundRequest:
    """A search for the ranges of a text, in one video (by id, title or path) or all."""

    text: str
    video: str | None = None
    evidence_from: AnchorsFrom = "both"
    most: int = MOST


def read_ground_request(query: Mapping[str, str]) -> GroundRequest:
    """Read such a search from a query string; raises QueryError or UsageError for one that makes no sense."""
    text, kind, most = query.get("text", ""), query.get("in") or "both", query.get("most") or str(MOST)
    if not text.strip():
        raise QueryError("the text is empty; say in words what happens")
    if len(text) > LONGEST_TEXT:
        raise QueryError(f"got a text of {len(text)} characters; give at most {LONGEST_TEXT}")
    evidence_from: AnchorsFrom | None = next((each for each in get_args(AnchorsFrom) if each == kind), None)
    if evidence_from is None:
        raise UsageError(f"got in={kind!r}; it is one of {', '.join(get_args(AnchorsFrom))}")
    count = whole_number(most, "most", f"give a number of ranges from 1 to {MOST_RANGES}", 1, MOST_RANGES)
    return GroundRequest(text, query.get("video") or None, evidence_from, count)


class Groundings:
    """Searches for ranges, in libraries that they open for themselves; for one thread."""

    def __init__(self, towers: TextTowers) -> None:
        self._towers = towers
        self._libraries: dict[str, Library] = {}
        self._embed = lru_cache(TEXTS_KEPT)(self._embedded)

    def ground(self, uri: str, space: Fingerprint, request: GroundRequest) -> dict[str, Any]:
        """Search a library in one of its spaces: see `grounding_view`. Raises SpaceError or UnknownVideo."""
        library = self._libraries.setdefault(uri, Library.open(uri))
        environment = Environment.of(
            library,
            library.videos(),
            lambda texts: np.stack([self._embed(uri, space, text) for text in texts]),
            space=space.digest,
        )
        rows = [library.video(request.video)] if request.video else []
        found = ground(library, environment, request.text, rows, most=request.most, evidence_from=request.evidence_from)
        return grounding_view(library, found, environment)

    def _embedded(self, uri: str, space: Fingerprint, text: str) -> NDArray[np.float32]:
        """Waits until the tower is loaded."""
        vector: NDArray[np.float32] = self._towers.begin(uri, space).result().embed_text([text])[0]
        return vector


def grounding_view(
    library: LibraryReader, grounding: Grounding, environment: Environment | None = None
) -> dict[str, Any]:
    """A grounding as `jobs.ground.ground.as_json` has it, with the frames at both ends of each range.

    `begin_frame` and `end_frame` are the first and the last frame on screen, None without frames. Ranges that words
    were found in have these as `words`, if the `environment` is there to read them from. `videos` are the length and
    begin of each, for its time line. `least_score` is the score from which on a range counts.
    """
    value = as_json(grounding)
    for each in (*value["ranges"], *value["weaker"]):
        each |= _ends(library, each["video_id"], each["start_s"], each["end_s"])
        each["words"] = _words(environment, each, grounding.text) if each["found_in"] == WORDS else ""
    rows = {each.video.video_id: each.video for each in grounding.candidates}
    least = None if grounding.least is None else float(calibrate(np.array(grounding.least)))
    return value | {
        "least_score": least,
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
    lines: Sequence[str] = [
        line.text
        for line in environment.source.lines(found["video_id"])
        if line.start_s < found["end_s"] and line.end_s > found["start_s"]
    ]
    return excerpt(" · ".join(sorted(lines, key=lambda line: -len(_word_set(line) & _word_set(text)))), text)


def _word_set(text: str) -> set[str]:
    return {word.casefold() for word in WORD.findall(text)}
