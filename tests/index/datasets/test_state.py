"""Tables at fixed versions: the rows of then, or a clear word that they are gone."""

from __future__ import annotations

from typing import Any

import pytest

from kinodex.index.datasets import TablesAt, checked_versions, plan_frames, read_versions
from kinodex.index.errors import LibraryError, QueryError
from kinodex.index.library import Library
from kinodex.index.maintain import maintain
from tests.support.libraries.random_library import made, write


def test_a_table_shows_the_rows_of_its_version(patchy: Library) -> None:
    versions = read_versions(patchy.tables, ["videos", "frames"])
    write(patchy, made("ffff", 3, 7))
    before, now = TablesAt(patchy.uri, versions), TablesAt(patchy.uri, read_versions(patchy.tables, ["videos"]))
    assert "ffff" not in before.rows("videos", None, ["video_id"])["video_id"].to_pylist()
    assert "ffff" in now.rows("videos", None, ["video_id"])["video_id"].to_pylist()


def test_a_state_that_was_deleted_is_said_to_be(patchy: Library) -> None:
    plan = plan_frames(patchy, ["frame_no"])
    write(patchy, made("ffff", 3, 7))
    maintain(patchy, 0.0)
    with pytest.raises(LibraryError, match=r"got version \d+ of \w+ in .* which is not there.*--keep-minutes"):
        plan_frames(patchy, ["frame_no"], versions=plan.versions)


def test_versions_have_to_be_of_the_same_tables() -> None:
    assert checked_versions({"frames": 3, "videos": 2}, ["videos", "frames"]) == {"videos": 2, "frames": 3}
    refused: list[Any] = [{"videos": 1}, {"videos": 1, "frames": "2"}, {"videos": 1, "frames": 2, "runs": 3}]
    for bad in refused:
        with pytest.raises(QueryError, match="give those of videos, frames"):
            checked_versions(bad, ["videos", "frames"])
