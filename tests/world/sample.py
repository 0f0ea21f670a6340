"""Draw films, stories or shots by themselves, with questions: `python -m tests.world.sample FOLDER`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.progress import Progress

from kinodex.jobs.errors import UsageError
from kinodex.output import error_console, say
from tests.world import story, story_questions
from tests.world.sketch.films import Drawn, draw_shots, write_films
from tests.world.sketch.render import OnFrame

Form = Literal["story", "shuffled", "independent"]
"""A story; its shots in random order; or shots that are drawn independently of each other."""
FORMS: tuple[Form, ...] = ("story", "shuffled", "independent")


def sample(
    directory: Path,
    hours: float,
    seed: int,
    on_progress: Callable[[float], object] = lambda share: None,
    *,
    form: Form = "independent",
    minutes: float | None = None,
    every: int = 1,
) -> list[Path]:
    """Write films of a form, as `write_films` does; "shuffled" writes the shots of "story", and all stories speak."""
    draw = draw_shots if form == "independent" else partial(draw_story, is_shuffled=form == "shuffled")
    return write_films(directory, hours, seed, on_progress, draw=draw, minutes=minutes, every=every)


def draw_story(
    path: Path, duration_s: float, seed: int, narrated: bool, on_frame: OnFrame, every: int, *, is_shuffled: bool
) -> Drawn:
    """Draw a story film, its shots in their order or shuffled."""
    film = story.write_story(path.stem, duration_s, seed)
    film = story.shuffle_shots(film) if is_shuffled else film
    story.render_story(film, path, on_frame, every)
    return story.as_json(film), story.subtitles(film), story_questions.write_questions(film, path.name)


def main(
    directory: Annotated[Path, typer.Argument(help="Folder for the films, their scripts and questions.jsonl.")],
    hours: Annotated[float, typer.Option(min=0.01, max=1000.0, help="Hours of film in all.")] = 0.1,
    minutes: Annotated[
        float | None,
        typer.Option(min=0.5, max=600.0, help="Minutes of each film; by default three films, or as many as hours."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same films and questions.")] = 0,
    form: Annotated[
        Form,
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
        films = sample(
            directory, hours, seed, lambda part: bar.update(task, completed=part), form=form, minutes=minutes
        )
    for film in films:
        say(film)
    say(directory / "questions.jsonl")


if __name__ == "__main__":
    typer.run(main)
