"""`kinodex bench`: what was measured, measured again on this machine."""

from __future__ import annotations

import sys
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


@app.command()
def search(
    directory: Annotated[Path, typer.Argument(help="Folder for the made-up library; what is there is used.")],
    videos: Annotated[int, typer.Option(min=1, help="Videos in it.")] = 1000,
    frames: Annotated[int, typer.Option(min=20, help="Frames a video.")] = 1000,
    lines: Annotated[int, typer.Option(min=1, help="Transcript lines a video, and as many captions.")] = 100,
    dim: Annotated[int, typer.Option(min=8, help="Numbers in a vector.")] = 512,
    jpeg_bytes: Annotated[int, typer.Option(min=1, help="Bytes of a stored picture.")] = 1000,
    queries: Annotated[int, typer.Option(min=1, help="Questions of each kind.")] = 100,
    json: JsonOption = False,
) -> None:
    """Searches of a library of a million made-up frames: warm, freshly opened and cold, with recall."""
    from jobs.bench_search import bench_search, table
    from jobs.made_library import Size
    from jobs.show import print_json

    def told(done: int) -> None:
        print(f"\r{done} of {videos} videos written", end="", file=sys.stderr, flush=True)

    figures = bench_search(directory, Size(videos, frames, lines, dim, jpeg_bytes), queries, told)
    print(file=sys.stderr)
    if json:
        print_json(asdict(figures))
    else:
        print(table(figures))
