"""`kinodex extract` killed in eight rounds while it waits for a reply: whole videos are seen, nothing is paid twice."""

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
from tests.support.servers.chat_server import Behaviour, ChatServer, failing

pytestmark = pytest.mark.slow
ROUNDS = 8
FILMS = ("aa", "bb", "cc")


def test_killed_and_run_again(tmp_path: Path) -> None:
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
        return row_of(body)

    with ChatServer(reply) as server:
        server.model_facts = {"architecture": {"input_modalities": ["text", "image"]}}
        options = ("--schema", schema, "--into", "places", "--model", "tester", "--base-url", server.base_url)
        line = [
            sys.executable,
            "-c",
            "from kinodex.cli.main import main; main()",
            "extract",
            library.uri,
            *options,
            "--batch",
            "1",
        ]
        environment = {**os.environ, "KINODEX_CACHE": str(tmp_path / "cache")}
        for number in range(ROUNDS + 1):
            kill_at[0] = number % 3 + 1 if number < ROUNDS else 0
            children.append(subprocess.Popen([*map(str, line)], env=environment, stdout=subprocess.DEVNULL))
            assert children[-1].wait() == (-signal.SIGKILL if number < ROUNDS else 0)
            seen = library.extracts.rows("places")["video_id"].to_pylist()
            assert all(seen.count(id_) in (0, len(PLACES)) for id_ in FILMS), "half of a film is seen"
    assert len(paid) == len(set(paid)) == len(FILMS) * len(PLACES)
    rows = Library.open(library.uri).extracts.rows("places")
    assert rows["place"].to_pylist() == [*PLACES] * len(FILMS)
    assert audit(library, deep=True).problems == ()
