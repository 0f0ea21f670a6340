"""A choice of columns: the table that has the rows, and what has to be joined to it."""

from __future__ import annotations

import pytest

from kinodex.index.datasets import choose, stored_names
from kinodex.index.errors import QueryError


@pytest.mark.parametrize(
    ("columns", "base", "joins", "stored"),
    [
        (["vector", "time_s"], "vectors_x", False, ["video_id", "frame_no", "vector", "time_s"]),
        (["title", "vector"], "vectors_x", False, ["video_id", "frame_no", "vector"]),
        (["jpeg", "vector"], "frames", True, ["video_id", "frame_no", "jpeg"]),
        (["title"], "frames", False, ["video_id", "frame_no"]),
    ],
)
def test_rows_come_from_the_smallest_table_that_has_them(columns, base, joins, stored) -> None:
    choice = choose(columns, "vectors_x")
    assert (choice.base, choice.joins_vectors, choice.stored) == (base, joins, stored)


def test_a_name_that_is_no_column_is_refused() -> None:
    assert choose("jpeg", "vectors_x").columns == ("jpeg",)
    with pytest.raises(QueryError, match="got columns jpg; give some of"):
        choose(["jpg"], "vectors_x")


def test_pictures_are_decoded_of_a_column() -> None:
    assert stored_names(["image", "time_s", "jpeg"]) == ["jpeg", "time_s"]
    assert stored_names("image") == ["jpeg"]
