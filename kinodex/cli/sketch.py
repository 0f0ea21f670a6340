"""`kinodex sample` and `kinodex demo`: films with known answers, and everything else with them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer


def sample(
    directory: Annotated[Path, typer.Argument(help="Folder for the films, their scripts and questions.jsonl.")],
    hours: Annotated[float, typer.Option(min=0.01, max=1000.0, help="Hours of film in all.")] = 0.1,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same films and questions.")] = 0,
    form: Annotated[
        Literal["story", "shuffled", "independent"],
        typer.Option(
            help="story: places that last, things that come, go and change hands, talk and signs; shuffled: the same "
            "shots in random order; independent: every shot by itself."
        ),
    ] = "story",
) -> None:
    """Write films of the sketch world (drawn by code, no network) and questions with known answers."""
    from rich.progress import Progress

    from kinodex.jobs.errors import UsageError
    from kinodex.jobs.output import error_console
    from kinodex.sketch.sample import sample as write

    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UsageError(f"{directory} already exists; give a new or an empty folder")
    with Progress(console=error_console(), transient=True) as bar:
        task = bar.add_task("drawing films", total=1.0)
        films = write(directory, hours, seed, lambda part: bar.update(task, completed=part), form=form)
    for film in films:
        print(film)
    print(directory / "questions.jsonl")


def demo(
    directory: Annotated[Path, typer.Argument(help="Folder for the films, the library, frames and traces.")] = Path(
        "demo"
    ),
) -> None:
    """Make films and a library, search it and ask three questions: the whole job, offline, in minutes."""
    from kinodex.cli.demo import run_demo

    run_demo(directory)


# `kinodex eval simulate`: study the search of agents with no video and no model.


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
    from kinodex.jobs.eval.contenders import parse_contenders
    from kinodex.sketch import simulation
    from kinodex.sketch.simulation import add_agents, check_agents, make_questions, read_questions, select_sweeps

    also = parse_contenders(agent or [], controls=False)
    sweeps = add_agents(select_sweeps(sweep or []), also)
    asked = read_questions(annotations, questions, seed) if annotations else make_questions(questions, seed)
    check_agents(also, asked)
    print(simulation.write_simulation(simulation.simulate(sweeps, asked, seed, workers, _print_progress), out))


def _print_progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
