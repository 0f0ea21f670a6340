"""Maintenance deletes what no run explains, and leaves what a run at work may be writing."""

from __future__ import annotations

import pytest

from kinodex.index.errors import LibraryBusy
from kinodex.index.library import Library
from kinodex.index.maintain import health, maintain
from kinodex.index.sweep import INGEST, MAINTENANCE
from tests.support.libraries.random_library import made, write


def test_leftovers_go_unless_a_run_may_be_writing_them(library: Library) -> None:
    write(library, made("aaaa", 3, seed=1))
    write(library, made("left", 3, seed=2), complete=False)
    with library.lease(INGEST, "a run"):
        assert health(library).problems == ()
        assert health(library).audit.orphans == ("left",)
        report = maintain(library)
        assert report.removed.orphans == ()
        assert "a run on" in report.notes[0]
    assert health(library).problems == ("video left has rows but is not complete",)
    steps: list[str] = []
    report = maintain(library, on_step=steps.append)
    assert (report.removed.orphans, report.notes, report.after.problems) == (("left",), (), ())
    assert len(steps) == 3
    assert library.video_ids() == {"aaaa"}


def test_only_one_at_a_time_and_alone_without_older_versions(library: Library) -> None:
    with library.lease(MAINTENANCE, "another"), pytest.raises(LibraryBusy, match="another on"):
        maintain(library)
    with library.lease("add speech", "a run"), pytest.raises(LibraryBusy, match="a run on"):
        maintain(library, keep_s=0.0)
    assert health(library).at_work == ()
