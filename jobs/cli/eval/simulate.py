"""`kinodex eval simulate`: study the search of agents with no video and no model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def simulate(
    out: Annotated[Path, typer.Option(help="Folder for simulate.json, simulate.html and figures.")],
    sweep: Annotated[
        list[str] | None, typer.Option(help="Only this sweep; may be repeated. An unknown name lists them.")
    ] = None,
    agent: Annotated[
        list[str] | None,
        typer.Option(metavar="AGENT[:NAME=VALUE,..]", help="Also this agent under all conditions; may be repeated."),
    ] = None,
    questions: Annotated[int, typer.Option(min=10, help="Questions in every trial.")] = 200,
    annotations: Annotated[
        Path | None,
        typer.Option(exists=True, help="LVBench's annotation file: its lengths and time references are used."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
) -> None:
    """Simulate the search of EEA, its ablations, VCA and uniform under changing assumptions, and EEA's settings.

    SIMULATION: the model knows the evidence and errs at set rates; no figure says anything about a real model.
    """
    from jobs.evaluation.run.systems import parse_systems
    from jobs.simulation import run
    from jobs.simulation.questions import make_questions, read_questions
    from jobs.simulation.sweeps import add_agents, check_agents, select_sweeps

    also = parse_systems(agent or [], controls=False)
    sweeps = add_agents(select_sweeps(sweep or []), also)
    asked = read_questions(annotations, questions, seed) if annotations else make_questions(questions, seed)
    check_agents(also, asked)
    print(run.write_simulation(run.simulate(sweeps, asked, seed, workers, _print_progress), out))


def _print_progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
