"""Small runs of `kinodex eval`: a library of captions alone, and questions about it in the sketch world's form."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from kinodex.index.library import Library
from kinodex.jobs.eval.folder import ANSWERS
from tests.support.libraries.text_library import text_library
from tests.support.servers.chat_server import ChatServer
from tests.world.benchmark import SKETCHES
from tests.world.drawn_space import DRAWN

FILMS = ("harbour", "orchard", "desert")
EACH = 4
OPTIONS = ("red", "blue", "green", "yellow")
LINE_S = 2.0
ANSWER = {"action": "answer", "option": "A", "answer": None, "evidence": [1]}
"""The reply of a model to any request."""


def caption_library(folder: Path, films: Sequence[str] = FILMS) -> Library:
    """Films of half a minute of which only captions are known; in the commands' own space."""
    captions = {
        film: [(LINE_S * n, LINE_S * (n + 1), f"a {OPTIONS[(n + at) % 4]} kite over the {film}") for n in range(15)]
        for at, film in enumerate(films)
    }
    return text_library(folder, captions, space=DRAWN)


def write_questions(folder: Path, films: Sequence[str] = FILMS, each: int = EACH) -> Path:
    """`questions.jsonl`: `each` questions about every film, whose answers the first caption that is meant shows."""
    rows = [
        row(f"{film}-{number}", film, f"Which kite is number {number}?") for film in films for number in range(each)
    ]
    path = folder / "questions.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    return path


def row(question_id: str, film: str, text: str) -> Mapping[str, object]:
    said = {"question_id": question_id, "video": f"{film}.mp4", "kind": "kite", "question": text}
    return {**said, "options": OPTIONS, "answer": 0, "evidence": [0.0, LINE_S]}


OWN_AGENT = """
from dataclasses import replace

from kinodex.agent.variants.baselines.uniform import UNIFORM

MINE = replace(UNIFORM, name="mine")
"""
"""The file of an agent of one's own, which is no file here: it goes to whoever asks as text."""


ALL = {f"{film}-{number}" for film in FILMS for number in range(EACH)}


def command(place: Path, out: Path, *options: object) -> tuple[object, ...]:
    questions = place / "questions.jsonl"
    return ("eval", SKETCHES, place / "library", "--annotations", questions, "--out", out, "--no-page", *options)


def at(server: ChatServer, folder: Path, **settings: object) -> tuple[object, ...]:
    """Options that ask a server's model, without retries if it fails."""
    said = {"model": "tester", "base_url": server.base_url, "attempts": 1, **settings}
    roles = folder / "roles.toml"
    roles.write_text("[default]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in said.items()))
    return "--models", roles, "--no-cache"


def asked(out: Path, system: str) -> list[str]:
    """The questions for which a system has lines in the file, in order."""
    lines = (out / ANSWERS).read_text().splitlines()
    return [each["item_id"] for line in lines if (each := json.loads(line))["contender"] == system]
