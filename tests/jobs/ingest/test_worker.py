"""An error in a worker reaches its caller, and leaves no thread behind."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from index.library import Library
from index.maintenance.sweep import sweep
from jobs.ingest.messages import Assignment
from jobs.ingest.worker import Worker
from jobs.synthetic.world.render import render_film
from jobs.synthetic.world.script import write_script
from pipeline.sampling.sandbox import SandboxLimits
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
