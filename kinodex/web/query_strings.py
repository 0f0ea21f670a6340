"""Requests and numbers read from query strings, within their bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar, get_origin

from kinodex.index.errors import QueryError
from kinodex.index.times import parse_time
from kinodex.jobs.errors import UsageError
from kinodex.requests import Request, flags, made, outside

R = TypeVar("R", bound=Request)
MOST_S = 1e9
"""Seconds; no video is so long, and what is much more is too large for those who count in parts of a second."""
MOST_NUMBER = 2**31 - 1
"""Of what is counted in a library: a frame's number has this many bits."""
POSTED = ("verify", "agent", "budget", "settings", "rules", "follow_up")
"""Fields that have models asked: a body that is posted can have them, an address that is only looked at cannot."""
SHOWN = 40
"""Characters of a wrong value that its error repeats."""


def read_request(kind: type[R], pairs: Iterable[tuple[str, str]]) -> R:
    """Read a request from the names and values of a query string; raises UsageError for what it does not take.

    >>> from kinodex.requests import Find
    >>> read_request(Find, [("query", "a boat"), ("videos", "film-01"), ("videos", "film-02"), ("end_s", "1:30")]).end_s
    90.0
    """
    names = {outside(name): field for name, field, _ in flags(kind, remote=True)}
    names = {name: field for name, field in names.items() if name not in POSTED}
    several = {name for name, field in names.items() if get_origin(field.annotation) is tuple}
    values: dict[str, object] = {}
    for name, value in pairs:
        if name not in names:
            raise UsageError(f"got {name[:SHOWN]}, which is not taken here; give some of {', '.join(names)}")
        if name in several:
            values[name] = [*values.get(name, []), value]  # type: ignore[misc]
        elif value:
            values[name] = value
    return made(kind, values)


def times_s(query: Mapping[str, str], *names: str) -> list[float | None]:
    """Read times of a query string, None where one is missing; raises UsageError for a value that is no time."""
    return [_time_s(name, query[name]) if query.get(name) else None for name in names]


def _time_s(name: str, text: str) -> float:
    try:
        time_s = parse_time(text)
    except QueryError as error:
        raise UsageError(f"{name}: {error}") from None
    if not abs(time_s) <= MOST_S:
        raise UsageError(f"got {name} {text[:SHOWN]!r}; give a time within {MOST_S:.0f} s")
    return time_s


def whole_number(text: str, name: str, advice: str, least: int = 0, most: int = MOST_NUMBER) -> int:
    """Read a number that comes in by HTTP; raises UsageError for one outside of [least, most], however long it is."""
    digits = text.lstrip("0") or "0"  # Python refuses to read thousands of them
    if not text.isdecimal() or len(digits) > len(str(MOST_NUMBER)) or not least <= int(digits) <= most:
        raise UsageError(f"got {name} {text[:SHOWN]!r}; {advice}")
    return int(digits)
