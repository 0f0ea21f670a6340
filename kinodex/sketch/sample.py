"""Make films of the sketch world, and questions whose answers and evidence are known exactly."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from kinodex.jobs.errors import UsageError
from kinodex.sketch import script, story, story_questions
from kinodex.sketch.script import FPS, OnFrame

SHORT_FILMS = 3
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
    """Write films of `hours` hours in all and return their paths.

    Each film lasts `minutes`, and there are as many as come nearest to `hours`, at least one; by default less than an
    hour becomes three films, more becomes films of at most an hour. Each film has a script
    (`<film>.script.json`, every shot with its exact times); all questions are in `questions.jsonl`; what is spoken is
    in subtitles (`<film>.srt`): in all stories, and in the first of the independent films, which has a narrator. The
    same seed writes the same, and "shuffled" writes the shots of "story". One frame in `every` may be drawn.
    `on_progress` is called with the share that is done, from 0 to 1.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {directory}: {error.strerror}; give another") from error
    if minutes is None:
        number = SHORT_FILMS if hours < 1 else math.ceil(hours)
        minutes = hours * 60 / number
    else:
        number = max(1, round(hours * 60 / minutes))
    paths = []
    with (directory / "questions.part").open("w", encoding="utf-8") as questions:  # whole before it has its name
        for index in range(number):
            path = directory / f"film-{index + 1:02d}.mp4"

            def report(share: float, done: int = index) -> None:
                on_progress((done + share) / number)

            facts, spoken, asked = _film(path, minutes * 60, seed, form, index == 0, report, every)
            path.with_suffix(".script.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
            if spoken:
                path.with_suffix(".srt").write_text(spoken, encoding="utf-8")
            questions.writelines(json.dumps(asdict(each)) + "\n" for each in asked)
            paths.append(path)
    (directory / "questions.part").rename(directory / "questions.jsonl")
    return paths


def _film(
    path: Path, duration_s: float, seed: int, form: Form, narrated: bool, report: Callable[[float], None], every: int
) -> tuple[dict[str, Any], str, list[Any]]:
    """Draw a film; its script as JSON values, its subtitles (or nothing), and its questions."""
    if form == "independent":
        made = script.write_script(path.stem, duration_s, seed, spoken=narrated)
        script.render_film(made, path, _by_frame(report, made.duration_s), every)
        return script.as_json(made), script.subtitles(made), script.write_questions(made, path.name, seed)
    film = story.write_story(path.stem, duration_s, seed)
    film = story.shuffle_shots(film) if form == "shuffled" else film
    story.render_story(film, path, _by_frame(report, film.duration_s), every)
    return story.as_json(film), story.subtitles(film), story_questions.write_questions(film, path.name)


def _by_frame(report: Callable[[float], None], duration_s: float) -> OnFrame:
    """Report the share that is done, every ten seconds of film."""
    return lambda frame: report(frame / round(duration_s * FPS)) if frame % (10 * FPS) == 0 else None
