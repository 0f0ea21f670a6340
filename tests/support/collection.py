"""Measure `kinodex ask --agent all` on drawn story films, whose scripts say what each shows: a SIMULATION of a model.

python -m tests.support.collection draw FOLDER COUNT SEED: story films of half a minute with scripts and subtitles
drawn a frame a second, which is all that an ingest at a frame a second reads of them.

python -m tests.support.collection LIBRARY FILMS: for questions of which films, and how many, precision and recall of
the films, films with the right number, and tokens a film, by the number of films that a search chooses to be looked at.
In the place of a model is one that knows the films' pictures by their bytes and reads the lines it is given; it plans
each question as it is written here. So what is lost is lost by the search, by which frames are shown, or by its eyes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import kinodex
from kinodex.desk import Desk
from kinodex.index.library import Library
from kinodex.jobs.collection.answer import CollectionAnswer
from kinodex.jobs.models import ModelChoice
from kinodex.pipeline.video_writer import encode_video
from kinodex.requests import Ask
from tests.support.extracts import EYES, LEAST_S, STEP_S, sights_of
from tests.support.servers.chat_server import SEES, ChatServer
from tests.support.servers.rules_prompt import read
from tests.support.world.observer import Eyes
from tests.support.world.sights import Errors, Sight, Stage, facts_of
from tests.world.sketch.script import FPS, HEIGHT_PX, WIDTH_PX
from tests.world.story import as_json, draw_frames, subtitles, write_story

FILM_S = 30.0
CANDIDATES = (25, 50, 100, 0)
WHICH = "SELECT title, count(*) AS times FROM found GROUP BY video_id, title ORDER BY times DESC, title"
HOW_MANY = "SELECT count(DISTINCT video_id) AS films, count(*) AS times FROM found"
Seen = Callable[[Sequence[Sight], Sequence[str]], dict[str, list[int]]]
"""What some sights and lines show of it: values, each with the numbers of the sights that have it."""


def things(*kinds: str) -> Seen:
    """Things of these kinds, each colour for itself."""

    def seen(sights: Sequence[Sight], lines: Sequence[str]) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for sight in sights:
            for name in sorted(sight.things):
                if name.partition(" ")[2] in kinds:
                    found.setdefault(name, []).append(sight.number)
        return found

    return seen


def nights(sights: Sequence[Sight], lines: Sequence[str]) -> dict[str, list[int]]:
    """The places that are seen at night."""
    found: dict[str, list[int]] = {}
    for sight in sights:
        if sight.setting is not None and sight.setting[1]:
            found.setdefault(sight.setting[0], []).append(sight.number)
    return found


def letters(sights: Sequence[Sight], lines: Sequence[str]) -> dict[str, list[int]]:
    """Signs by their letters."""
    found: dict[str, list[int]] = {}
    for sight in sights:
        if sight.sign:
            found.setdefault(sight.sign, []).append(sight.number)
    return found


def late(sights: Sequence[Sight], lines: Sequence[str]) -> dict[str, list[int]]:
    """Those of whom somebody says why they were late."""
    return {subject: [] for line in lines for kind, subject, _ in facts_of(line) if kind == "reason"}


@dataclass(frozen=True)
class Asked:
    """A question, its plan in short, and what shows it."""

    question: str
    search: str
    row: str
    seen: Seen
    select: str = WHICH


QUESTIONS = (
    Asked("In which films is a dog seen, and how many dogs?", "a dog on the stage", "a dog", things("dog")),
    Asked("Which films play at night?", "a dark place at night with stars", "a place that is seen at night", nights),
    Asked("In which films does a helicopter pass by?", "a helicopter in the air", "a helicopter", things("helicopter")),
    Asked("How many films show a crown?", "somebody with a crown", "a crown", things("crown"), HOW_MANY),
    Asked("How many films show a sign with letters?", "a sign with letters", "a sign", letters, HOW_MANY),
    Asked("In which films is it said why somebody was late?", "was late because", "somebody who was late", late),
)


@dataclass
class Observer:
    """Plans each question as it is written, and fills in rows of what the pictures and lines of a film show of it."""

    eyes: Eyes
    errors: Errors

    def __call__(self, body: dict) -> dict:
        asked = read(body)
        if asked.reply == "CollectionPlan":
            return plan_of(next(each for each in QUESTIONS if each.question == asked.question.text))
        row = asked.line("A row of the table")
        wanted = next(each for each in QUESTIONS if each.row == row)
        sights = sights_of(self.eyes, self.errors, asked)
        found = wanted.seen(sights, [note.text for note in asked.notes])
        return {"rows": [{"shown": name, "evidence": numbers} for name, numbers in found.items()]}


def plan_of(asked: Asked) -> dict:
    """The plan of a question, each film as a whole."""
    fields = [{"name": "shown", "kind": "text", "meaning": "its name"}]
    rest = {"fields": fields, "each": "video", "condition": None, "select": asked.select}
    return {"reasoning": "", "search": asked.search, "row": asked.row, **rest}


def truths(library: Library, stages: dict[str, Stage]) -> dict[str, dict[str, int]]:
    """The number of each question's things in each film that has any, by question and title, by the scripts."""
    least, found = int(LEAST_S / STEP_S), {asked.question: dict[str, int]() for asked in QUESTIONS}
    for video in library.videos():
        count = int(video.duration_s / STEP_S)
        sights = [stages[video.title].see(STEP_S * (number + 0.5)) for number in range(count)]
        lines = [line.text for line in library.speech(video.video_id, None, None)]
        for asked in QUESTIONS:
            shown = {name for name, at in asked.seen(sights, lines).items() if len(at) >= least or not at}
            if shown:
                found[asked.question][video.title] = len(shown)
    return found


def draw(folder: Path, count: int, seed: int) -> None:
    """Draw films, a frame a second."""
    folder.mkdir()
    for number in range(1, count + 1):
        film = write_story(f"film-{number:02d}", FILM_S, seed)
        path = folder / f"{film.film}.mp4"
        pictures = draw_frames(film, every=FPS)
        encode_video(pictures, path, width_px=WIDTH_PX, height_px=HEIGHT_PX, fps=1)
        path.with_suffix(".script.json").write_text(json.dumps(as_json(film)))
        path.with_suffix(".srt").write_text(subtitles(film))


def main(uri: str, films: Path) -> None:
    library = Library.open(uri)
    rows = library.videos()
    stages = {row.title: Stage.of_script(films / f"{row.title}.script.json") for row in rows}
    true, eyes, opened = truths(library, stages), Eyes.of(library, rows, stages), kinodex.open(uri)
    for sight, errors in EYES.items():
        with ChatServer(Observer(eyes, errors), models=[f"observer-{sight}"]) as server:
            server.model_facts = SEES
            first, choice = QUESTIONS[0].question, ModelChoice(f"observer-{sight}", server.base_url)
            costs = Desk(library, choice).bill(Ask(question=first, agent="all", settings={"candidates": 0}))[-1]
            print(f"forecast: {costs[-1].input_tokens / len(rows):.0f} tokens in a film, pictures by OpenAI's tiles")
            for asked in QUESTIONS:
                right = true[asked.question]
                print(f"{sight} eyes: {asked.question} {len(right)} of {len(rows)} films")
                calls = tokens = 0
                for candidates in sorted(CANDIDATES):  # all first: the others then cost nothing
                    answer = opened.ask(
                        asked.question,
                        agent="all",
                        model=f"observer-{sight}",
                        base_url=server.base_url,
                        settings={"candidates": candidates},
                    )
                    calls, tokens = calls + answer.ledger.calls, tokens + answer.ledger.tokens
                    assert isinstance(answer, CollectionAnswer)
                    said = {film.title: film.times for film in answer.films}
                    good = len(said.keys() & right.keys())
                    same = sum(right.get(title) == times for title, times in said.items())
                    print(
                        f"  {answer.looked_at} looked at: precision {good / max(1, len(said)):.3f} ({good} of "
                        f"{len(said)}), recall {good / max(1, len(right)):.3f} ({good} of {len(right)}), the right "
                        f"number in {same} of {len(said)}"
                    )
                each = tokens / len(rows)
                print(f"  {calls} calls, {each:.0f} tokens a film, {answer.ledger.invalid_replies} invalid replies")


if __name__ == "__main__":
    if sys.argv[1] == "draw":
        draw(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    else:
        main(sys.argv[1], Path(sys.argv[2]))
