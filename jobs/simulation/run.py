"""Run a simulation from beginning to end: sweeps in several processes, `simulate.json`, plots and a page."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread

from pydantic import TypeAdapter

from jobs.child_processes import without_interrupts
from jobs.errors import UsageError
from jobs.simulation.aggregate import Simulation, aggregate_sweep
from jobs.simulation.questions import describe
from jobs.simulation.sweeps import Sweep
from jobs.simulation.trial import Trial, TrialResult, run_trial
from jobs.simulation.world.assumptions import Noise, Scenery
from jobs.simulation.world.world import SimulatedQuestion

RESULTS = "simulate.json"
Map = Callable[[Callable[[Trial], list[TrialResult]], Sequence[Trial]], Iterator[list[TrialResult]]]


def simulate(
    sweeps: Sequence[Sweep],
    questions: Sequence[SimulatedQuestion],
    seed: int,
    workers: int,
    on_progress: Callable[[str], object],
) -> Simulation:
    """Run all trials of some sweeps on the same questions; `on_progress` gets a line for each finished sweep.

    Raises `UsageError` if a process dies.
    """
    run = partial(run_trial, questions=questions, seed=seed)
    done = []
    with _processes(workers) as map_trials:
        for sweep in sweeps:
            done.append(aggregate_sweep(sweep, list(map_trials(run, sweep.trials))))
            on_progress(f"{sweep.name}: {len(sweep.trials)} trials of {len(questions)} questions")
    return Simulation(describe(questions), seed, Scenery(), Noise(), tuple(done))


def write_simulation(simulation: Simulation, folder: Path) -> Path:
    """Write `simulate.json`, the plots and `simulate.html` into a folder; return the page's path."""
    from jobs.simulation.html import write_page

    folder.mkdir(parents=True, exist_ok=True)
    (folder / RESULTS).write_bytes(TypeAdapter(Simulation).dump_json(simulation, indent=1))
    return write_page(simulation, folder)


def read_simulation(folder: Path) -> Simulation:
    """Read the figures that `write_simulation` wrote."""
    return TypeAdapter(Simulation).validate_json((folder / RESULTS).read_bytes())


@contextmanager
def _processes(workers: int) -> Iterator[Map]:
    """Give a `map` over so many processes, or the plain one for a single worker."""
    if workers == 1:
        yield map
        return
    spawning = get_context("spawn")
    reader, writer = spawning.Pipe(duplex=False)
    pool = ProcessPoolExecutor(workers, mp_context=spawning, initializer=_end_with, initargs=(reader,))

    def map_trials(run: Callable[[Trial], list[TrialResult]], trials: Sequence[Trial]) -> Iterator[list[TrialResult]]:
        with without_interrupts():
            return pool.map(run, trials)

    try:
        yield map_trials
    except BrokenProcessPool as error:
        raise UsageError(
            f"one of the {workers} processes of the simulation died (out of memory?); run again with fewer --workers"
        ) from error
    finally:
        writer.close()
        pool.shutdown(cancel_futures=True)


def _end_with(pipe: Connection) -> None:
    """End this process as soon as the other end of a pipe is closed, also in the middle of a trial.

    So Ctrl-C ends all at once, and the parent alone reports it.
    """

    def wait() -> None:
        with suppress(EOFError, OSError):
            pipe.recv()
        os._exit(0)

    Thread(target=wait, daemon=True).start()
