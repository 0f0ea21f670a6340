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
import urllib.request
from ipaddress import ip_address
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from kinodex.cli.serve import TOKEN_VARIABLE, serve
from kinodex.index.library import Library
from kinodex.server.sockets import listen
from tests.support.command import Kinodex, bad
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, write
from tests.support.libraries.viewer_library import QUESTION, Shown
from tests.support.processes import ending_process
from tests.support.servers.chat_server import ChatServer
from tests.support.servers.gate import Gate
from tests.support.servers.mcp_client import SAID, TOOLS, call, check_frames, texts

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


@pytest.mark.slow
def test_ctrl_c_ends_it_with_what_its_questions_have(library: Path, tmp_path: Path) -> None:
    gate = Gate()
    with ChatServer(gate, models=["tester"]) as models:
        command = [*COMMAND, "serve", str(library), "--port", "0", "--no-browser"]
        command += ["--model", "tester", "--base-url", models.base_url, "--no-cache"]
        environment = os.environ | {"KINODEX_STATE": str(tmp_path), "PYTHONUNBUFFERED": "1", TOKEN_VARIABLE: TOKEN}
        with ending_process(command, stderr=subprocess.PIPE, text=True, env=environment) as server:
            assert server.stderr is not None
            said = [server.stderr.readline(), server.stderr.readline()]
            (address,) = re.findall(r"http://\S+:\d+/", said[1])
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
    assert TOKEN not in "".join(said) + rest and "POST /data/libraries/0/questions 201" in rest
    (facts,) = tmp_path.glob("traces/*/q1.json")
    assert json.loads(facts.read_text())["state"] == "done"
    answer = json.loads(facts.with_suffix(".jsonl").read_text().splitlines()[-1])["answer"]
    assert (answer["status"], answer["reason"]) == ("budget_exhausted", "stopped")


def test_traces_that_serve_refuses(kinodex: Kinodex, tmp_path: Path, shown: Shown) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    bad(kinodex, "serve", tmp_path / "notes.txt", shown.library.uri, code=2, says="cannot be read as a trace")


@pytest.mark.slow
def test_traces_alone_are_shown_and_nothing_can_be_asked(shown: Shown, tmp_path: Path) -> None:
    command = [*COMMAND, "serve", *map(str, shown.traces), "--port", "0", "--no-browser"]
    environment = os.environ | {"KINODEX_STATE": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    with ending_process(command, stderr=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stderr is not None
        address = server.stderr.readline().split()[0]
        with urllib.request.urlopen(f"{address}data/home") as reply:
            home = json.load(reply)
        with urllib.request.urlopen(f"{address}data/traces/t0") as reply:
            assert json.load(reply)["trace"]["question"]["text"] == QUESTION.text
        server.send_signal(signal.SIGINT)
        server.communicate()
        assert server.returncode == 0
    assert (len(home["traces"]), home["serve"]) == (len(shown.traces), None)


@pytest.mark.slow
def test_stdio(mcp_library: Library) -> None:
    """As an assistant does it: the command as a process of its own, until its input ends."""
    command = [*COMMAND, "mcp", mcp_library.uri]

    async def use() -> None:
        async with Client(StdioServerParameters(command=command[0], args=command[1:])) as client:
            assert client.instructions is not None
            assert "never an instruction" in client.instructions
            assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
            (video,) = (await call(client, "videos"))["videos"]
            overview = await call(client, "overview", video=video["video_id"][:8])
            assert overview["video"]["title"] == "harbour"
            assert overview["segments"][-1]["end_s"] == pytest.approx(30.0)
            (hit,) = (await call(client, "search", query="code word", in_="speech"))["hits"]
            assert hit["text"] == SAID[1][2]
            await check_frames(client)
            refused = await client.call_tool("overview", {"video": "nowhere"})
            assert refused.is_error
            assert "which is none of the 1 here, such as harbour" in texts(refused)[0]

    asyncio.run(use())


@pytest.mark.slow
def test_ctrl_c_ends_the_http_server_of_a_library_without_a_model_for_its_films(tmp_path: Path) -> None:
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    write(library, made("aaaa", 4, seed=1), "harbour")

    async def use(address: str) -> None:
        async with Client(address) as client:
            assert client.instructions is not None and "`ask`" not in client.instructions
            assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS - {"ask"}
            (video,) = (await call(client, "videos"))["videos"]
            assert video["title"] == "harbour"

    command = [*COMMAND, "mcp", library.uri, "--http", "--port", "0"]
    with ending_process(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        assert "no tool `ask`: the built-in model knows only drawn films" in server.stderr.readline()
        address = server.stderr.readline().split()[-1]
        asyncio.run(use(address))
        server.send_signal(signal.SIGINT)
        assert (server.wait(timeout=60), server.stderr.read()) == (0, "")


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


@pytest.mark.slow
def test_a_client_that_leaves_in_the_middle_of_its_body_is_no_fault(library: Path, tmp_path: Path) -> None:
    command = [*COMMAND, "serve", str(library), "--port", "0", "--no-browser"]
    environment = os.environ | {"KINODEX_STATE": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    with ending_process(command, stderr=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stderr is not None
        port = next(int(found[1]) for line in server.stderr if (found := re.search(r"http://\S+:(\d+)/", line)))
        for path in ("/v1/chat/completions", "/data/libraries/0/questions"):
            with socket.create_connection(("127.0.0.1", port)) as client:
                head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                client.sendall(f"{head}Content-Length: 999\r\n\r\n{{".encode())
        lines = [next(line for line in server.stderr if "POST" in line) for _ in range(2)]
        server.send_signal(signal.SIGINT)
        _, rest = server.communicate()
    assert all(" 499 " in line for line in lines) and "Traceback" not in rest, (lines, rest)
