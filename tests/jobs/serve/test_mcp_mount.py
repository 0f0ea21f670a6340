"""MCP over HTTP in the server's process: the tools of each library, questions within the server's limits, the guard."""

from __future__ import annotations

import asyncio
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from mcp import Client as McpClient

from kinodex.jobs.models import ModelChoice
from tests.support.servers.chat_server import ChatServer
from tests.support.servers.mcp_client import TOOLS, call, texts
from tests.support.servers.serve_server import JSON, Client, serving

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPT = {"accept": "application/json, text/event-stream"}


def test_the_tools_of_a_library_and_a_question(client: Client) -> None:
    async def use() -> dict[str, Any]:
        async with McpClient(f"{client.address}/mcp") as mcp:
            assert {tool.name for tool in (await mcp.list_tools()).tools} == TOOLS
            assert (await call(mcp, "videos"))["library_videos"] == 3
            asked = {"question": "What colour is the bird at sea?", "options": ["red", "black"], "videos": ["film-01"]}
            return await call(mcp, "ask", **asked)

    answer = asyncio.run(use())
    assert (answer["status"], answer["letter"], answer["evidence"][0]["title"]) == ("answered", "B", "film-01")
    row = client.get("/data/questions?library=0").json["rows"][0]
    assert (row["question"], row["videos"], row["letter"]) == ("What colour is the bird at sea?", ["film-01"], "B")


def test_a_library_by_its_name_and_the_guard(library: Path, tmp_path: Path) -> None:
    other = shutil.copytree(library, tmp_path / "other")
    with serving([library, other], tmp_path / "traces") as client:

        async def titles(name: str) -> list[str]:
            async with McpClient(f"{client.address}/mcp/{name}") as mcp:
                return [each["title"] for each in (await call(mcp, "videos"))["videos"]]

        for name in ("library", "other"):
            assert asyncio.run(titles(name)) == ["film-01", "film-02", "film-03"]
        missing = client.post("/mcp", PING, ACCEPT)
        assert missing.status == 404
        assert missing.json == {"error": "there is no MCP server here; there is /mcp/library, /mcp/other"}
    with serving([library], tmp_path / "more", token="a-token-of-some-length") as client:
        assert client.post("/mcp", PING, {**ACCEPT, "authorization": "Bearer wrong"}).status == 401
        assert client.post("/mcp", PING, {**ACCEPT, "origin": "http://evil.example"}).status == 403
        assert client.send("POST", "/mcp", b"x" * 2**21, {**JSON, **ACCEPT}).status == 413


def test_the_limits_of_the_server_hold(library: Path, tmp_path: Path) -> None:
    """A question that is cancelled is stopped, and no more than one is answered at once."""
    held, reached = threading.Event(), threading.Event()

    def never(body: dict[str, Any]) -> str:
        reached.set()
        held.wait(60)
        return "{}"

    async def use(client: Client) -> None:
        async with McpClient(f"{client.address}/mcp") as mcp:
            first = asyncio.ensure_future(mcp.call_tool("ask", {"question": "Who?"}))
            assert await asyncio.to_thread(reached.wait, 60)
            (running,) = client.questions.running
            refused = await mcp.call_tool("ask", {"question": "Who?"})
            assert refused.is_error
            assert "as many as this server answers at once" in texts(refused)[0]
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            assert (await running.finished()).reason == "stopped"
        held.set()

    with ChatServer(never) as server:
        choice = ModelChoice("tester", server.base_url, cache=False)
        with serving([library], tmp_path, choice, at_once=1) as client:
            asyncio.run(use(client))
