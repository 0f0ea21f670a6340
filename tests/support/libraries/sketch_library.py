"""A small library of really drawn, decoded and embedded sketch films, with questions whose answers are known.

Tests take copies of one by the fixture `copy_sketches`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from kinodex.agent.videos.environment import Environment
from kinodex.index.library import Library
from kinodex.index.rows import SpeechRow
from kinodex.index.spaces.load import load_text_tower
from kinodex.jobs.known_answers import KnownQuestion, read_known
from tests.support.models.stage_models import library_of
from tests.world.drawn_space import DRAWN
from tests.world.sketch.script import SpokenLine

SECONDS = {"harbour": 45.0, "orchard": 30.0}
"""The films; the first has a narrator."""
QUESTIONS = 3
SEED = 5


@dataclass(frozen=True)
class SketchLibrary:
    """The library, an environment of each film and of all, and the questions about each film."""

    library: Library
    films: dict[str, Environment]
    everything: Environment
    known: list[KnownQuestion]


def draw_films(folder: Path) -> None:
    """Draw the films into `films` of a folder, and write `questions.jsonl` and the spoken `lines.json` there."""
    lines = _draw(folder / "films")
    said = {name: [asdict(each) for each in spoken] for name, spoken in lines.items()}
    (folder / "lines.json").write_text(json.dumps(said), encoding="utf-8")


def index_films(folder: Path, drawn: Path) -> None:
    """Write the library of drawn films into a new folder."""
    library = library_of(folder, sorted((drawn / "films").glob("*.mp4")))
    lines = json.loads((drawn / "lines.json").read_text(encoding="utf-8"))
    for row in library.videos():
        said = [
            SpeechRow(row.video_id, each["start_s"], each["end_s"], each["text"], "sidecar")
            for each in lines[row.title]
        ]
        library.writer.add_speech({row.video_id: said})


def open_sketches(folder: Path) -> SketchLibrary:
    """Open the `library` in a folder with its `questions.jsonl`."""
    library = Library.open(str(folder / "library"))
    space = load_text_tower(DRAWN)
    rows = library.videos()
    alone = {Path(row.uri).stem: Environment.of(library, [row], space.embed_text) for row in rows}
    known = read_known(folder / "questions.jsonl")
    return SketchLibrary(library, alone, Environment.of(library, rows, space.embed_text), known)


def _draw(folder: Path) -> dict[str, tuple[SpokenLine, ...]]:
    """Draw the films, write their questions beside the folder; returns the lines spoken in each film."""
    from tests.world.sketch.questions import write_questions
    from tests.world.sketch.render import render_film
    from tests.world.sketch.script import write_script

    folder.mkdir(parents=True)
    rows, lines = [], {}
    for number, (name, seconds) in enumerate(SECONDS.items()):
        script = write_script(name, seconds, SEED, spoken=number == 0)
        render_film(script, folder / f"{name}.mp4")
        lines[name] = script.lines
        rows += [asdict(each) for each in write_questions(script, name, SEED, QUESTIONS)]
    path = folder.parent / "questions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return lines
