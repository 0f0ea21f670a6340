"""Make films of the sketch world, and questions whose answers and evidence are known exactly."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kinodex.jobs.errors import UsageError
from tests.world.sketch.questions import write_questions
from tests.world.sketch.render import OnFrame, render_film
from tests.world.sketch.script import FPS, as_json, subtitles, write_script

SHORT_FILMS = 3
Drawn = tuple[dict[str, Any], str, list[Any]]
"""The script of a film as JSON values, its subtitles (or nothing), and its questions."""
Draw = Callable[[Path, float, int, bool, OnFrame, int], Drawn]
"""Draws a film: file, seconds, seed, if it has a narrator, called with each frame, and the distance of drawn frames."""


def draw_shots(path: Path, duration_s: float, seed: int, narrated: bool, on_frame: OnFrame, every: int) -> Drawn:
    """Draw a film of shots that have nothing to do with each other."""
    made = write_script(path.stem, duration_s, seed, spoken=narrated)
    render_film(made, path, on_frame, every)
    return as_json(made), subtitles(made), write_questions(made, path.name, seed)


def write_films(
    directory: Path,
    hours: float,
    seed: int,
    on_progress: Callable[[float], object] = lambda share: None,
    *,
    draw: Draw = draw_shots,
    minutes: float | None = None,
    every: int = 1,
) -> list[Path]:
    """Write films of `hours` hours in all and return their paths.

    Each film lasts `minutes`, and there are as many as come nearest to `hours`, at least one; by default less than an
    hour becomes three films, more becomes films of at most an hour. Each film has a script
    (`<film>.script.json`, every shot with its exact times); all questions are in `questions.jsonl`; what is spoken is
    in subtitles (`<film>.srt`): the first film has a narrator. The same seed writes the same. One frame in `every` may
    be drawn. `on_progress` is called with the share that is done, from 0 to 1.
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

            on_frame = _by_frame(report, minutes * 60)
            facts, spoken, asked = draw(path, minutes * 60, seed, index == 0, on_frame, every)
            path.with_suffix(".script.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
            if spoken:
                path.with_suffix(".srt").write_text(spoken, encoding="utf-8")
            questions.writelines(json.dumps(asdict(each)) + "\n" for each in asked)
            paths.append(path)
    (directory / "questions.part").rename(directory / "questions.jsonl")
    return paths


def _by_frame(report: Callable[[float], None], duration_s: float) -> OnFrame:
    """Report the share that is done, every ten seconds of film."""
    return lambda frame: report(min(1.0, frame / round(duration_s * FPS))) if frame % (10 * FPS) == 0 else None
