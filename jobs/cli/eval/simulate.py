"""`kinodex eval simulate`: agents' search studied with no video and no model."""

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
    """Search of EEA, its ablations, VCA and uniform under changing assumptions, and of EEA with other settings.

    SIMULATION: the model knows the evidence and errs as it is told to; no figure says anything about a real model.
    """
    from jobs.evaluation.run.systems import parse_systems
    from jobs.simulation.questions import made_questions, read_questions
    from jobs.simulation.run import simulate as simulated
    from jobs.simulation.run import write_simulation
    from jobs.simulation.sweeps import check_agents, chosen_sweeps, joined_all

    also = parse_systems(agent or [], controls=False)
    wanted = joined_all(chosen_sweeps(sweep or []), also)
    asked = read_questions(annotations, questions, seed) if annotations else made_questions(questions, seed)
    check_agents(also, asked)
    print(write_simulation(simulated(wanted, asked, seed, workers, _tell), out))


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
