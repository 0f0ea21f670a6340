"""A sweep removes what interrupted ingests left and what zombies wrote twice; an audit reports what is wrong."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from kinodex.index.errors import StorageError
from kinodex.index.rows import SegmentRow, SourceRow
from kinodex.index.store.schema import equal, vectors_table
from kinodex.index.sweep import audit, sweep
from tests.support.libraries.random_library import WHEN, fingerprint, made, write

VECTORS = vectors_table(fingerprint())


def test_nothing_to_sweep(library):
    assert sweep(library) == 0
    assert audit(library).problems == ()
    write(library, made("aaaa", 5, seed=1, lines=((0.0, 1.0, "hello"),)))
    assert sweep(library) == 0
    assert audit(library).videos == 1


def test_leftovers_of_every_table_go(library):
    kept = made("aaaa", 5, seed=1, lines=((0.0, 1.0, "hello"),))
    write(library, kept)
    library.writer.add_frames({"frames only": kept.frame_rows()})
    library.writer.add_segments({"segments only": [SegmentRow("", 0, 0.0, 1.0, "shot")]})
    library.writer.add_transcript({"lines only": kept.transcript()})
    write(library, made("all", 7, seed=2, lines=((0.0, 1.0, "hello"),)), complete=False)
    left = ("all", "frames only", "lines only", "segments only")
    assert audit(library).orphans == left
    assert audit(library).problems == tuple(f"video {name} has rows but is not complete" for name in left)
    assert sweep(library) == 4
    assert audit(library).problems == ()
    assert len(library.vectors("aaaa").frame_no) == len(library.frames("aaaa", range(5))) == 5
    assert [hit.video_id for hit in library.search.transcript("hello")] == ["aaaa"]
    assert sweep(library) == 0


def test_a_discarded_source_is_looked_into_again(library):
    write(library, made("aaaa", 5, seed=1))
    library.ingest_log.add_sources([SourceRow("/films/a.mp4", "aaaa", 1, "", WHEN)])
    library.writer.discard("aaaa")
    assert library.ingest_log.sources() == {}


def test_rows_that_a_zombie_wrote_again_go(library, tables):
    video, other = made("aaaa", 40, seed=1), made("bbbb", 40, seed=2)
    write(library, video)
    write(library, other)
    library.writer.add_frames({"aaaa": video.frame_rows()[10:]})  # by a run that was taken for dead
    library.writer.add_frames({"bbbb": other.frame_rows()[:5]})
    assert audit(library).doubled == ("aaaa", "bbbb")
    assert sweep(library) == 2
    assert audit(library).problems == ()
    assert tables.count("frames") == tables.count(VECTORS) == 80
    np.testing.assert_array_equal(library.vectors("aaaa").vectors, video.vectors)
    assert library.frames("aaaa", [12])[0].jpeg == b"jpeg aaaa 12"


def test_lost_rows_are_reported_and_left(library, tables):
    for video_id in ("aaaa", "bbbb", "cccc"):
        write(library, made(video_id, 5, seed=1))
    tables.delete("frames", equal("video_id", "aaaa") & equal("frame_no", 3))
    tables.delete(VECTORS, equal("video_id", "bbbb"))
    library.writer.add_frames({"bbbb": made("bbbb", 6, seed=1).frame_rows()[5:]})
    checked = audit(library)
    assert (checked.orphans, checked.doubled, checked.broken) == ((), (), ("aaaa", "bbbb"))
    assert checked.problems == (
        "video aaaa has other rows than its own row promises",
        "video bbbb has other rows than its own row promises",
    )
    assert sweep(library) == 0
    assert len(library.videos()) == 3


def test_speech_that_was_added_is_not_counted(library, tables):
    video = made("aaaa", 5, seed=1, lines=((0.0, 1.0, "hello"),))
    write(library, video)
    heard = asdict(video.transcript()[0]) | {"source": "asr", "model": "whisper"}
    tables.append("transcript", [heard, heard])
    assert audit(library).problems == ("video aaaa has speech by whisper without its addition",)
    assert sweep(library) == 0
    assert library.writer.complete([video.video_row()]) == ()


WRITE = """
import sys
from kinodex.index.errors import StorageError
from kinodex.index.library import Library
from tests.support.libraries.random_library import made, write
library = Library.open(sys.argv[1])
with library.lease("ingest", "a run"):
    print("at work", flush=True)
    for number in range(10_000):
        pair = [made(f"{sys.argv[2]} {number} {n}", 20, seed=n, lines=((0.0, 1.0, "hello"),)) for n in range(2)]
        for video in pair:
            write(library, video, complete=False)
        library.writer.complete([video.video_row() for video in pair])
"""


@pytest.mark.slow
def test_killed_writers_leave_nothing_that_a_sweep_does_not_find(library):
    random = np.random.default_rng(5)
    for turn in range(2):
        command = [sys.executable, "-c", WRITE, library.uri, str(turn)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "at work\n"
            time.sleep(random.uniform(0.0, 0.4))
            writer.kill()
        assert writer.returncode == -signal.SIGKILL  # it was at work until then
        with library.lease("ingest", "the next run"):
            sweep(library)
        assert audit(library).problems == ()
    for row in library.videos():
        assert library.vectors(row.video_id).frame_no.tolist() == list(range(20))


def test_a_sweep_reads_no_rows_where_their_numbers_are_right(library):
    """Numbers of rows are in the tables' metadata: without any file of rows they can still be compared."""
    for video_id in ("aaaa", "bbbb"):
        write(library, made(video_id, 5, seed=1))
    files = [file for name in ("frames", VECTORS) for file in Path(library.uri, f"{name}.lance", "data").iterdir()]
    for file in files:
        file.rename(file.with_suffix(".away"))
    assert sweep(library) == 0
    with pytest.raises(StorageError):
        audit(library)
    for file in files:
        file.with_suffix(".away").rename(file)
    write(library, made("left", 5, seed=2), complete=False)
    assert sweep(library) == 1
