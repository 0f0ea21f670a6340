"""`kinodex add` killed at any instant and run again: every video has its rows once, as if nothing had happened.

KINODEX_ADD_KILLS sets how many times it is killed (a few by default).
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.index.sweep import audit
from kinodex.jobs.add.run import AddedRows, VideoOutcome, add
from kinodex.pipeline.errors import PictureError
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, rows_held

VIDEOS = 36
"""Five commits; of them the videos 7 and 27 cannot be read."""
BAD = [number for number in range(VIDEOS) if number % 20 == 7]
pytestmark = pytest.mark.slow
KILLS = int(os.environ.get("KINODEX_ADD_KILLS", "4"))


class Row(NamedTuple):
    frame_no: int
    time_s: float
    label: str
    score: float
    box: tuple[float, float, float, float]
    track_id: int | None = None


@dataclass(frozen=True)
class Counting:
    """A stage without a model: as many rows as the video's id says; every twentieth video cannot be read.

    With `die_at` it kills its process at a certain point of the work on the second commit.
    """

    die_at: str = ""
    name: str = "detections"
    model: str = "counting"
    device: str = "cpu"

    @property
    def settings(self) -> Mapping[str, Any]:
        self._reached("before completing")
        return {}

    def prepare(self, library: Library) -> None:
        self._reached("before sweeping")

    def rows_of(self, library: Library, video: VideoRow) -> AddedRows:
        time.sleep(0.004)
        number = int(video.video_id)
        if number % 20 == 7:
            raise PictureError("nothing to be seen")
        self._reached("making")
        rows = [Row(n, float(n), f"thing {n}", 0.5, (0, 0, 1, 1)) for n in range(number % 5)]
        return AddedRows(rows, len(rows))

    def write(self, library: Library, rows: Mapping[str, Any]) -> None:
        self._reached("before writing")
        library.additions.add_detections(rows, self.model)
        self._reached("after writing")

    def _reached(self, point: str) -> None:
        counts[point] = counts.get(point, 0) + 1
        often = {"making": 12, "before sweeping": 1}.get(point, 2)
        if point == self.die_at and counts[point] == often:
            os.kill(os.getpid(), signal.SIGKILL)


counts: dict[str, int] = {}
POINTS = ("before sweeping", "making", "before writing", "after writing", "before completing", "after completing")


def run(uri: str, die_at: str = "") -> None:
    """Run in the child process."""

    def watch(done: int, total: int, last: VideoOutcome) -> None:
        if die_at == "after completing" and done > 8:
            os.kill(os.getpid(), signal.SIGKILL)

    library = Library.open(uri)
    print("ready", flush=True)
    add(library, Counting(die_at), watch=watch)


@contextmanager
def begun(library: Library, die_at: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """A process that has opened the library and adds to it; it is waited for at the end."""
    code = f"from tests.end_to_end.kills.test_add import run; run({library.uri!r}, {die_at!r})"
    root = Path(__file__).parents[3]
    with subprocess.Popen([sys.executable, "-c", code], cwd=root, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        yield child


@pytest.fixture
def library(tmp_path) -> Library:
    made_library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    videos = [made(f"{number:08d}", 5, number) for number in range(VIDEOS)]
    made_library.writer.add_frames({video.video_id: video.frame_rows() for video in videos})
    assert (
        made_library.writer.complete([video.video_row(f"film {number}") for number, video in enumerate(videos)]) == ()
    )
    return made_library


def check_nothing_half(library: Library) -> int:
    """Every video that readers see has all its rows; returns how many."""
    waiting = {row.video_id for row in library.additions.pending("detections", "counting")}
    for row in library.videos():
        expected = 0 if row.video_id in waiting else int(row.video_id) % 5
        assert [found.frame_no for found in library.detections(row.video_id)] == list(range(expected))
    return VIDEOS - len(waiting)


def check_whole(library: Library) -> None:
    assert check_nothing_half(library) == VIDEOS - len(BAD)
    ids = [row.video_id for row in library.videos()]
    held = rows_held(library.tables, "detections", "counting", ids)
    assert {id_: held[id_] for id_ in ids} == {id_: 0 if int(id_) in BAD else int(id_) % 5 for id_ in ids}
    assert audit(library, deep=True).problems == ()
    assert {failure.uri for failure in library.ingest_log.failures()} == {f"/films/film {number}.mp4" for number in BAD}


def test_killed_at_random_it_goes_on_where_it_was(library):
    chance = random.Random(1)
    done = 0
    for _ in range(KILLS):
        with begun(library) as child:
            time.sleep(chance.uniform(0.05, 0.4))
            child.kill()
        now = check_nothing_half(library)
        assert now >= done
        done = now
    assert add(library, Counting()).failed == len(BAD)
    check_whole(library)


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_a_certain_point(library, point):
    with begun(library, point) as child:
        assert child.wait() == -signal.SIGKILL, "it should have died on the way"
    check_nothing_half(library)
    add(library, Counting())
    check_whole(library)


def test_rows_of_a_process_that_was_taken_for_dead_do_not_double_a_video(library):
    """They come after the leftovers were deleted and before the video is shown: it is refused, and done next time."""

    class Doubling(Counting):
        def write(self, library: Library, rows: Mapping[str, Any]) -> None:
            library.additions.add_detections(rows, self.model)
            library.additions.add_detections(
                {id_: some for id_, some in rows.items() if id_ == f"{13:08d}"}, self.model
            )

    rejected = [each.title for each in add(library, Doubling()).outcomes if each.error_class == "Rejected"]
    assert rejected == ["film 13"]
    assert library.detections(f"{13:08d}") == []
    assert add(library, Counting()).added == 1
    check_whole(library)
