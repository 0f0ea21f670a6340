"""Old states go by the clock of their disk, and no clock deletes a file that a writer is about to commit."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from kinodex.index.library import Library
from kinodex.index.maintain import maintain
from kinodex.index.store.indexes import DURING_RUN, clean
from kinodex.index.store.old_states import delete_old_states
from tests.support.libraries.random_library import made, write

DAY_S = 86_400.0


def age(path: Path, seconds: float) -> None:
    then_s = time.time() - seconds
    os.utime(path, (then_s, then_s))


def written_segments(library: Library, aged_s: float) -> tuple[lance.FragmentMetadata, Path]:
    """Write a file of segments as a writer does before its commit; its age is as a clock that is ahead sees it."""
    schema = library.tables.schema("segments")
    rows = pa.table({"video_id": ["aaaa"], "segment_no": [1], "start_s": [0.0], "end_s": [1.0], "kind": ["shot"]})
    folder = Path(library.uri) / "segments.lance"
    (fragment,) = lance.fragment.write_fragments(rows.cast(schema), folder, schema)
    path = folder / "data" / fragment.files[0].path
    age(path, aged_s)
    return fragment, path


def test_a_file_that_is_about_to_be_committed_stays_whatever_the_clock_says(library: Library) -> None:
    write(library, made("aaaa", 3, seed=1))
    write(library, made("bbbb", 3, seed=2))
    with library.lease("ingest", "a run"):
        fragment, path = written_segments(library, 9 * DAY_S)
        report = maintain(library)
        assert any("may be about to commit" in note for note in report.notes)
        clean(library.tables, DURING_RUN)
        delete_old_states(library.tables, "segments", 0.0)
        assert path.is_file()
        segments = library.tables["segments"]
        lance.LanceDataset.commit(segments.uri, lance.LanceOperation.Append([fragment]), read_version=segments.version)
        assert library.tables["segments"].to_table()["segment_no"].to_pylist().count(1) >= 1


def test_what_a_killed_writer_left_goes_while_nobody_writes(library: Library) -> None:
    write(library, made("aaaa", 3, seed=1))
    _, old = written_segments(library, 9 * DAY_S)
    _, new = written_segments(library, 0.0)
    assert maintain(library).notes == ()
    assert (old.is_file(), new.is_file()) == (False, True)


def test_a_state_is_as_old_as_its_disk_says(library: Library) -> None:
    for number in range(3):
        write(library, made(f"{number:04d}", 2, seed=number))
    states = sorted((Path(library.uri) / "videos.lance" / "_versions").glob("*.manifest"), reverse=True)
    age(states[0], 2 * 3600.0)
    held = len(library.tables["videos"].version_refs())
    delete_old_states(library.tables, "videos", 3600.0)
    assert len(library.tables["videos"].version_refs()) == held - 1 >= 2
    assert not states[0].is_file()


def test_a_tag_that_somebody_set_keeps_its_state_and_ends_no_maintenance(library: Library) -> None:
    write(library, made("aaaa", 2, seed=1))
    write(library, made("bbbb", 2, seed=2))
    videos = library.tables["videos"]
    videos.tags.create("kept", videos.version - 1)
    maintain(library, keep_s=0.0)
    assert {ref["version"] for ref in library.tables["videos"].version_refs()} >= {videos.version - 1}
    assert library.tables["videos"].checkout_version("kept").count_rows() == 1


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("faketime") is None, reason="needs faketime")
def test_a_clock_before_1970_is_the_clocks_fault(library: Library) -> None:
    write(library, made("aaaa", 3, seed=1))
    check = [sys.executable, "-c", "from kinodex.cli.main import main; main()", "maintain", library.uri, "--check"]
    command = ["faketime", "1969-06-01", *check]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert done.stderr.strip().splitlines() == [
        f"error: cannot use {library.uri}: the clock of this machine is before 1970; set it"
    ]
