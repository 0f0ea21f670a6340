"""Filters of the library, built from typed expressions: no value is ever pasted into a query string."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import and_

from lancedb.expr import Expr, col, lit

from index.errors import QueryError
from index.rows import Scope
from index.store.schema import frame_key

MAX_VALUES_PER_FILTER = 500


def equal(column: str, value: str) -> Expr:
    """Match rows with this value."""
    return col(column) == lit(_checked_text(value))


def at_least(column: str, value: float) -> Expr:
    """Match rows with this value or more."""
    return col(column) >= lit(value)


def one_of(column: str, values: Sequence[str]) -> Expr:
    """Match rows with one of these values."""
    return col(column).isin([_checked_text(value) for value in values])


def _checked_text(value: str) -> str:
    """Return a text that a filter can hold; an argument whose bytes are not UTF-8 arrives as lone surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise QueryError(f"got {value!r}, which is not UTF-8; no video and no label has such a name") from error
    return value


def of_frames(video_id: str, frame_nos: Sequence[int]) -> Expr:
    """Match these frames of one video; the key is indexed, but only almost unique."""
    keys = [frame_key(video_id, number) for number in frame_nos]
    return col("frame_key").isin(keys) & equal("video_id", video_id)


def overlapping(start_s: float | None, end_s: float | None) -> list[Expr]:
    """Match ranges that share some time with `[start_s, end_s)`."""
    after = [] if start_s is None else [col("end_s") > lit(start_s)]
    return after + ([] if end_s is None else [col("start_s") < lit(end_s)])


def within(start_s: float | None, end_s: float | None) -> list[Expr]:
    """Match frames at a time in `[start_s, end_s)`."""
    after = [] if start_s is None else [col("time_s") >= lit(start_s)]
    return after + ([] if end_s is None else [col("time_s") < lit(end_s)])


def of_videos(scope: Scope) -> list[Expr]:
    """Match rows of the videos of a scope."""
    return [] if scope.video_ids is None else [col("video_id").isin(list(scope.video_ids))]


def all_of(filters: Sequence[Expr]) -> Expr | None:
    """Combine filters; None, which matches everything, if there are none."""
    return reduce(and_, filters) if filters else None


def chunked(values: Sequence[str]) -> Iterator[Sequence[str]]:
    """Split values into groups that one filter can hold."""
    for first in range(0, len(values), MAX_VALUES_PER_FILTER):
        yield values[first : first + MAX_VALUES_PER_FILTER]


def fits_one_filter(values: Sequence[str]) -> Sequence[str] | None:
    """Return the values if one filter can hold them; None, which matches everything, if there are more."""
    return values if len(values) <= MAX_VALUES_PER_FILTER else None
