"""The coordinator: each video once, whatever workers lose or find damaged, and duplicates share its outcome."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kinodex.index.library import Library
from kinodex.jobs.ingest.coordinator import CHANGES, LOSSES, Coordinator, RunLimits
from kinodex.jobs.ingest.messages import Assignment, ChunkFailed, FinishedTask, Identify, Read, WorkDone, WorkQueue
from kinodex.jobs.ingest.sources import IdSet
from kinodex.jobs.ingest.worker import SPLIT_FROM_BYTES, LocalExecutor, Worker, discard
from kinodex.pipeline.errors import DecoderDied
from kinodex.pipeline.sample import Chunk, IngestSettings
from kinodex.pipeline.sandbox import SandboxLimits
from kinodex.pipeline.sources import list_sources
from kinodex.sketch.script import render_film, write_script
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


def is_read_of(finished: FinishedTask, name: str) -> bool:
    return isinstance(finished.task, Read) and finished.task.chunks[0].video.source.uri.endswith(name)


def chunk_of(finished: FinishedTask) -> Chunk:
    assert isinstance(finished.task, Read)
    return finished.task.chunks[0]


@pytest.fixture(scope="module")
def few(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two films, one of them twice."""
    folder = tmp_path_factory.mktemp("few")
    for name in ("film-000.mp4", "again-000.mp4", "film-001.mp4"):
        shutil.copy(corpus / name, folder)
    return folder


@pytest.fixture(scope="module")
def undisturbed(few: Path, tmp_path_factory: pytest.TempPathFactory) -> Library:
    return run(few, tmp_path_factory.mktemp("undisturbed") / "library")[0]


def test_tasks_of_lost_workers_are_retried_and_leave_no_row_twice(
    few: Path, undisturbed: Library, tmp_path: Path
) -> None:
    lost: list[FinishedTask] = []

    def lose_some(library: Library, finished: FinishedTask) -> FinishedTask:
        if len(lost) < 3:
            lost.append(finished)
            return FinishedTask(finished.worker, finished.task, None)
        return finished

    library, coordinator = run(few, tmp_path / "library", lose_some)
    assert coordinator.retried == len(lost) == 3
    assert contents(library) == contents(undisturbed)


def test_a_source_that_loses_its_worker_each_time_fails_with_its_duplicates(few: Path, tmp_path: Path) -> None:
    lost: list[FinishedTask] = []

    def lose_one_film(library: Library, finished: FinishedTask) -> FinishedTask:
        if is_read_of(finished, "film-000.mp4") or is_read_of(finished, "again-000.mp4"):
            lost.append(finished)
            return FinishedTask(finished.worker, finished.task, None)
        return finished

    library, coordinator = run(few, tmp_path / "library", lose_one_film)
    assert len(lost) == LOSSES
    classes = {Path(each.uri).name: each.error_class for each in coordinator.outcomes}
    assert classes["film-000.mp4"] == classes["again-000.mp4"] == "WorkerLost"
    failures = {each.uri: each.message for each in library.ingest_log.failures()}
    assert {Path(uri).name for uri in failures} == {"film-000.mp4", "again-000.mp4"}
    assert all(message.startswith(f"{uri}: the worker") for uri, message in failures.items())
    assert len(library.videos()) == 1


def failed(library: Library, finished: FinishedTask, error_class: str, *, damaged: bool) -> FinishedTask:
    """The end of a read in which the first chunk failed, and left no row."""
    chunk = chunk_of(finished)
    discard(library, chunk)
    failure = ChunkFailed(chunk, "decode", error_class, "changed by the test", damaged)
    return FinishedTask(finished.worker, finished.task, WorkDone((failure,), {}))


@pytest.mark.parametrize(("error_class", "damaged"), [("SpanDamaged", True), (DecoderDied.__name__, False)])
def test_a_damaged_part_or_the_first_death_of_a_decoder_is_read_again_whole(
    few: Path, undisturbed: Library, tmp_path: Path, error_class: str, damaged: bool
) -> None:
    changed: list[FinishedTask] = []

    def fail_once(library: Library, finished: FinishedTask) -> FinishedTask:
        if not changed and is_read_of(finished, "film-001.mp4"):
            changed.append(finished)
            return failed(library, finished, error_class, damaged=damaged)
        return finished

    library, coordinator = run(few, tmp_path / "library", fail_once)
    assert changed
    assert coordinator.retried == 0
    assert contents(library) == contents(undisturbed)


def test_a_second_death_of_the_decoder_is_a_failure(few: Path, tmp_path: Path) -> None:
    def fail_always(library: Library, finished: FinishedTask) -> FinishedTask:
        if is_read_of(finished, "film-001.mp4"):
            return failed(library, finished, DecoderDied.__name__, damaged=False)
        return finished

    library, _ = run(few, tmp_path / "library", fail_always)
    failures = {Path(row.uri).name: row.error_class for row in library.ingest_log.failures()}
    assert failures["film-001.mp4"] == "DecoderDied"
    assert len(library.videos()) == 1


def test_rows_that_are_missing_when_they_are_counted_are_read_again(
    few: Path, undisturbed: Library, tmp_path: Path
) -> None:
    dropped: list[FinishedTask] = []

    def drop_rows_once(library: Library, finished: FinishedTask) -> FinishedTask:
        if not dropped and is_read_of(finished, "film-001.mp4"):
            dropped.append(finished)
            discard(library, chunk_of(finished))
        return finished

    library, coordinator = run(few, tmp_path / "library", drop_rows_once)
    assert coordinator.retried == len(dropped) == 1
    assert contents(library) == contents(undisturbed)


def is_identification_of(finished: FinishedTask, name: str) -> bool:
    return isinstance(finished.task, Identify) and any(each.uri.endswith(name) for each in finished.task.sources)


def test_a_file_that_is_swapped_between_hash_and_decoding_is_identified_again(
    few: Path, corpus: Path, tmp_path: Path
) -> None:
    """The other file keeps the id, for it still has those bytes; the rows are as if none had ever changed."""
    films = shutil.copytree(few, tmp_path / "films")
    swapped: list[FinishedTask] = []

    def swap_once(library: Library, finished: FinishedTask) -> FinishedTask:
        if not swapped and is_identification_of(finished, "again-000.mp4"):
            swapped.append(finished)
            shutil.copy(corpus / "film-002.mp4", films / "new")
            (films / "new").replace(films / "again-000.mp4")
        return finished

    library, coordinator = run(films, tmp_path / "library", swap_once)
    assert swapped
    calm, _ = run(films, tmp_path / "calm")
    assert len(library.videos()) == 3
    assert contents(library) == contents(calm)
    assert [each.state for each in coordinator.outcomes] == ["indexed"] * 3


def test_a_file_that_changes_each_time_is_left_to_the_next_run(few: Path, tmp_path: Path) -> None:
    films = shutil.copytree(few, tmp_path / "films")
    changing = films / "film-001.mp4"
    changes: list[FinishedTask] = []

    def append_each_time(library: Library, finished: FinishedTask) -> FinishedTask:
        if is_identification_of(finished, changing.name):
            changes.append(finished)
            with changing.open("ab") as file:
                file.write(b"\0")
        return finished

    library, _ = run(films, tmp_path / "library", append_each_time)
    assert len(changes) == CHANGES
    (failure,) = library.ingest_log.failures()
    assert (failure.uri, failure.stage, failure.error_class) == (str(changing), "fetch", "SourceChanged")
    assert len(library.videos()) == 1
    assert str(changing) not in library.ingest_log.sources(), "a known failure would not be tried again"
    assert library.tables.rows("frames").num_rows == library.videos()[0].frames


@pytest.mark.slow
def test_the_last_film_is_read_in_parts_by_all_workers_and_is_the_same(tmp_path: Path) -> None:
    film = tmp_path / "films" / "film.mp4"
    film.parent.mkdir()
    render_film(write_script("film", 120.0, 3), film)
    assert film.stat().st_size > SPLIT_FROM_BYTES, "too small to be looked at for cutting"
    reads: list[FinishedTask] = []

    def note(library: Library, finished: FinishedTask) -> FinishedTask:
        reads.extend([finished] if isinstance(finished.task, Read) and not finished.task.may_split else [])
        return finished

    shared, _ = run(film.parent, tmp_path / "shared", note, workers=2, cut_s=300.0)
    alone, _ = run(film.parent, tmp_path / "alone", workers=1, cut_s=300.0)
    assert len(reads) >= 4 and {each.worker for each in reads} == {0, 1}
    assert contents(shared) == contents(alone)
