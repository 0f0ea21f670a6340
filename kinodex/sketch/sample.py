"""Make films of the sketch world, and questions whose answers and evidence are known exactly."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from kinodex.jobs.errors import UsageError

SHORT_FILMS = 3
Form = Literal["story", "shuffled", "independent"]
"""A story; its shots in random order; or shots that are drawn independently of each other."""
FORMS: tuple[Form, ...] = ("story", "shuffled", "independent")
Report = Callable[[float], object]
Film = tuple[dict[str, Any], str, list[dict[str, Any]]]
"""A film's script as JSON values, its subtitles (or nothing), and the lines of its questions."""


def sample(
    directory: Path,
    hours: float,
    seed: int,
    on_progress: Report | None = None,
    *,
    form: Form = "independent",
    minutes: float | None = None,
) -> list[Path]:
    """Write films of `hours` hours in all and return their paths.

    Each film lasts `minutes`, and there are as many as come nearest to `hours`, at least one; by default less than an
    hour becomes three films, more becomes films of at most an hour. Each film has a script
    (`<film>.script.json`, every shot with its exact times); all questions are in `questions.jsonl`; what is spoken is
    in subtitles (`<film>.srt`): in all stories, and in the first of the independent films, which has a narrator. The
    same seed writes the same, and "shuffled" writes the shots of "story". `on_progress` is called with the share that
    is done, from 0 to 1.
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
                if on_progress is not None:
                    on_progress((done + share) / number)

            duration_s = minutes * 60
            if form == "independent":
                script, spoken, rows = _independent(path, duration_s, seed, report, spoken=index == 0)
            else:
                script, spoken, rows = _story(path, duration_s, seed, report, form)
            path.with_suffix(".script.json").write_text(json.dumps(script, indent=1) + "\n", encoding="utf-8")
            if spoken:
                path.with_suffix(".srt").write_text(spoken, encoding="utf-8")
            questions.writelines(json.dumps(row) + "\n" for row in rows)
            paths.append(path)
    (directory / "questions.part").rename(directory / "questions.jsonl")
    return paths


def _independent(path: Path, duration_s: float, seed: int, report: Report, *, spoken: bool) -> Film:
    from kinodex.sketch.script import as_json, render_film, subtitles, write_questions, write_script

    script = write_script(path.stem, duration_s, seed, spoken=spoken)
    render_film(script, path, _by_frame(report, script.duration_s))
    return as_json(script), subtitles(script), list(map(asdict, write_questions(script, path.name, seed)))


def _story(path: Path, duration_s: float, seed: int, report: Report, form: Form) -> Film:
    from kinodex.sketch.story import as_json, render_story, shuffle_shots, subtitles, write_story
    from kinodex.sketch.story_questions import write_questions

    film = write_story(path.stem, duration_s, seed)
    if form == "shuffled":
        film = shuffle_shots(film)
    render_story(film, path, _by_frame(report, film.duration_s))
    return as_json(film), subtitles(film), list(map(asdict, write_questions(film, path.name)))


def _by_frame(report: Report, duration_s: float) -> Callable[[int], None]:
    """Report the share that is done, every ten seconds of film."""
    from kinodex.sketch.script import FPS

    def frame_done(frame: int) -> None:
        if frame % (10 * FPS) == 0:
            report(frame / round(duration_s * FPS))

    return frame_done
