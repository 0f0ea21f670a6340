"""A film is there whole, once, or not at all, and never lost, in whatever way workers and runs end.

A machine of hypothesis adds films (some under two addresses) and runs ingests whose workers die, stall, find damage
and answer when nobody waits for it any more. The suite tries the same each time; `KINODEX_EXAMPLES=200` that many new.
"""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from kinodex.index.library import Library
from kinodex.index.sweep import audit, sweep
from kinodex.jobs.ingest.messages import Task
from tests.support.faults.crew import FATES, Film, RunEnded, ingest, new_library

EXAMPLES, STEPS = int(os.environ.get("KINODEX_EXAMPLES", "3")), 5
FILMS = [Film(f"film {number}", frames) for number, frames in enumerate((1, 4, 6, 9))]


class Ingests(RuleBasedStateMachine):
    """`sources` are the films by address, `done` those of which a run said that they are there."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = TemporaryDirectory()
        self.library = new_library(Path(self._folder.name) / "library")
        self.sources: dict[str, Film] = {}
        self.done: set[Film] = set()

    def teardown(self) -> None:
        """An undisturbed run at the end does all that is left."""
        if self.sources:
            states = ingest(self.library, self.sources)
            assert states["failed"] == 0 and states.total() == len(self.sources)
        sweep(self.library)
        assert audit(self.library, deep=True).problems == ()
        assert {row.video_id for row in self.library.videos()} == {film.video_id for film in self.sources.values()}
        self.whole()
        self._folder.cleanup()

    @rule(films=st.lists(st.sampled_from(FILMS), min_size=1, max_size=4), again=st.booleans())
    def more(self, films: list[Film], again: bool) -> None:
        self.sources |= {f"/films/{film.name}{copy}.mp4": film for film in films for copy in ("", *["'s copy"] * again)}

    @precondition(lambda self: self.sources)
    @rule(data=st.data(), workers=st.integers(1, 3), reopened=st.booleans())
    def run(self, data: st.DataObject, workers: int, reopened: bool) -> None:
        """A run that may be over before it is through; no more than ten tasks meet anything."""
        fates = iter(data.draw(st.lists(st.sampled_from(FATES), max_size=10), "fates"))

        def fate(task: Task) -> str:
            return next(fates, "done")

        if reopened:
            self.library = Library.open(self.library.uri)
        try:
            states = ingest(self.library, self.sources, workers, fate)
        except RunEnded:
            return
        assert states.total() == len(self.sources), "each source has its outcome"
        failed = {row.uri for row in self.library.ingest_log.failures()}
        assert states["failed"] <= len(failed)
        self.done |= {film for uri, film in self.sources.items() if uri not in failed}

    @invariant()
    def whole(self) -> None:
        """Each film that is seen has its frames and lines once; those that were done stay."""
        held = {row.video_id: row for row in self.library.videos()}
        assert {film.video_id for film in self.done} <= held.keys()
        for film in FILMS:
            if film.video_id not in held:
                continue
            numbers = self.library.vectors(film.video_id).frame_no.tolist()
            assert numbers == list(range(film.frames)), film
            assert [frame.frame_no for frame in self.library.frames(film.video_id, numbers)] == numbers
            assert [line.text for line in self.library.speech(film.video_id)] == [film.line]
        found = audit(self.library, deep=True)
        assert (found.broken, found.damaged, found.altered, found.added.broken) == ((), (), (), ()), found


@pytest.mark.slow
def test_any_fate_of_workers_and_runs() -> None:
    chosen = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        deadline=None,
        derandomize="KINODEX_EXAMPLES" not in os.environ,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Ingests, settings=chosen)
