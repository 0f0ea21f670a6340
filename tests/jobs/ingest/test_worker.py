"""An error in a worker reaches its caller and leaves no thread behind; a source that changes leaves no row."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import fsspec
import numpy as np
import pytest
from numpy.typing import NDArray

from kinodex.index.library import Library
from kinodex.index.sweep import sweep
from kinodex.jobs.ingest.messages import Assignment, ChunkFailed
from kinodex.jobs.ingest.worker import Worker
from kinodex.pipeline.fetch import FetchedVideo, Source
from kinodex.pipeline.sample import Chunk
from kinodex.pipeline.sandbox import SandboxLimits
from kinodex.sketch.script import render_film, write_script
from tests.support.ffmpeg import READING, ColourTower, whole
from tests.support.libraries.random_library import SETTINGS, fingerprint

BATCH = 4


@pytest.mark.parametrize("good_batches", [0, 2])
def test_an_error_of_the_model_reaches_the_caller_and_ends_the_threads(tmp_path: Path, good_batches: int) -> None:
    film = tmp_path / "film.mp4"
    render_film(write_script("film", 12.0, 3), film)
    library = Library.create(f"{tmp_path}/library", SETTINGS, fingerprint())
    embedded: list[int] = []

    def embed(batch: NDArray[np.uint8]) -> NDArray[np.float16]:
        embedded.append(len(batch))
        if len(embedded) > good_batches:
            raise ZeroDivisionError("a programming error")
        return ColourTower().embed(batch)

    with library.lease("ingest", "a test") as lease:
        reading = replace(READING, batch=BATCH)
        worker = Worker(Assignment(library.uri, ("ingest", lease.token), reading, SandboxLimits(), BATCH), tmp_path)
        threads = threading.active_count()
        with pytest.raises(ZeroDivisionError, match="a programming error"):
            worker.read([whole(film)], embed, may_split=False)
        assert threading.active_count() == threads
        worker.close()
        assert worker.frames == BATCH * good_batches
        assert sweep(library) == bool(good_batches), "what was written before is left over, and nothing else"


def test_a_file_that_is_replaced_between_hash_and_decoding_leaves_no_row(tmp_path: Path) -> None:
    film, other = tmp_path / "film.mp4", tmp_path / "other.mp4"
    render_film(write_script("film", 12.0, 3), film)
    render_film(write_script("other", 12.0, 4), other)
    library = Library.create(f"{tmp_path}/library", SETTINGS, fingerprint())
    with library.lease("ingest", "a test") as lease:
        reading = replace(READING, batch=BATCH)
        worker = Worker(Assignment(library.uri, ("ingest", lease.token), reading, SandboxLimits(), BATCH), tmp_path)
        (found,) = worker.identify([Source(str(film), "film")]).results
        assert isinstance(found, FetchedVideo)
        other.replace(film)
        (result,) = worker.read([Chunk(found)], ColourTower().embed, may_split=False).results
        worker.close()
    assert isinstance(result, ChunkFailed)
    assert (result.stage, result.error_class, result.damaged) == ("fetch", "SourceChanged", False)
    assert library.tables.rows("frames").num_rows == 0


def test_a_file_that_a_decoder_cannot_read_because_it_changed_has_changed(tmp_path: Path) -> None:
    film = tmp_path / "film.mp4"
    render_film(write_script("film", 4.0, 3), film)
    library = Library.create(f"{tmp_path}/library", SETTINGS, fingerprint())
    with library.lease("ingest", "a test") as lease:
        worker = Worker(Assignment(library.uri, ("ingest", lease.token), READING, SandboxLimits(), BATCH), tmp_path)
        (found,) = worker.identify([Source(str(film), "film")]).results
        assert isinstance(found, FetchedVideo)
        film.write_bytes(b"no film any more")
        (result,) = worker.read([Chunk(found)], ColourTower().embed, may_split=True).results
        worker.close()
    assert isinstance(result, ChunkFailed)
    assert result.error_class == "SourceChanged"


def test_a_remote_source_that_changed_before_it_was_fetched_again_has_changed(tmp_path: Path) -> None:
    """A worker on another machine fetches for itself what the one that identified it no longer has."""
    film, other = tmp_path / "film.mp4", tmp_path / "other.mp4"
    render_film(write_script("film", 4.0, 3), film)
    render_film(write_script("other", 4.0, 4), other)
    store = fsspec.filesystem("memory")
    store.pipe("/changes/film.mp4", film.read_bytes())
    library = Library.create(f"{tmp_path}/library", SETTINGS, fingerprint())
    fetched = tmp_path / "fetched"
    fetched.mkdir()
    with library.lease("ingest", "a test") as lease:
        worker = Worker(Assignment(library.uri, ("ingest", lease.token), READING, SandboxLimits(), BATCH), fetched)
        (found,) = worker.identify([Source("memory://changes/film.mp4", "film")]).results
        assert isinstance(found, FetchedVideo)
        worker.forget(found)
        store.pipe("/changes/film.mp4", other.read_bytes())
        (result,) = worker.read([Chunk(found)], ColourTower().embed, may_split=True).results
        worker.close()
    assert isinstance(result, ChunkFailed)
    assert result.error_class == "SourceChanged"
    assert list(fetched.iterdir()) == []
    assert library.tables.rows("frames").num_rows == 0
