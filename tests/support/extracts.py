"""Measure `kinodex extract` on story films, whose scripts say what each part of them shows.

python -m tests.support.extracts LIBRARY FILMS: precision and recall of each column of a table of scenes, by the frames
a scene. In the place of a model is one that knows the films' pictures by their bytes, with eyes that see all of them or
err, and reads the lines it is given: what is lost is lost by which frames and lines are shown, and by where scenes end.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from pydantic import BaseModel, Field

import kinodex
from kinodex.index.library import Library
from tests.support.servers.chat_server import ChatServer
from tests.support.servers.rules_prompt import Asked, read
from tests.support.world.observer import Eyes
from tests.support.world.sights import ERRING, PERFECT, Errors, Sight, Stage, facts_of, seen_with_errors

EYES = {"perfect": PERFECT, "erring": ERRING}
FRAMES = (2, 4, 8, 16)
STEP_S = 0.25
LEAST_S = 1.0
"""A thing that is in the picture for a shorter time is not asked for."""
MIDDLE = {"name", "reason", "plan"}


class Scene(BaseModel):
    """A scene of a story film."""

    place: str | None = Field(description="where it plays, one word")
    night: bool | None
    landmark: str | None = Field(description="the landmark with its colour")
    sign: str | None = Field(description="the letters of a sign")
    things: list[str] = Field(description="all things that are seen, each with its colour")
    names: list[str] = Field(description="names that are told")


def sights_of(eyes: Eyes, errors: Errors, asked: Asked) -> list[Sight]:
    """The sights that the frames of a request give; of a frame the same errors each time."""
    looked = map(eyes.look, asked.frames)
    return [seen_with_errors(sight, errors, Random(f"{film}/{sight.time_s:.2f}")) for film, sight in looked]


@dataclass
class Observer:
    """Fills in a row from the pictures of a request and from its lines."""

    eyes: Eyes
    errors: Errors

    def __call__(self, body: dict) -> dict:
        asked = read(body)
        sights = sights_of(self.eyes, self.errors, asked)
        names = [subject for note in asked.notes for kind, subject, _ in facts_of(note.text) if kind in MIDDLE]
        evidence = [sight.number for sight in sights if sight.setting is not None]
        return {**row_of(sights, 1), "names": sorted(set(names)), "evidence": evidence}


def row_of(sights: Sequence[Sight], least: int) -> dict[str, object]:
    """A row of what some sights show: the commonest place, landmark and sign; things that `least` of them have."""

    def commonest(values: Iterable[object]) -> object:
        found = Counter(value for value in values if value not in ("", None)).most_common(1)
        return found[0][0] if found else None

    setting = commonest(sight.setting for sight in sights)
    here = [sight for sight in sights if sight.setting == setting]
    place, night = setting if isinstance(setting, tuple) else (None, None)
    things = Counter(name for sight in here for name in sight.things)
    return {
        "place": place,
        "night": night,
        "landmark": commonest(sight.landmark for sight in here),
        "sign": commonest(sight.sign for sight in here),
        "things": sorted(name for name, count in things.items() if count >= least),
    }


def truth(library: Library, stage: Stage, video_id: str, start_s: float, end_s: float) -> dict[str, object]:
    """The row of a part of a film by its script, with the names that its lines tell."""
    times_s = [start_s + STEP_S * (number + 0.5) for number in range(int((end_s - start_s) / STEP_S))]
    lines = library.speech(video_id, start_s, end_s)
    names = {subject for line in lines for kind, subject, _ in facts_of(line.text) if kind in MIDDLE}
    return {**row_of([stage.see(time_s) for time_s in times_s], int(LEAST_S / STEP_S)), "names": sorted(names)}


def values(row: dict[str, object], column: str) -> set[object]:
    """The values of a column of a row, one at most but of lists."""
    value = row[column]
    return set(value) if isinstance(value, list) else set() if value is None else {value}


def main(uri: str, films: Path) -> None:
    library = Library.open(uri)
    rows = library.videos()
    stages = {row.title: Stage.of_script(films / f"{row.title}.script.json") for row in rows}
    titles = {row.video_id: row.title for row in rows}
    eyes = Eyes.of(library, rows, stages)
    opened = kinodex.open(uri)
    for sight, errors in EYES.items():
        for frames in FRAMES:
            with ChatServer(Observer(eyes, errors), models=[f"observer-{sight}"]) as server:
                model = f"observer-{sight}"
                told = opened.extract(
                    Scene, into="scenes_told", model=model, base_url=server.base_url, frames_a_part=frames
                )
                table = told.to_pylist()
            true = [
                truth(library, stages[titles[row["video_id"]]], row["video_id"], row["start_s"], row["end_s"])
                for row in table
            ]
            print(f"{sight} eyes, {frames} frames a scene, {len(table)} scenes, {len(server.seen)} requests")
            for column in Scene.model_fields:
                pairs = [(values(row, column), values(right, column)) for row, right in zip(table, true, strict=True)]
                good = sum(len(said & right) for said, right in pairs)
                said_all, there = sum(len(said) for said, _ in pairs), sum(len(right) for _, right in pairs)
                print(f"  {column}: precision {good / max(said_all, 1):.3f} ({good} of {said_all}), ", end="")
                print(f"recall {good / max(there, 1):.3f} ({good} of {there})")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
