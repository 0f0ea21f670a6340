"""`kinodex sample` and `kinodex demo`: films that the project draws itself, and the whole job with them."""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from kinodex.agent.answer import Answer
from kinodex.agent.ask import ask
from kinodex.agent.environment import Environment
from kinodex.agent.models.rules import RuleBasedModel
from kinodex.agent.trace import Event, trace_to
from kinodex.cli.show import progress_bar, show_report
from kinodex.cli.tables import show_hits
from kinodex.cli.tree_view import TreeView, show_answer
from kinodex.index.library import Library
from kinodex.index.spaces.load import load_text_tower
from kinodex.jobs.errors import UsageError
from kinodex.jobs.ingest.config import IngestConfig
from kinodex.jobs.ingest.run import run_ingest
from kinodex.jobs.known_answers import KnownQuestion, read_known
from kinodex.output import clock, console, error_console
from kinodex.pipeline.sources import list_sources
from kinodex.sketch import sample as sketch


def sample(
    directory: Annotated[Path, typer.Argument(help="Folder for the films, their scripts and questions.jsonl.")],
    hours: Annotated[float, typer.Option(min=0.01, max=1000.0, help="Hours of film in all.")] = 0.1,
    minutes: Annotated[
        float | None,
        typer.Option(min=0.5, max=600.0, help="Minutes of each film; by default three films, or as many as hours."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same films and questions.")] = 0,
    form: Annotated[
        sketch.Form,
        typer.Option(
            help="story: places that last, things that come, go and change hands, talk and signs; shuffled: the same "
            "shots in random order; independent: every shot by itself."
        ),
    ] = "story",
) -> None:
    """Write films of the sketch world (drawn by code, no network) and questions with known answers."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UsageError(f"{directory} already exists; give a new or an empty folder")
    with Progress(console=error_console(), transient=True) as bar:
        task = bar.add_task("drawing films", total=1.0)
        films = sketch.sample(
            directory, hours, seed, lambda part: bar.update(task, completed=part), form=form, minutes=minutes
        )
    for film in films:
        print(film)
    print(directory / "questions.jsonl")


HOURS, SEED = 0.1, 1
KINDS = ("colour", "needle", "after")
"""One question of each kind, each about another film. The sample is one where all goes well; how often it does
is what `kinodex eval sketch` measures."""


def demo(
    directory: Annotated[Path, typer.Argument(help="Folder for the films, the library, frames and traces.")] = Path(
        "demo"
    ),
) -> None:
    """Make films and a library, search it and ask three questions: the whole job, offline, in minutes."""
    out, began = console(), time.monotonic()
    films, place = directory / "films", directory / "library"
    _step(out, 1, f"kinodex sample {films} --hours {HOURS} --seed {SEED} --form independent")
    if (films / "questions.jsonl").exists():
        out.print("the films are there already")
    else:
        sketch.sample(films, HOURS, SEED)
    known = read_known(films / "questions.jsonl")
    out.print(f"{len(list(films.glob('*.mp4')))} films and {len(known)} questions with known answers in {films}")

    _step(out, 2, f"kinodex ingest {films} --library {place} --space builtin")
    library = _make_library(films, place)

    query = "an orange anchor at sea"
    _step(out, 3, f'kinodex search {place} "{query}" -k 5 --min-gap 5 --in pictures')
    text_space = load_text_tower("builtin")
    show_hits(library.search.frames(text_space.embed_text([query])[0], k=5, min_gap_s=5.0), library, as_json=False)

    right = 0
    for number, each in enumerate(_chosen(known), 1):
        options = " ".join(f'--option "{option}"' for option in each.question.options)
        _step(out, 3 + number, f'kinodex ask {place} "{each.question.text}" {options} --video {each.film}')
        environment = Environment.of(library, [library.video(each.film)], text_space.embed_text)
        answer = _ask(each, environment, directory / f"trace_{number}.jsonl", out)
        right += _compare_with_truth(answer, each, out)
        _save_evidence(answer, library, directory / "evidence")
    out.print(
        f"\n{right} of {len(KINDS)} right, in {time.monotonic() - began:.0f} s. Traces: {directory}/trace_*.jsonl, "
        f"frames that the answers rest on: {directory}/evidence, library: {place}\n"
        "The built-in space and model know only these drawn films; the README says how to use real ones.\n"
        f"Look, ask and play in a browser: {_command()} serve {place}\n"
        f"The three answers, step by step: {_command()} view {directory}/trace_*.jsonl {place}",
        soft_wrap=True,
    )


def _command() -> str:
    """Return the name to call the command line by: after `make demo` it is on no PATH."""
    return "kinodex" if shutil.which("kinodex") else sys.argv[0]


def _step(out: Console, number: int, command: str) -> None:
    out.print(f"\n[bold]{number}. {escape(command)}[/]", soft_wrap=True)


def _make_library(films: Path, place: Path) -> Library:
    with progress_bar(error_console()) as watch:
        report = run_ingest(IngestConfig(space="builtin"), list_sources([str(films)]), str(place), watch)
    library = Library.open(str(place))
    show_report(report, library, as_json=False)
    return library


def _chosen(known: list[KnownQuestion]) -> list[KnownQuestion]:
    """Choose the first question of each kind, of the first film, the second, the third."""
    films = sorted({each.film for each in known})
    return [
        next(each for each in known if each.kind == kind and each.film == film)
        for kind, film in zip(KINDS, films, strict=True)
    ]


def _ask(known: KnownQuestion, environment: Environment, trace: Path, out: Console) -> Answer:
    view = TreeView(out)
    with trace_to(trace) as write:

        def tell(event: Event) -> None:
            view(event)
            write(event)

        answer = asyncio.run(ask(known.question, environment, RuleBasedModel(environment), on_event=tell))
    show_answer(answer, environment.videos, out)
    return answer


def _compare_with_truth(answer: Answer, known: KnownQuestion, out: Console) -> bool:
    place = "the evidence lies there" if known.is_shown_by(answer.evidence) else "the evidence lies elsewhere"
    verdict = "[green]right[/]" if known.is_right(answer) else "[red]wrong[/]"
    truth = known.question.options[known.answer]
    span = f"{clock(known.start_s)} to {clock(known.end_s)}"
    out.print(f"[bold]truth[/]     {escape(truth)}, shown {span}: {verdict}, {place}", soft_wrap=True)
    return known.is_right(answer)


def _save_evidence(answer: Answer, library: Library, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for each in answer.evidence:
        for frame in library.frames_at(each.video_id, [each.start_s], mode="nearest"):
            (folder / f"{each.video_id[:12]}_{frame.time_s:.2f}.jpg").write_bytes(frame.jpeg)
