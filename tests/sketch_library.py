"""A small library of really drawn and really ingested sketch films, with questions whose answers are known."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from agent.environment import Environment
from index.library import Library
from index.spaces import load_space
from jobs.truth import Known, read_known

SECONDS = {"harbour": 45.0, "orchard": 30.0}
"""The films; the first has a narrator."""
QUESTIONS = 4
SEED = 5


@dataclass(frozen=True)
class SketchLibrary:
    """The library, an environment of each film and of all, and the questions about each film."""

    library: Library
    films: dict[str, Environment]
    everything: Environment
    known: list[Known]


def draw_library(folder: Path) -> SketchLibrary:
    """Films drawn, ingested and opened in a folder."""
    from jobs.config import IngestConfig
    from jobs.ingest import run_ingest
    from pipeline.sources import list_sources

    films, place = folder / "films", str(folder / "library")
    questions = _draw(films)
    run_ingest(IngestConfig(space="builtin", workers=1, window_s=8.0), list_sources([str(films)]), place)
    library, space = Library.open(place), load_space("builtin", device="cpu")
    rows = library.videos()
    alone = {Path(row.uri).stem: Environment(library, [row], space.embed_text) for row in rows}
    return SketchLibrary(library, alone, Environment(library, rows, space.embed_text), read_known(questions))


def _draw(folder: Path) -> Path:
    from pipeline.sketch.film import subtitles, write_script
    from pipeline.sketch.questions import write_questions
    from pipeline.sketch.shoot import shoot

    folder.mkdir(parents=True)
    rows = []
    for number, (name, seconds) in enumerate(SECONDS.items()):
        script = write_script(name, seconds, SEED, spoken=number == 0)
        shoot(script, folder / f"{name}.mp4")
        if script.lines:
            (folder / f"{name}.srt").write_text(subtitles(script), encoding="utf-8")
        rows += [each.as_json() for each in write_questions(script, name, SEED, QUESTIONS)]
    path = folder.parent / "questions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
