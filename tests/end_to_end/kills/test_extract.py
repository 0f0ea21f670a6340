"""`kinodex extract`, `ask --all` and `add map`, killed eight times each: whole videos are seen, nothing is paid twice.

Who asks a model is killed while it waits for a reply, so that nothing is paid; a function of the user's kills itself.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kinodex.index.library import Library
from kinodex.index.sweep import audit
from tests.jobs.add.test_extract import WHERE, row_of, told
from tests.support.scenes.chaptered_film import PLACES, make_film
from tests.support.servers.chat_server import SEES, Behaviour, ChatServer, failing

pytestmark = pytest.mark.slow
ROUNDS = 8
FILMS = ("aa", "bb", "cc")
QUESTION = "Which places are seen in which films?"
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


def replied(body: dict) -> dict:
    """A plan, a row, several rows or an answer, as the request asks for."""
    if "You plan a table" in told(body):
        return PLAN
    if "The rows, each" in told(body):
        return ANSWER
    row = row_of(body)
    return {"rows": [{name: row[name] for name in ("place", "evidence")}]} if '"rows"' in told(body) else row


@pytest.mark.parametrize("command", ["extract", "ask"])
def test_killed_while_it_waits_for_a_reply(command: str, tmp_path: Path) -> None:
    library = make_film(tmp_path / "library", *FILMS)
    schema = tmp_path / "where.json"
    schema.write_text(json.dumps(WHERE))
    paid: list[str] = []
    children: list[subprocess.Popen[bytes]] = []
    kill_at = [0]

    def reply(body: dict) -> dict | Behaviour:
        """Answer, or kill who asks before it hears an answer: then nothing is paid."""
        kill_at[0] -= 1
        if kill_at[0] == 0:
            time.sleep(0.3)  # the reply before is stored by then: its request ended as this one began
            os.kill(children[-1].pid, signal.SIGKILL)
            return failing(500, "nobody hears this")
        paid.append(told(body))
        return replied(body)

    with ChatServer(reply) as server:
        server.model_facts = SEES
        model = ("--model", "tester", "--base-url", server.base_url)
        lines: dict[str, list[object]] = {
            "extract": ["extract", library.uri, "--schema", schema, "--into", "places", *model, "--batch", 1],
            "ask": ["ask", library.uri, QUESTION, "--all", *model, "--set", "at_once=1", "--json"],
        }
        for number in range(ROUNDS + 1):
            kill_at[0] = number % 3 + 1 if number < ROUNDS else 0
            children.append(_started(lines[command], tmp_path))
            assert children[-1].wait() == (-signal.SIGKILL if number < ROUNDS else 0)
            for each in library.extracts.versions():
                seen = library.extracts.rows(each.key)["video_id"].to_pylist()
                assert all(seen.count(id_) in (0, len(PLACES)) for id_ in FILMS), "half of a film is seen"
    assert len(paid) == len(set(paid)) == len(FILMS) * len(PLACES) + (2 if command == "ask" else 0)
    (version,) = Library.open(library.uri).extracts.versions()
    assert Library.open(library.uri).extracts.rows(version.key)["place"].to_pylist() == [*PLACES] * len(FILMS)
    assert audit(library, deep=True).problems == ()


def test_a_function_that_is_killed_at_each_step(tmp_path: Path) -> None:
    library = make_film(tmp_path / "library", *FILMS)
    left, function = tmp_path / "left", tmp_path / "mine.py"
    function.write_text(MAP.format(left=str(left)))
    line = ["add", "map", library.uri, f"{function}:brightness", "--batch", 60]
    for number in range(ROUNDS + 1):
        left.write_text(str(number + 1 if number < ROUNDS else 10**6))
        assert _started(line, tmp_path).wait() == (-signal.SIGKILL if number < ROUNDS else 0)
        done = library.additions.mapped("brightness")["video_id"].to_pylist() if number == ROUNDS else []
        assert all(done.count(id_) in (0, 60 * len(PLACES)) for id_ in FILMS)
    rows = library.additions.mapped("brightness")
    assert rows["video_id"].to_pylist() == [id_ for id_ in FILMS for _ in range(60 * len(PLACES))]
    assert audit(library, deep=True).problems == ()


def _started(line: list[object], folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", "from kinodex.cli.main import main; main()", *map(str, line)]
    environment = {**os.environ, "KINODEX_CACHE": str(folder / "cache")}
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
