"""Simulated workers: virtual time, films drawn alike each time, and the rows that they promise."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from kinodex.index.library import Library
from kinodex.jobs.ingest.messages import ChunkFailed, ChunkRead, ChunkSplit, Identify, IdentifyDone, Read, WorkDone
from kinodex.pipeline.fetch import FetchedVideo
from kinodex.pipeline.sample import Chunk
from tests.bench.coordinator import Crew, Films, SimulatedExecutor, VirtualClock
from tests.support.libraries.random_library import SETTINGS, fingerprint


def test_the_clock_stands_still_while_it_is_paused_and_skips_what_it_is_told_to() -> None:
    clock = VirtualClock()
    with clock.paused():
        before = clock()
        spent = time.process_time() + 0.02
        while time.process_time() < spent:
            pass
        assert clock() == before
        clock.skip_to(before + 100.0)
        assert clock() == before + 100.0
    clock.skip_to(before)
    assert clock() >= before + 100.0 and clock.driver_s < 100.0


def identified(executor: SimulatedExecutor, films: Films) -> tuple[FetchedVideo, ...]:
    executor.start(0, Identify(tuple(films.source(number) for number in range(len(films.lengths_s)))))
    (finished,) = executor.wait(1e6)
    assert isinstance(finished.result, IdentifyDone)
    videos = [each for each in finished.result.results if isinstance(each, FetchedVideo)]
    return tuple(videos)


def test_films_are_read_split_or_fail_by_what_they_are(tmp_path: Path) -> None:
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    films = Films(np.array([30.0, 900.0, 30.0]), frames_a_second=0.5, duplicates=0.0, poison=0.0)
    executor = SimulatedExecutor(library, films, Crew(2), VirtualClock())
    short, long, other = identified(executor, films)
    executor.start(0, Read((Chunk(short), Chunk(long)), may_split=True))
    assert list(executor.idle(Read)) == [1] and set(executor.idle(Identify)) == {0, 1}
    (finished,) = executor.wait(1e6)
    assert isinstance(finished.result, WorkDone)
    read, split = finished.result.results
    assert isinstance(read, ChunkRead) and len(read.times_s) == 15
    assert isinstance(split, ChunkSplit) and len(split.spans) == 3
    assert library.tables.count("frames") == 15
    parts = [Chunk(long, span, 3, index) for index, span in enumerate(split.spans)]
    for part in parts:
        executor.start(0, Read((part,), may_split=False))
        executor.wait(1e6)
    assert library.tables.count("frames") == 15 + 450
    broken = SimulatedExecutor(library, Films(films.lengths_s, poison=1.0), Crew(1), VirtualClock())
    broken.start(0, Read((Chunk(other),), may_split=True))
    (finished,) = broken.wait(1e6)
    assert isinstance(finished.result, WorkDone) and isinstance(finished.result.results[0], ChunkFailed)


def test_a_lost_worker_takes_all_its_tasks_with_it_and_another_joins(tmp_path: Path) -> None:
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    films = Films(np.array([30.0, 30.0]), deadly=1.0)
    executor = SimulatedExecutor(library, films, Crew(1), VirtualClock())
    first, second = identified(executor, films)
    executor.start(0, Identify((films.source(1),) * 10_000))
    executor.start(0, Read((Chunk(first),), may_split=True))
    finished = executor.wait(1e6)
    assert [each.result for each in finished] == [None, None]
    assert not executor.idle(Read)
    executor.wait(1e6)
    assert list(executor.idle(Read)) == [1] and executor.readers == 1
    assert second.video_id != first.video_id
