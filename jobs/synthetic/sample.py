"""Make films of the sketch world, and questions whose answers and evidence are known exactly."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

from jobs.errors import UsageError

SHORT_FILMS = 3


def sample(
    directory: Path, hours: float, seed: int, on_progress: Callable[[float], object] | None = None
) -> list[Path]:
    """Write films of `hours` hours in all and return their paths.

    Less than an hour becomes three films, more becomes films of at most an hour. Each film has a script
    (`<film>.script.json`, every shot with its exact times); all questions are in `questions.jsonl`; the first film
    has a narrator, whose lines are its subtitles (`<film>.srt`). The same seed writes the same.
    `on_progress` is called with the share that is done, from 0 to 1.
    """
    from jobs.synthetic.world.questions import write_questions
    from jobs.synthetic.world.render import render_film
    from jobs.synthetic.world.script import FPS, as_json, subtitles, write_script

    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {directory}: {error.strerror}; give another") from error
    number = SHORT_FILMS if hours < 1 else math.ceil(hours)
    paths = []
    with (directory / "questions.part").open("w", encoding="utf-8") as questions:  # whole before it has its name
        for index in range(number):
            path = directory / f"film-{index + 1:02d}.mp4"
            script = write_script(path.stem, hours * 3600 / number, seed, spoken=index == 0)
            frames = round(script.duration_s * FPS)

            def report(frame: int, done: int = index, frames: int = frames) -> None:
                if on_progress is not None and frame % (10 * FPS) == 0:
                    on_progress((done + frame / frames) / number)

            render_film(script, path, report)
            path.with_suffix(".script.json").write_text(json.dumps(as_json(script), indent=1) + "\n", encoding="utf-8")
            if script.lines:
                path.with_suffix(".srt").write_text(subtitles(script), encoding="utf-8")
            for question in write_questions(script, path.name, seed):
                questions.write(json.dumps(question.as_json()) + "\n")
            paths.append(path)
    (directory / "questions.part").rename(directory / "questions.jsonl")
    return paths
