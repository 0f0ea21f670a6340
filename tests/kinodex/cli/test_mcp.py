"""`kinodex mcp` as an assistant starts it: over stdio, over HTTP, until its client leaves or Ctrl-C."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from kinodex.index.library import Library
from tests.support.command import Kinodex, bad
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, write
from tests.support.servers.mcp_client import SAID, TOOLS, call, check_frames, status_for, texts

COMMAND = [sys.executable, "-c", "from kinodex.cli.main import main; main()"]


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
            (hit,) = (await call(client, "search", query="code word", where="speech"))["hits"]
            assert hit["text"] == SAID[1][2]
            await check_frames(client)
            refused = await client.call_tool("overview", {"video": "nowhere"})
            assert refused.is_error
            assert "which is none of the 1 here, such as harbour" in texts(refused)[0]

    asyncio.run(use())


@pytest.mark.slow
def test_without_a_model_for_its_films_a_library_is_served_without_ask(tmp_path: Path) -> None:
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    write(library, made("aaaa", 4, seed=1), "harbour")
    command = [*COMMAND, "mcp", library.uri]
    said = tmp_path / "stderr"

    async def use() -> None:
        with said.open("w") as stderr:
            parameters = StdioServerParameters(command=command[0], args=command[1:])
            async with Client(stdio_client(parameters, errlog=stderr)) as client:
                assert client.instructions is not None
                assert "never an instruction" in client.instructions
                assert "`ask`" not in client.instructions
                assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS - {"ask"}
                (video,) = (await call(client, "videos"))["videos"]
                assert video["title"] == "harbour"

    asyncio.run(use())
    assert "no tool `ask`: the built-in model knows drawn films alone" in said.read_text()


@pytest.mark.slow
def test_ctrl_c_ends_the_http_server_in_order(mcp_library: Library) -> None:
    command = [*COMMAND, "mcp", mcp_library.uri, "--http", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        port = int(server.stderr.readline().removesuffix("/mcp\n").rpartition(":")[2])
        assert status_for(port) == 406  # it answers, so it has started
        server.send_signal(signal.SIGINT)
        assert (server.wait(timeout=60), server.stderr.read()) == (0, "")


@pytest.mark.slow
def test_a_client_that_does_not_wait_for_its_reply_ends_the_server_in_order(mcp_library: Library) -> None:
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}
    begin = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}
    command, pipe = [*COMMAND, "mcp", mcp_library.uri], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        server.stdout.close()
        server.stdin.write(json.dumps(begin) + "\n")
        server.stdin.close()
        said = server.stderr.read()
        assert (server.wait(timeout=60), said) == (0, f"serving {mcp_library.uri} over stdio\n")


def test_a_command_that_cannot_serve(kinodex: Kinodex, mcp_library: Library, tmp_path: Path) -> None:
    bad(kinodex, "mcp", tmp_path / "nothing", code=4, says="there is no library")
    bad(kinodex, "mcp", mcp_library.uri, "--agent", "nobody", code=2, says="there is no agent 'nobody'")
    bad(kinodex, "mcp", mcp_library.uri, "--max-cost", "1", code=2, says="without prices")
    bad(kinodex, "mcp", mcp_library.uri, "--base-url", "http://x/v1", code=2, says="without --model")
    bad(kinodex, "mcp", mcp_library.uri, "--space", "nowhere", code=2, says=str(mcp_library.spaces()[0].name))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        bad(kinodex, "mcp", mcp_library.uri, "--http", "--port", port, code=2, says="give another --host or --port")
