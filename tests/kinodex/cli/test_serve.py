"""`kinodex serve` as a process: it listens, answers, and a Ctrl-C ends it with what its questions have."""

from __future__ import annotations

import inspect
import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from kinodex.cli.serve import TOKEN_VARIABLE, serve
from tests.support.command import Kinodex, bad
from tests.support.servers.chat_server import ChatServer, hanging

COMMAND = [sys.executable, "-c", "from kinodex.cli.main import main; main()"]
TOKEN = "correct-horse-battery-staple"


def test_what_is_refused(kinodex: Kinodex, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad(kinodex, "serve", library, "--host", "0.0.0.0", code=2, says="KINODEX_SERVE_TOKEN")
    bad(kinodex, "serve", library, "--token", "short", code=2, says="give 16 or more")
    bad(kinodex, "serve", library, "--max-usd-per-day", "1", code=2, says="--max-usd-per-day without prices")
    bad(kinodex, "serve", library, "--agent", "eaa", code=2, says="did you mean 'eea'")
    bad(kinodex, "serve", tmp_path, code=2, says="which is no trace, run or library")
    bad(kinodex, "serve", library, "--space", "ViT-B-32/openai", code=2, says="ViT-B-32/openai")
    (tmp_path / "file").write_text("")
    bad(kinodex, "serve", library, "--port", "0", "--traces", tmp_path / "file", code=2, says="cannot keep traces in")
    monkeypatch.setenv(TOKEN_VARIABLE, "short")
    bad(kinodex, "serve", library, code=2, says="give 16 or more")


def test_it_listens_on_loopback_unless_another_host_is_named() -> None:
    assert inspect.signature(serve).parameters["host"].default == "127.0.0.1"


@pytest.mark.slow
def test_ctrl_c_ends_it_with_what_its_questions_have(library: Path, tmp_path: Path) -> None:
    reached = threading.Event()

    def reply(body: dict[str, Any]) -> Any:
        reached.set()
        return hanging(600)

    with ChatServer(reply, models=["tester"]) as models:
        command = [*COMMAND, "serve", str(library), "--port", "0", "--no-browser"]
        command += ["--model", "tester", "--base-url", models.base_url, "--no-cache"]
        environment = os.environ | {"KINODEX_STATE": str(tmp_path), "PYTHONUNBUFFERED": "1", TOKEN_VARIABLE: TOKEN}
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as server:
            assert server.stderr is not None
            said = [server.stderr.readline(), server.stderr.readline()]
            (address,) = re.findall(r"http://\S+:\d+/", said[1])
            request = urllib.request.Request(
                f"{address}data/libraries/0/questions",
                json.dumps({"question": "What colour is the bird?"}).encode(),
                {"content-type": "application/json", "authorization": f"Bearer {TOKEN}"},
            )
            assert json.load(urllib.request.urlopen(request)) == {"key": "q1"}
            assert reached.wait(60)
            server.send_signal(signal.SIGINT)
            _, rest = server.communicate()
            assert server.returncode == 0, rest
    assert said[0].startswith("asking tester") and "?token=…" in said[1]
    assert TOKEN not in "".join(said) + rest and "POST /data/libraries/0/questions 201" in rest
    (facts,) = tmp_path.glob("traces/*/q1.json")
    assert json.loads(facts.read_text())["state"] == "done"
    answer = json.loads(facts.with_suffix(".jsonl").read_text().splitlines()[-1])["answer"]
    assert (answer["status"], answer["reason"]) == ("budget_exhausted", "stopped")
