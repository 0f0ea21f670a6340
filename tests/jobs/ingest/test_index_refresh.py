"""Beside a run: fragments are joined once there are many; an error there is raised at the end of the run."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from kinodex.index.errors import StorageError
from kinodex.index.library import Library
from kinodex.index.store.indexes import DURING_RUN, small_fragments
from kinodex.jobs.ingest.run import refreshing_indexes
from tests.support.libraries.random_library import SETTINGS, fingerprint

SOON_S = 0.01


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())


def failure(number: int) -> dict[str, object]:
    return {
        "uri": str(number), "stage": "open", "error_class": "NotAVideo", "message": "", "attempts": 1, "failed_at": 0
    }  # fmt: skip


def append_many(library: Library) -> None:
    """Append one more fragment than a table should have."""
    for number in range(DURING_RUN.fragments + 1):
        library.tables.append("failures", [failure(number)])


def wait_until_joined(library: Library) -> None:
    while small_fragments(library.tables, "failures") > DURING_RUN.fragments:
        time.sleep(SOON_S)


def test_many_fragments_are_joined_while_the_run_goes_on(library: Library) -> None:
    with refreshing_indexes(library.uri, SOON_S):
        append_many(library)
        wait_until_joined(library)
    assert library.tables.count("failures") == DURING_RUN.fragments + 1


def test_an_error_is_raised_at_the_end(library: Library) -> None:
    went_on = False
    append_many(library)
    shutil.rmtree(Path(library.uri) / "runs.lance")  # the table that is looked at right after `failures`
    with pytest.raises(StorageError, match=r"runs\.lance"), refreshing_indexes(library.uri, SOON_S):
        wait_until_joined(library)
        went_on = True
    assert went_on
