"""A search that the page asks for, and its bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from index.errors import QueryError
from jobs.errors import UsageError

Kind = Literal["together", "frames", "words", "transcript", "text", "captions", "chapters", "detections"]
KINDS: tuple[str, ...] = get_args(Kind)
MOST_HITS = 100
LONGEST_TEXT = 2000
"""Characters of a search; no text tower reads more."""

MOST_S = 1e9
"""Seconds; no video is so long, and what is much more is too large for those who count in parts of a second."""
MOST_NUMBER = 2**31 - 1
"""Of what is counted in a library: a frame's number has so many bits."""
SHOWN = 40
"""Characters of a wrong value that its error repeats."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search for a text in one kind of row (see `KINDS`), in one video or all, in `[start_s, end_s)`.

    `like` is a video and frame number: then frames like that one are searched, and the text is not read.
    """

    text: str = ""
    kind: str = "together"
    video_id: str | None = None
    start_s: float | None = None
    end_s: float | None = None
    most: int = 36
    like: tuple[str, int] | None = None


def read_request(query: Mapping[str, str]) -> SearchRequest:
    """Read a search from a query string; raises UsageError for a value that is no number, QueryError for no search."""
    start_s, end_s = numbers(query, "from", "to")
    text, kind, like = query.get("text", ""), query.get("kind") or "together", query.get("like")
    if kind not in KINDS:
        raise QueryError(f"got kind {kind!r}; it is one of {', '.join(KINDS)}")
    if len(text) > LONGEST_TEXT:
        raise QueryError(f"got a search of {len(text)} characters; give at most {LONGEST_TEXT}")
    most = whole_number(query.get("most") or "36", "most", f"give a number of hits from 1 to {MOST_HITS}", 1, MOST_HITS)
    frame = _frame(like) if like else None
    return SearchRequest(text, kind, query.get("video") or None, start_s, end_s, most, frame)


def numbers(query: Mapping[str, str], *names: str) -> list[float | None]:
    """Read numbers of a query string, None where one is missing; raises UsageError for a value that is no number."""
    return [_number(name, query[name]) if query.get(name) else None for name in names]


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) <= MOST_S:
        raise UsageError(f"got {name} {text[:SHOWN]!r}; give a number of seconds")
    return value


def whole_number(text: str, name: str, advice: str, least: int = 0, most: int = MOST_NUMBER) -> int:
    """Read a number that comes in by HTTP; raises UsageError for one outside of [least, most], however long it is."""
    digits = text.lstrip("0") or "0"  # Python refuses to read thousands of them
    if not text.isdecimal() or len(digits) > len(str(MOST_NUMBER)) or not least <= int(digits) <= most:
        raise UsageError(f"got {name} {text[:SHOWN]!r}; {advice}")
    return int(digits)


def _frame(name: str) -> tuple[str, int]:
    video_id, _, number = name.rpartition("/")
    advice = "give a video's id and the number of a frame: ID/FRAME"
    if not video_id:
        raise UsageError(f"got like={name[:SHOWN]!r}; {advice}")
    return video_id, whole_number(number, "like", advice)
