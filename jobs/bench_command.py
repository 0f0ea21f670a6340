"""`kinodex bench`: what was measured, measured again on this machine."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from jobs.library_commands import JsonOption

app = typer.Typer(no_args_is_help=True, help="Measure speed and search on this machine.")


@app.command()
def ingest(
    video: Annotated[Path, typer.Argument(help="The video to measure on.")],
    space: Annotated[str, typer.Option(help="Embedding space.")] = "builtin",
    fps: Annotated[float, typer.Option(help="Frames sampled a second.")] = 1.0,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds; the medians are printed.")] = 3,
    json: JsonOption = False,
) -> None:
    """Frames a second end to end, against decoding, embedding and JPEG each alone."""
    from index.spaces import load_space
    from jobs.bench_ingest import bench_ingest, table
    from jobs.settings import checked_settings
    from jobs.show import print_json

    figures = bench_ingest(video, load_space(space, towers="image"), checked_settings(fps=fps), rounds)
    if json:
        print_json(asdict(figures))
    else:
        print(table(figures))


@app.command()
def agent(
    directory: Annotated[Path, typer.Argument(help="Folder for films, library and results; what is there is used.")],
    hours: Annotated[float, typer.Option(min=0.1, help="Hours of sketch film, in films of one hour.")] = 3.0,
    questions: Annotated[int, typer.Option(min=1, help="Questions at most.")] = 120,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    json: JsonOption = False,
) -> None:
    """EEA, its three ablations and uniform at equal frames, on sketch films with known answers."""
    from jobs.bench_agent import bench_agent, table
    from jobs.show import print_json

    rows = bench_agent(directory, hours, questions, seed)
    if json:
        print_json([asdict(row) for row in rows])
    else:
        print(table(rows))
