"""`kinodex sample` and `kinodex demo`: films with known answers, and everything else with them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from kinodex.jobs.errors import UsageError
from kinodex.output import error_console


def sample(
    directory: Annotated[Path, typer.Argument(help="Folder for the films, their scripts and questions.jsonl.")],
    hours: Annotated[float, typer.Option(min=0.01, max=1000.0, help="Hours of film in all.")] = 0.1,
    minutes: Annotated[
        float | None,
        typer.Option(min=0.5, max=600.0, help="Minutes of each film; by default three films, or as many as hours."),
    ] = None,
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

    from kinodex.sketch.sample import sample as write

    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UsageError(f"{directory} already exists; give a new or an empty folder")
    with Progress(console=error_console(), transient=True) as bar:
        task = bar.add_task("drawing films", total=1.0)
        films = write(directory, hours, seed, lambda part: bar.update(task, completed=part), form=form, minutes=minutes)
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
