"""The coordinator: each video once, whatever workers lose or find damaged, and duplicates share its outcome."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kinodex.index.library import Library
from kinodex.jobs.ingest.chunk_rows import discard
from kinodex.jobs.ingest.coordinator import CHANGES, LOSSES, Coordinator, RunLimits
from kinodex.jobs.ingest.local_workers import LocalExecutor
from kinodex.jobs.ingest.messages import Assignment, ChunkFailed, FinishedTask, Identify, Read, WorkDone
from kinodex.jobs.ingest.new_sources import IdSet
from kinodex.jobs.ingest.work_queue import WorkQueue
from kinodex.jobs.ingest.worker import Worker
from kinodex.pipeline.errors import DecoderDied
from kinodex.pipeline.sample import IngestSettings
from kinodex.pipeline.sandbox import SandboxLimits
from kinodex.pipeline.sources import list_sources
from tests.support.ffmpeg import READING, ColourTower
from tests.support.libraries.corpus import contents
from tests.support.libraries.random_library import SETTINGS, fingerprint

Change = Callable[[Library, FinishedTask], FinishedTask]


class ChangedExecutor(LocalExecutor):
    """Real workers, of which some results are changed on the way to the coordinator."""

    library: Library
    change: Change

    def wait(self, timeout_s: float) -> list[FinishedTask]:
        return [self.change(self.library, finished) for finished in super().wait(timeout_s)]


def run(
    films: Path,
    place: Path,
    change: Change = lambda library, finished: finished,
    workers: int = 1,
    cut_s: float = 0.0,
) -> tuple[Library, Coordinator]:
    library = Library.create(str(place), SETTINGS, fingerprint())
    sources = list_sources([str(films)])
    with library.lease("ingest", "a test") as lease:
        reading = replace(READING, cut_s=cut_s)
        assignment = Assignment(library.uri, ("ingest", lease.token), reading, SandboxLimits(), 64)
        executor = ChangedExecutor([Worker(assignment, place) for _ in range(workers)], ColourTower().embed)
        executor.library, executor.change = library, change
        work = WorkQueue(sources, [0] * len(sources), bundle=1)
        limits = RunLimits(IngestSettings(fps=1.0), max_failures=None)
        coordinator = Coordinator(library, lease, executor, work, IdSet(), limits, [])
        try:
            coordinator.run()
        finally:
            executor.close()
    return library, coordinator


def changing(times: int, is_meant: Callable[[FinishedTask], bool], change: Change) -> tuple[list[FinishedTask], Change]:
    """A change of the first `count` results that are meant, and the list of these."""
    met: list[FinishedTask] = []

    def changed(library: Library, finished: FinishedTask) -> FinishedTask:
        if len(met) < times and is_meant(finished):
            met.append(finished)
            return change(library, finished)
        return finished

    return met, changed


def is_read_of(*names: str) -> Callable[[FinishedTask], bool]:
    return lambda done: isinstance(done.task, Read) and done.task.chunks[0].video.source.uri.endswith(names)


def is_identification_of(name: str) -> Callable[[FinishedTask], bool]:
    return lambda done: isinstance(done.task, Identify) and any(each.uri.endswith(name) for each in done.task.sources)


def lose(library: Library, finished: FinishedTask) -> FinishedTask:
    return FinishedTask(finished.worker, finished.task, None)


def failing(error_class: str, damaged: bool) -> Change:
    """Make a read one in which the first chunk failed, and left no row."""

    def fail(library: Library, finished: FinishedTask) -> FinishedTask:
        assert isinstance(finished.task, Read)
        chunk = finished.task.chunks[0]
        discard(library, chunk)
        failure = ChunkFailed(chunk, "decode", error_class, "changed by the test", damaged)
        return FinishedTask(finished.worker, finished.task, WorkDone((failure,), {}))

    return fail


@pytest.fixture(scope="module")
def few(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two films, one of them twice."""
    folder = tmp_path_factory.mktemp("few")
    for name in ("film-000.mp4", "again-000.mp4", "film-001.mp4"):
        shutil.copy(corpus / name, folder)
    return folder


ALWAYS = 1000


@pytest.mark.slow
def test_a_source_that_loses_its_worker_each_time_fails_with_its_duplicates(few: Path, tmp_path: Path) -> None:
    lost, changed = changing(ALWAYS, is_read_of("film-000.mp4", "again-000.mp4"), lose)
    library, coordinator = run(few, tmp_path / "library", changed)
    assert len(lost) == LOSSES
    classes = {Path(each.uri).name: each.error_class for each in coordinator.outcomes}
    assert classes["film-000.mp4"] == classes["again-000.mp4"] == "WorkerLost"
    failures = {each.uri: each.message for each in library.ingest_log.failures()}
    assert {Path(uri).name for uri in failures} == {"film-000.mp4", "again-000.mp4"}
    assert all(message.startswith(f"{uri}: the worker") for uri, message in failures.items())
    assert len(library.videos()) == 1
    # A second death of its decoder is a failure, too.
    _, changed = changing(ALWAYS, is_read_of("film-001.mp4"), failing(DecoderDied.__name__, damaged=False))
    library, _ = run(few, tmp_path / "dying", changed)
    (failure,) = library.ingest_log.failures()
    assert (Path(failure.uri).name, failure.error_class) == ("film-001.mp4", "DecoderDied")
    assert len(library.videos()) == 1


@pytest.mark.slow
def test_a_file_that_is_swapped_between_hash_and_decoding_is_identified_again(
    few: Path, corpus: Path, tmp_path: Path
) -> None:
    """The other file keeps the id, for it still has those bytes; the rows are as if none had ever changed."""
    films = shutil.copytree(few, tmp_path / "films")

    def swap(library: Library, finished: FinishedTask) -> FinishedTask:
        shutil.copy(corpus / "film-002.mp4", films / "new")
        (films / "new").replace(films / "again-000.mp4")
        return finished

    swapped, changed = changing(1, is_identification_of("again-000.mp4"), swap)
    library, coordinator = run(films, tmp_path / "library", changed)
    assert swapped
    calm, _ = run(films, tmp_path / "calm")
    assert len(library.videos()) == 3
    assert contents(library) == contents(calm)
    assert [each.state for each in coordinator.outcomes] == ["indexed"] * 3


@pytest.mark.slow
def test_a_file_that_changes_each_time_is_left_to_the_next_run(few: Path, tmp_path: Path) -> None:
    films = shutil.copytree(few, tmp_path / "films")
    growing = films / "film-001.mp4"

    def append(library: Library, finished: FinishedTask) -> FinishedTask:
        with growing.open("ab") as file:
            file.write(b"\0")
        return finished

    changes, changed = changing(ALWAYS, is_identification_of(growing.name), append)
    library, _ = run(films, tmp_path / "library", changed)
    assert len(changes) == CHANGES
    (failure,) = library.ingest_log.failures()
    assert (failure.uri, failure.stage, failure.error_class) == (str(growing), "fetch", "SourceChanged")
    assert len(library.videos()) == 1
    assert str(growing) not in library.ingest_log.sources(), "a known failure would not be tried again"
    assert library.tables.rows("frames").num_rows == library.videos()[0].frames


@pytest.mark.slow
def test_a_long_film_is_read_in_parts_the_last_one_by_all_workers_and_is_the_same(
    long_film: Path, tmp_path: Path
) -> None:
    def is_part(done: FinishedTask) -> bool:
        return isinstance(done.task, Read) and not done.task.may_split

    reads, note = changing(ALWAYS, is_part, lambda library, finished: finished)
    shared, _ = run(long_film, tmp_path / "shared", note, workers=2, cut_s=300.0)
    assert len(reads) >= 2 and {each.worker for each in reads} == {0, 1}
    cuts, note = changing(ALWAYS, is_read_of("film.mp4"), lambda library, finished: finished)
    cut, _ = run(long_film, tmp_path / "cut", note, cut_s=20.0)
    assert len(cuts) >= 2
    alone, _ = run(long_film, tmp_path / "alone")
    assert contents(shared) == contents(cut) == contents(alone)
