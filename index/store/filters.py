"""Filters of rows, built from typed values: these are turned into SQL in one place, and quoted there."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from numbers import Integral
from operator import and_
from typing import TypeVar

from kinodex.index.store.frame_keys import frame_key
from kinodex.index.utf8 import checked_text

MAX_VALUES_PER_FILTER = 500
Value = str | int | float | datetime
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on the columns of a table, as SQL of DataFusion; `&` and `|` combine two."""

    sql: str

    def __and__(self, other: Filter) -> Filter:
        return Filter(f"({self.sql}) AND ({other.sql})")

    def __or__(self, other: Filter) -> Filter:
        return Filter(f"({self.sql}) OR ({other.sql})")


def sql_value(value: Value) -> str:
    """Write a value as SQL, a time of day as a text; raises QueryError for a text that is not UTF-8."""
    if isinstance(value, str):
        return "'" + checked_text(value, "no video and no label has such a name").replace("'", "''") + "'"
    if isinstance(value, datetime):
        return f"'{value.isoformat()}'"
    if isinstance(value, Integral):
        return str(int(value))
    number = float(value)  # NumPy's numbers write their type with their value
    return repr(number) if math.isfinite(number) else f"CAST('{number}' AS DOUBLE)"


def equal(column: str, value: str | int) -> Filter:
    """Match rows with this value."""
    return Filter(f"{column} = {sql_value(value)}")


def other_than(column: str, value: str | int) -> Filter:
    """Match rows with another value than this; none is no other."""
    return Filter(f"{column} != {sql_value(value)}")


def none_of(column: str, values: Sequence[str]) -> Filter:
    """Match rows with none of these values, of which there is one at least."""
    return Filter(f"{column} NOT IN ({', '.join(map(sql_value, values))})")


def at_least(column: str, value: float) -> Filter:
    """Match rows with this value or more."""
    return Filter(f"{column} >= {sql_value(value)}")


def above(column: str, value: float) -> Filter:
    """Match rows with more than this value."""
    return Filter(f"{column} > {sql_value(value)}")


def below(column: str, value: float) -> Filter:
    """Match rows with less than this value."""
    return Filter(f"{column} < {sql_value(value)}")


def one_of(column: str, values: Sequence[str] | Sequence[float]) -> Filter:
    """Match rows with one of these values; none where there are no values."""
    return Filter(f"{column} IN ({', '.join(map(sql_value, values))})" if values else "false")


def of_frames(video_id: str, frame_nos: Sequence[int]) -> Filter:
    """Match these frames of one video; the key is indexed, but only almost unique."""
    return one_of("frame_key", [frame_key(video_id, number) for number in frame_nos]) & equal("video_id", video_id)


def overlapping(start_s: float | None, end_s: float | None) -> list[Filter]:
    """Match ranges that share some time with `[start_s, end_s)`."""
    after = [] if start_s is None else [above("end_s", start_s)]
    return after + ([] if end_s is None else [below("start_s", end_s)])


def within(start_s: float | None, end_s: float | None) -> list[Filter]:
    """Match frames at a time in `[start_s, end_s)`."""
    after = [] if start_s is None else [at_least("time_s", start_s)]
    return after + ([] if end_s is None else [below("time_s", end_s)])


def all_of(filters: Sequence[Filter]) -> Filter | None:
    """Combine filters; None, which matches everything, if there are none."""
    return reduce(and_, filters) if filters else None


def any_of(filters: Sequence[Filter]) -> Filter:
    """Match what one of these filters does; in halves, so that thousands do not stand in each other's brackets."""
    middle = len(filters) // 2
    return any_of(filters[:middle]) | any_of(filters[middle:]) if middle else filters[0]


def chunked(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Split values into groups that one filter can hold."""
    for first in range(0, len(values), MAX_VALUES_PER_FILTER):
        yield values[first : first + MAX_VALUES_PER_FILTER]


def fits_one_filter(values: Sequence[str]) -> Sequence[str] | None:
    """Return the values if one filter can hold them; None, which matches everything, if there are more."""
    return values if len(values) <= MAX_VALUES_PER_FILTER else None
