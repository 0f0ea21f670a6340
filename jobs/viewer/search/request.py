"""A search that the page asks for, and its bounds."""

from __future__ import annotations

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
    most = query.get("most") or "36"
    if not most.isdecimal() or not 1 <= int(most[:6]) <= MOST_HITS:
        raise UsageError(f"got most {most!r}; give a number of hits from 1 to {MOST_HITS}")
    frame = _frame(like) if like else None
    return SearchRequest(text, kind, query.get("video") or None, start_s, end_s, int(most), frame)


def numbers(query: Mapping[str, str], *names: str) -> list[float | None]:
    """Read numbers of a query string, None where one is missing; raises UsageError for a value that is no number."""
    try:
        return [float(query[name]) if query.get(name) else None for name in names]
    except ValueError as error:
        raise UsageError(f"{error}; give a number") from error


def _frame(name: str) -> tuple[str, int]:
    video_id, _, number = name.rpartition("/")
    if not video_id or not number.isdecimal():
        raise UsageError(f"got like={name!r}; give a video's id and the number of a frame: ID/FRAME")
    return video_id, int(number[:12])
