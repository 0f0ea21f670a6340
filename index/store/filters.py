"""Every filter of the library, built from typed expressions: no value is ever pasted into a query string."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import and_

from lancedb.expr import Expr, col, lit

from index.errors import QueryError
from index.rows import Scope
from index.store.schema import frame_key

VALUES_A_FILTER = 500


def equal(column: str, value: str) -> Expr:
    return col(column) == lit(_whole(value))


def at_least(column: str, value: float) -> Expr:
    return col(column) >= lit(value)


def one_of(column: str, values: Sequence[str]) -> Expr:
    return col(column).isin([_whole(value) for value in values])


def _whole(value: str) -> str:
    """A text that can be asked for; an argument whose bytes are no UTF-8 comes as halves of characters."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise QueryError(f"got {value!r}, which is no UTF-8; no video and no label has such a name") from error
    return value


def of_frames(video_id: str, frame_nos: Sequence[int]) -> Expr:
    """These frames of one video; the key is what is indexed, and only almost unique."""
    keys = [frame_key(video_id, number) for number in frame_nos]
    return col("frame_key").isin(keys) & equal("video_id", video_id)


def overlapping(start_s: float | None, end_s: float | None) -> list[Expr]:
    """Ranges that share some time with `[start_s, end_s)`."""
    after = [] if start_s is None else [col("end_s") > lit(start_s)]
    return after + ([] if end_s is None else [col("start_s") < lit(end_s)])


def within(start_s: float | None, end_s: float | None) -> list[Expr]:
    """Frames at a time in `[start_s, end_s)`."""
    after = [] if start_s is None else [col("time_s") >= lit(start_s)]
    return after + ([] if end_s is None else [col("time_s") < lit(end_s)])


def of_videos(scope: Scope) -> list[Expr]:
    return [] if scope.video_ids is None else [col("video_id").isin(list(scope.video_ids))]


def all_of(filters: Sequence[Expr]) -> Expr | None:
    return reduce(and_, filters) if filters else None


def chunked(values: Sequence[str]) -> Iterator[Sequence[str]]:
    """Values by few enough to name them all in one filter."""
    for first in range(0, len(values), VALUES_A_FILTER):
        yield values[first : first + VALUES_A_FILTER]


def fits_one_filter(values: Sequence[str]) -> Sequence[str] | None:
    """Values that one filter can name; None, which is no filter, if there are more."""
    return values if len(values) <= VALUES_A_FILTER else None
