"""`kinodex demo`: the whole job, with films that kinodex draws itself."""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from itertools import count
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from kinodex.agent.evidence import Evidence
from kinodex.agent.traces.trace import read_trace
from kinodex.index.library import Library
from kinodex.index.times import clock
from kinodex.jobs.known_answers import KnownQuestion, read_known
from kinodex.output import console, error_console, say
from kinodex.sketch.films import write_films

HOURS, SEED = 0.1, 1
KINDS = ("colour", "needle", "after")
"""One question of each kind, each about another film. The sample is one where all goes well; how often it does
is what `kinodex eval sketch` measures."""
QUERY = "a purple ball in the meadow"
"""What is on screen for three seconds of one film."""


def demo(
    directory: Annotated[Path, typer.Argument(help="Folder for the films, the library, frames and traces.")] = Path(
        "demo"
    ),
) -> None:
    """Make films and a library, search it and ask three questions: the whole job, offline, in minutes."""
    out, began, steps = console(), time.monotonic(), count(1)
    films, place = directory / "films", directory / "library"
    if (films / "questions.jsonl").exists():
        out.print(f"\nthe films are in {films} already")
    else:
        _draw(out, next(steps), films)
    _run(out, next(steps), "ingest", films, "--library", place, "--space", "builtin")
    library = Library.open(str(place))
    _run(out, next(steps), "search", place, QUERY, "-k", 3, "--min-gap", 5)
    right = 0
    for number, known in enumerate(_chosen(read_known(films / "questions.jsonl")), 1):
        trace = directory / f"trace_{number}.jsonl"
        options = [part for option in known.question.options for part in ("--option", option)]
        asked = known.question.text, *options, "--video", known.film, "--trace", trace
        _run(out, next(steps), "ask", place, *asked)
        answer = read_trace(trace)[-1]["answer"]
        evidence = [Evidence(**part) for part in answer["evidence"]]
        right += _compare_with_truth(answer["option"], evidence, known, out)
        _save_evidence(evidence, library, directory / "evidence")
    out.print(
        f"\n{right} of {len(KINDS)} right, in {time.monotonic() - began:.0f} s. Traces: {directory}/trace_*.jsonl, "
        f"frames that the answers rest on: {directory}/evidence, library: {place}\n"
        "The built-in space and model know only these drawn films.\n"
        f"Index your own, offline too: {_command()} ingest FOLDER --library mine\n"
        f"Look, ask and play in a browser: {_command()} serve {place}\n"
        f"The three answers, step by step: {_command()} serve {place} {directory}/trace_*.jsonl",
        soft_wrap=True,
    )


def _draw(out: Console, number: int, films: Path) -> None:
    """Draw the films, and say which."""
    out.print(f"\n[bold]{number}. drawing films into {escape(str(films))}[/]", soft_wrap=True)
    with Progress(console=error_console(), transient=True) as bar:
        task = bar.add_task("drawing films", total=1.0)
        for film in write_films(films, HOURS, SEED, lambda part: bar.update(task, completed=part)):
            say(film)


def _command() -> str:
    """Return the name to call the command line by: after `make demo` it is on no PATH."""
    return "kinodex" if shutil.which("kinodex") else sys.argv[0]


def _run(out: Console, number: int, *arguments: object) -> None:
    """Print a command and run it, so that what follows is what it prints for whoever types it."""
    from kinodex.cli.main import app

    words = [str(argument) for argument in arguments]
    out.print(f"\n[bold]{number}. {escape(shlex.join(['kinodex', *words]))}[/]", soft_wrap=True)
    if code := app(words, standalone_mode=False):
        raise typer.Exit(code)


def _chosen(known: list[KnownQuestion]) -> list[KnownQuestion]:
    """Choose the first question of each kind, of the first film, the second, the third."""
    films = sorted({question.film for question in known})
    return [
        next(question for question in known if question.kind == kind and question.film == film)
        for kind, film in zip(KINDS, films, strict=True)
    ]


def _compare_with_truth(option: int | None, evidence: list[Evidence], known: KnownQuestion, out: Console) -> bool:
    is_right = option == known.answer
    place = "the evidence lies there" if known.is_shown_by(evidence) else "the evidence lies elsewhere"
    verdict = "[green]right[/]" if is_right else "[red]wrong[/]"
    span = f"{clock(known.start_s)} to {clock(known.end_s)}"
    truth = escape(known.question.options[known.answer])
    out.print(f"[bold]truth[/]     {truth}, shown {span}: {verdict}, {place}", soft_wrap=True)
    return is_right


def _save_evidence(evidence: list[Evidence], library: Library, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for part in evidence:
        for frame in library.frames_at(part.video_id, [part.start_s], mode="nearest"):
            (folder / f"{part.video_id[:12]}_{frame.time_s:.2f}.jpg").write_bytes(frame.jpeg)
