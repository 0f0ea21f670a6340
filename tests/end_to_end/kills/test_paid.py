"""Runs that pay for replies, and a function of the user's, killed and run again: whole videos are seen, nothing is paid
twice.

Who asks a model is killed while it waits for a reply, so that nothing is paid; a function of the user's kills itself.
What is run again goes through, and so does that in this process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from kinodex.index.errors import LibraryError
from kinodex.index.library import Library
from kinodex.index.sweep import audit
from tests.jobs.add.test_extract import WHERE, row_of, told
from tests.support.command import Kinodex
from tests.support.loopback import Answer
from tests.support.models.stage_models import library_of
from tests.support.scenes.chaptered_film import PLACES, make_film
from tests.support.scenes.moving_film import moving_film
from tests.support.servers.chat_server import SEES, Behaviour, ChatServer, failing
from tests.support.servers.embed_server import EmbedServer

pytestmark = pytest.mark.slow
KILL = 7
"""The request, or step, at which a run is killed: within a film, after a whole one."""
FILMS = ("aa", "bb", "cc")
NEVER = 10**6
PLAN = {
    "search": "a place",
    "row": "a place that is seen",
    "fields": [{"name": "place", "kind": "text", "meaning": "one word"}],
    "each": "scene",
    "condition": None,
    "select": None,
}
ANSWER = {"reasoning": "", "said": "All four in each.", "evidence": [1]}
MAP = """
import os, signal
from pathlib import Path

LEFT = Path({left!r})


def brightness(pictures):
    left = int(LEFT.read_text()) - 1
    LEFT.write_text(str(left))
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return pictures.mean(axis=(1, 2, 3))
"""


class Case(NamedTuple):
    """A library, the words of a command, what is paid for, the rows that readers see of each film, and how many it
    has in the end."""

    library: Library
    words: list[object]
    paid: list[str]
    seen: Callable[[], list[int]]
    rows: int


Strikes = Callable[[], bool]
"""Kills who asks, now and then, and says so."""


def replied(body: dict) -> dict:
    """A plan, a row, several rows or an answer, as the request asks for."""
    if "You plan a table" in told(body):
        return PLAN
    if "The rows, each" in told(body):
        return ANSWER
    row = row_of(body)
    return {"rows": [{name: row[name] for name in ("place", "evidence")}]} if '"rows"' in told(body) else row


@contextmanager
def asking(command: str, folder: Path, strikes: Strikes) -> Iterator[Case]:
    library, schema, paid = make_film(folder / "library", *FILMS), folder / "where.json", list[str]()
    schema.write_text(json.dumps(WHERE))

    def reply(body: dict) -> dict | Behaviour:
        if strikes():
            return failing(500, "nobody hears this")
        paid.append(told(body))
        return replied(body)

    def places() -> list[list[str]]:
        tables = [library.extracts.rows(each.key) for each in library.extracts.versions()]
        return [
            [row["place"] for table in tables for row in table.to_pylist() if row["video_id"] == id_] for id_ in FILMS
        ]

    with ChatServer(reply) as server:
        server.model_facts = SEES
        words: dict[str, list[object]] = {
            "extract": ["extract", library.uri, "--schema", schema, "--into", "places", "--batch", 1],
            "ask": [
                "ask",
                library.uri,
                "Which places are seen in which films?",
                "--agent",
                "all",
                "--set",
                "at_once=1",
            ],
        }
        line = [*words[command], "--base-url", server.base_url]
        yield Case(library, line, paid, lambda: list(map(len, places())), len(PLACES))
    assert places() == [[*PLACES]] * len(FILMS)
    assert len(paid) == len(FILMS) * len(PLACES) + (2 if command == "ask" else 0)


@contextmanager
def adding_clips(folder: Path, strikes: Strikes) -> Iterator[Case]:
    parts = [[(one, "right"), (other, "left")] for one, other in pairwise(("red", "green", "blue", "red"))]
    films = [moving_film(folder / f"{name}.mp4", part) for name, part in zip(FILMS, parts, strict=True)]
    library, paid = library_of(folder / "library", films), list[str]()

    def before() -> Answer | None:
        return Answer(500, {"error": "nobody hears this"}) if strikes() else None

    def seen() -> list[int]:
        return [library.additions.counts("clips").get(row.video_id, 0) for row in library.videos()]

    with EmbedServer(before=before) as server:
        words: list[object] = ["add", "clips", library.uri, "--base-url", server.base_url, "--batch", 1]
        yield Case(library, words, paid, seen, 3)
        paid += [json.dumps(body["messages"]) for body in server.asked]
    assert len(paid) == 1 + 3 * len(FILMS), "one is to find out the dimension"


CASES: dict[str, Callable[[Path, Strikes], AbstractContextManager[Case]]] = {
    "extract": partial(asking, "extract"),
    "ask --all": partial(asking, "ask"),
    "add clips": adding_clips,
}


@pytest.mark.parametrize("name", CASES)
def test_killed_while_it_waits_for_a_reply(name: str, kinodex: Kinodex, tmp_path: Path) -> None:
    children: list[subprocess.Popen[bytes]] = []
    left = [0]

    def strikes() -> bool:
        left[0] -= 1
        if left[0] != 0:
            return False
        time.sleep(0.3)  # the reply before is stored by then: its request ended as this one began
        os.kill(children[-1].pid, signal.SIGKILL)
        return True

    with CASES[name](tmp_path, strikes) as case:
        line = [*case.words, "--model", "tester"]
        left[0] = KILL
        children.append(_started(line, tmp_path))
        assert children[-1].wait() == -signal.SIGKILL
        assert set(case.seen()) <= {0, case.rows}, "half of a film is seen"
        left[0] = NEVER
        assert kinodex(*line).code == 0
        assert set(case.seen()) == {case.rows}
    assert len(case.paid) == len(set(case.paid)), "something was paid twice"
    assert audit(case.library, deep=True).problems == ()


def test_a_function_that_is_killed_at_some_steps(kinodex: Kinodex, tmp_path: Path) -> None:
    library = make_film(tmp_path / "library", *FILMS)
    left, function, each = tmp_path / "left", tmp_path / "mine.py", 60 * len(PLACES)
    function.write_text(MAP.format(left=str(left)))
    line = ["add", "map", library.uri, f"{function}:brightness", "--batch", 60]
    left.write_text(str(KILL))
    assert _started(line, tmp_path).wait() == -signal.SIGKILL
    with suppress(LibraryError):  # nothing is written yet
        done = library.additions.mapped("brightness")["video_id"].to_pylist()
        assert all(done.count(id_) in (0, each) for id_ in FILMS)
    left.write_text(str(NEVER))
    assert kinodex(*line).code == 0
    rows = library.additions.mapped("brightness")
    assert rows["video_id"].to_pylist() == [id_ for id_ in FILMS for _ in range(each)]
    assert audit(library, deep=True).problems == ()


def _started(line: list[object], folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", "from kinodex.cli.main import main; main()", *map(str, line)]
    environment = {**os.environ, "KINODEX_CACHE": str(folder / "cache")}
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
