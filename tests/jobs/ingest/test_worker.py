"""A worker: rows in large commits, errors that reach the caller, sources that change on the way."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from numpy.typing import NDArray

from kinodex.index.errors import LeaseLost
from kinodex.index.library import Library
from kinodex.index.store.filters import equal
from kinodex.index.sweep import sweep
from kinodex.jobs.ingest.chunk_rows import ChunkWriter, discard
from kinodex.jobs.ingest.messages import Assignment, ChunkFailed, ChunkRead
from kinodex.jobs.ingest.worker import Worker
from kinodex.pipeline.fetch import FetchedVideo
from kinodex.pipeline.sample import Chunk, ChunkSummary, FrameRow
from kinodex.pipeline.sandbox import SandboxLimits
from kinodex.pipeline.source import Source
from tests.support.ffmpeg import READING, ColourTower, read_whole, whole
from tests.support.libraries.corpus import draw_film
from tests.support.libraries.random_library import made
from tests.support.models.stage_models import tiny_film

CHUNKS = [Chunk(FetchedVideo(Source(f"/{name}.mp4", name), f"/{name}.mp4", name, 10)) for name in ("aaaa", "bbbb")]


FRAMES = {number: made(chunk.video.video_id, 6, number).frame_rows() for number, chunk in enumerate(CHUNKS)}


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> ChunkSummary:
    return read_whole(tiny_film(tmp_path_factory.mktemp("film") / "film.mp4", 1, 0))[0]


@pytest.fixture
def assignment(library: Library) -> Iterator[Assignment]:
    with library.lease("ingest", "a test") as lease:
        yield Assignment(library.uri, ("ingest", lease.token), READING, SandboxLimits(), 8)


def rows_in(library: Library, number: int) -> list[int]:
    """The numbers of a chunk's frames in the table, shown to readers or not."""
    found = library.tables.rows("frames", equal("video_id", CHUNKS[number].video.video_id), ["frame_no"])
    return sorted(found["frame_no"].to_pylist())


def part(number: int, first: int, until: int) -> dict[int, list[FrameRow]]:
    return {number: FRAMES[number][first:until]}


def test_rows_wait_for_a_large_commit_and_distances_go_across_batches(
    library: Library, assignment: Assignment, summary: ChunkSummary
) -> None:
    writer = ChunkWriter(library, assignment, CHUNKS[:1])
    assert [writer.add(part(0, 0, 2)), writer.add(part(0, 2, 6))] == [1.0, 4.0]
    assert not writer.is_due
    writer.end(0, summary)
    (result,) = writer.results()
    assert isinstance(result, ChunkRead)
    vectors = np.stack([row.vector for row in FRAMES[0]]).astype(np.float64)
    np.testing.assert_allclose(result.distances, 1 - np.sum(vectors[1:] * vectors[:-1], axis=1))
    np.testing.assert_array_equal(result.ends, np.stack([FRAMES[0][0].vector, FRAMES[0][-1].vector]))
    assert rows_in(library, 0) == list(range(6))


def test_enough_rows_are_due_and_appended_once_and_a_chunk_that_fails_leaves_none(
    library: Library, assignment: Assignment, summary: ChunkSummary
) -> None:
    failure = ChunkFailed(CHUNKS[1], "decode", "NothingDecodes", "no frame")
    for end, kinds, left in ((failure, ["ChunkRead", "ChunkFailed"], 0), (summary, ["ChunkRead"] * 2, 6)):
        writer = ChunkWriter(library, assignment, CHUNKS)
        writer.add({0: FRAMES[0], 1: FRAMES[1][:2]})
        assert writer.is_due
        writer.append()
        assert not writer.is_due
        writer.add(part(1, 2, 6))
        writer.end(0, summary)
        writer.end(1, end)
        assert [type(each).__name__ for each in writer.results()] == kinds
        assert (rows_in(library, 0), rows_in(library, 1)) == (list(range(6)), list(range(left)))
        discard(library, *CHUNKS)
    lost = replace(assignment, lease=("ingest", "another token"))
    writer = ChunkWriter(library, lost, CHUNKS)
    writer.add(part(0, 0, 6))
    with pytest.raises(LeaseLost):
        writer.append()
    assert rows_in(library, 0) == []


def test_a_video_that_cannot_be_kept_fails_alone(
    library: Library, assignment: Assignment, summary: ChunkSummary
) -> None:
    changes: list[dict[str, Any]] = [{"frame_no": 2**31}, {"vector": np.full(32, np.nan, np.float16)}]
    for change, ends_first in product(changes, (False, True)):
        writer = ChunkWriter(library, assignment, CHUNKS)
        writer.add({0: FRAMES[0][:3], 1: FRAMES[1][:3]})
        writer.append()
        rest = {0: [replace(FRAMES[0][3], **change), *FRAMES[0][4:]], 1: FRAMES[1][3:]}
        if not ends_first:
            writer.add(rest)
        writer.end(0, summary)
        writer.end(1, summary)
        if ends_first:
            writer.add(rest)
        failed, read = writer.results()
        assert isinstance(failed, ChunkFailed) and (failed.stage, failed.error_class) == ("write", "NotKept"), change
        assert isinstance(read, ChunkRead)
        assert (rows_in(library, 0), rows_in(library, 1)) == ([], list(range(6)))
        discard(library, *CHUNKS)


BATCH = 4


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """Two films of twelve seconds."""
    folder = tmp_path_factory.mktemp("films")
    for seed in (3, 4):
        draw_film(folder / f"{seed}.mp4", 12.0, seed)
    return (folder / "3.mp4").read_bytes(), (folder / "4.mp4").read_bytes()


@contextmanager
def worker_of(library: Library, folder: Path) -> Iterator[Worker]:
    with library.lease("ingest", "a test") as lease:
        reading = replace(READING, batch=BATCH)
        worker = Worker(Assignment(library.uri, ("ingest", lease.token), reading, SandboxLimits(), BATCH), folder)
        yield worker
        worker.close()


@pytest.mark.slow
def test_an_error_of_the_model_reaches_the_caller_and_ends_the_threads(
    library: Library, films: tuple[bytes, bytes], tmp_path: Path
) -> None:
    film = tmp_path / "film.mp4"
    film.write_bytes(films[0])
    embedded: list[int] = []
    for good_batches in (0, 2):
        embedded.clear()

        def embed(
            batch: NDArray[np.uint8], good: int = good_batches, seen: list[int] = embedded
        ) -> NDArray[np.float16]:
            seen.append(len(batch))
            if len(seen) > good:
                raise ZeroDivisionError("a programming error")
            return ColourTower().embed(batch)

        with worker_of(library, tmp_path) as worker:
            threads = threading.active_count()
            with pytest.raises(ZeroDivisionError, match="a programming error"):
                worker.read([whole(film)], embed, may_split=False)
            assert threading.active_count() == threads
            assert worker.frames == BATCH * good_batches
            assert sweep(library) == bool(good_batches), "what was written before is left over, and nothing else"


@pytest.mark.slow
def test_a_source_that_changes_between_hash_and_decoding_leaves_no_row(
    library: Library, films: tuple[bytes, bytes], tmp_path: Path
) -> None:
    """Replaced by another film, or by what no decoder reads; or, remote, fetched again by another machine's worker."""
    film, store = tmp_path / "film.mp4", fsspec.filesystem("memory")
    (fetched := tmp_path / "fetched").mkdir()

    def replace_file(content: bytes) -> None:
        (tmp_path / "other.mp4").write_bytes(content)
        (tmp_path / "other.mp4").replace(film)

    changes: dict[str, tuple[str, Callable[[], object]]] = {
        "another film": (str(film), lambda: replace_file(films[1])),
        "no film": (str(film), lambda: film.write_bytes(b"no film any more")),
        "remote": ("memory://changes/film.mp4", lambda: store.pipe("/changes/film.mp4", films[1])),
    }
    for name, (uri, change) in changes.items():
        film.write_bytes(films[0])
        store.pipe("/changes/film.mp4", films[0])
        with worker_of(library, fetched) as worker:
            (found,) = worker.identify([Source(uri, "film")]).results
            assert isinstance(found, FetchedVideo)
            worker.forget(found)
            change()
            (result,) = worker.read([Chunk(found)], ColourTower().embed, may_split=True).results
        assert isinstance(result, ChunkFailed), name
        assert (result.stage, result.error_class, result.damaged) == ("fetch", "SourceChanged", False), name
        assert library.tables.rows("frames").num_rows == 0
        assert list(fetched.iterdir()) == []
