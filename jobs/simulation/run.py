"""A simulation from end to end: sweeps in several processes, their figures, `simulate.json`, plots and a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from pydantic import TypeAdapter

from jobs.simulation.aggregate import Swept, summed
from jobs.simulation.questions import described
from jobs.simulation.sweeps import Sweep
from jobs.simulation.trial import Trial, TrialResult, run_trial
from jobs.simulation.world.assumptions import Noise, Scenery
from jobs.simulation.world.world import Sought

RESULTS = "simulate.json"
Map = Callable[[Callable[[Trial], list[TrialResult]], Sequence[Trial]], Iterator[list[TrialResult]]]


@dataclass(frozen=True, slots=True)
class Simulation:
    """What `simulate.json` holds: figures of no model and of no video."""

    questions: str
    """The question set in one line."""
    seed: int
    scenery: Scenery
    """As assumed where a sweep says nothing else."""
    noise: Noise
    sweeps: tuple[Swept, ...]
    simulated: bool = True


def simulate(
    sweeps: Sequence[Sweep], questions: Sequence[Sought], seed: int, workers: int, told: Callable[[str], object]
) -> Simulation:
    """Run all trials of some sweeps on the same questions; `told` hears when a sweep is done."""
    run = partial(run_trial, questions=questions, seed=seed)
    done = []
    with _processes(workers) as mapped:
        for sweep in sweeps:
            done.append(summed(sweep, list(mapped(run, sweep.trials))))
            told(f"{sweep.name}: {len(sweep.trials)} trials of {len(questions)} questions")
    return Simulation(described(questions), seed, Scenery(), Noise(), tuple(done))


def write_simulation(simulation: Simulation, folder: Path) -> Path:
    """Write `simulate.json`, the plots and `simulate.html` into a folder; gives the page's path."""
    from jobs.simulation.html import write_page

    folder.mkdir(parents=True, exist_ok=True)
    (folder / RESULTS).write_bytes(TypeAdapter(Simulation).dump_json(simulation, indent=1))
    return write_page(simulation, folder)


def read_simulation(folder: Path) -> Simulation:
    """The figures that `write_simulation` wrote."""
    return TypeAdapter(Simulation).validate_json((folder / RESULTS).read_bytes())


@contextmanager
def _processes(workers: int) -> Iterator[Map]:
    """`map` over so many processes; in this one if it is 1."""
    if workers == 1:
        yield map
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield pool.map
