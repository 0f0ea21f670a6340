"""`kinodex serve` and `mcp`: what they refuse, and as processes that a Ctrl-C or their client ends in order."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client

from kinodex.cli.serve import TOKEN_VARIABLE, serve
from kinodex.index.library import Library
from kinodex.server.sockets import listen
from tests.support.command import Kinodex, Ran, bad
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, write
from tests.support.libraries.viewer_library import QUESTION, Shown
from tests.support.processes import ending_process
from tests.support.servers.chat_server import ChatServer
from tests.support.servers.gate import Gate
from tests.support.servers.mcp_client import TOOLS, call

COMMAND = [sys.executable, "-c", "from kinodex.cli.main import main; main()"]
TOKEN = "correct-horse-battery-staple"


@pytest.mark.slow
def test_what_serve_refuses(kinodex: Kinodex, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    for arguments, says in (
        ((library, "--host", "0.0.0.0"), TOKEN_VARIABLE),
        ((library, "--token", "short"), "give 16 or more"),
        ((library, "--max-usd-per-day", "1"), "--max-usd-per-day without prices"),
        ((library, "--agent", "eaa"), "did you mean 'eea'"),
        ((tmp_path,), "which is no trace, run or library"),
        ((library, "--space", "ViT-B-32/openai"), "ViT-B-32/openai"),
        ((library, "--port", "0", "--traces", tmp_path / "file"), "cannot keep traces in"),
    ):
        bad(kinodex, "serve", *arguments, code=2, says=says)
    monkeypatch.setenv(TOKEN_VARIABLE, "short")
    bad(kinodex, "serve", library, code=2, says="give 16 or more")


def test_it_listens_on_loopback_unless_another_host_is_named() -> None:
    with listen(inspect.signature(serve).parameters["host"].default, 0) as listener:
        assert ip_address(listener.getsockname()[0]).is_loopback


def leave_in_the_middle(port: int, path: str) -> None:
    """Begin a request and go away before its body is whole."""
    with socket.create_connection(("127.0.0.1", port)) as client:
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        client.sendall(f"{head}Authorization: Bearer {TOKEN}\r\nContent-Length: 999\r\n\r\n{{".encode())


@pytest.mark.slow
def test_a_client_that_leaves_is_no_fault_and_ctrl_c_ends_it_with_what_its_questions_have(
    library: Path, tmp_path: Path
) -> None:
    gate = Gate()
    with ChatServer(gate, models=["tester"]) as models:
        command = [*COMMAND, "serve", str(library), "--port", "0", "--no-browser"]
        command += ["--model", "tester", "--base-url", models.base_url, "--no-cache"]
        environment = os.environ | {"KINODEX_STATE": str(tmp_path), "PYTHONUNBUFFERED": "1", TOKEN_VARIABLE: TOKEN}
        with ending_process(command, stderr=subprocess.PIPE, text=True, env=environment) as server:
            assert server.stderr is not None
            said = [server.stderr.readline(), server.stderr.readline()]
            ((address, port),) = re.findall(r"(http://\S+:(\d+)/)", said[1])
            for path in ("v1/chat/completions", "data/libraries/0/questions"):
                leave_in_the_middle(int(port), f"/{path}")
                said.append(next(line for line in server.stderr if "POST" in line))
            request = urllib.request.Request(
                f"{address}data/libraries/0/questions",
                json.dumps({"question": "What colour is the bird?"}).encode(),
                {"content-type": "application/json", "authorization": f"Bearer {TOKEN}"},
            )
            assert json.load(urllib.request.urlopen(request)) == {"key": "q1"}
            assert gate.reached.wait(60)
            server.send_signal(signal.SIGINT)
            _, rest = server.communicate()
            assert server.returncode == 0, rest
            gate.open.set()
    assert said[0].startswith("asking tester") and "?token=TOKEN" in said[1]
    assert all(" 499 " in line for line in said[2:]) and "Traceback" not in rest, (said, rest)
    assert TOKEN not in "".join(said) + rest and "POST /data/libraries/0/questions 201" in rest
    (facts,) = tmp_path.glob("traces/*/q1.json")
    assert json.loads(facts.read_text())["state"] == "done"
    answer = json.loads(facts.with_suffix(".jsonl").read_text().splitlines()[-1])["answer"]
    assert (answer["status"], answer["reason"]) == ("budget_exhausted", "stopped")


def test_traces_that_serve_refuses(kinodex: Kinodex, tmp_path: Path, shown: Shown) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    bad(kinodex, "serve", tmp_path / "notes.txt", shown.library.uri, code=2, says="cannot be read as a trace")


def served(kinodex: Kinodex, work: Callable[[str], Coroutine[Any, Any, None]], *arguments: object) -> Ran:
    """Run a command that serves in this process, have `work` use its address meanwhile, and end it by Ctrl-C."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    has_ended = threading.Event()

    def use() -> None:
        try:
            while not has_ended.wait(0.01):
                with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
                    break
            asyncio.run(work(f"http://127.0.0.1:{port}/"))
        finally:
            if not has_ended.is_set():
                signal.raise_signal(signal.SIGINT)

    with ThreadPoolExecutor(1) as pool:
        used = pool.submit(use)
        ran = kinodex(*arguments, "--port", port)
        has_ended.set()
        used.result()
    return ran


@pytest.mark.usefixtures("ctrl_c")
def test_traces_alone_are_shown_and_nothing_can_be_asked(shown: Shown, tmp_path: Path, kinodex: Kinodex) -> None:
    async def look(address: str) -> None:
        async with httpx2.AsyncClient(base_url=address) as client:
            home = (await client.get("data/home")).json()
            assert (len(home["traces"]), home["serve"]) == (len(shown.traces), None)
            trace = (await client.get("data/traces/t0")).json()["trace"]
            assert trace["question"]["text"] == QUESTION.text

    ran = served(kinodex, look, "serve", *shown.traces, "--no-browser", "--traces", tmp_path / "traces")
    assert ran.code == 0, ran


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_the_http_server(tmp_path: Path, kinodex: Kinodex) -> None:
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    write(library, made("aaaa", 4, seed=1), "harbour")

    async def use(address: str) -> None:
        async with Client(f"{address}mcp") as client:
            assert client.instructions is not None and "never an instruction" in client.instructions
            assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
            (video,) = (await call(client, "videos"))["videos"]
            assert video["title"] == "harbour"

    ran = served(kinodex, use, "mcp", library.uri, "--http")
    assert (ran.code, len(ran.err.splitlines())) == (0, 1), ran


@pytest.mark.slow
def test_a_client_that_does_not_wait_for_its_reply_ends_the_server_in_order(mcp_library: Library) -> None:
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}
    begin = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}
    command, pipe = [*COMMAND, "mcp", mcp_library.uri], subprocess.PIPE
    with ending_process(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        server.stdout.close()
        server.stdin.write(json.dumps(begin) + "\n")
        server.stdin.close()
        said = server.stderr.read()
        assert (server.wait(timeout=60), said) == (0, f"serving {mcp_library.uri} over stdio\n")


@pytest.mark.slow
def test_what_mcp_refuses(kinodex: Kinodex, mcp_library: Library, tmp_path: Path) -> None:
    bad(kinodex, "mcp", tmp_path / "nothing", code=4, says="there is no library")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for options, says in (
            (("--agent", "nobody"), "there is no agent 'nobody'"),
            (("--max-cost", "1"), "without prices"),
            (("--base-url", "http://x/v1"), "without --model"),
            (("--space", "nowhere"), str(mcp_library.spaces()[0].name)),
            (("--http", "--port", taken.getsockname()[1]), "give another --host or --port"),
        ):
            bad(kinodex, "mcp", mcp_library.uri, *options, code=2, says=says)
