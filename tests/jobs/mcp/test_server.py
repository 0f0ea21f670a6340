"""The tools over HTTP, what they say of themselves, and their errors."""

from __future__ import annotations

import asyncio
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from kinodex.index.library import Library
from kinodex.mcp import replies
from kinodex.mcp.server import serve_http
from tests.support.libraries.text_library import text_library
from tests.support.servers.mcp_client import (
    OPTIONS,
    QUESTION,
    TOOLS,
    call,
    check_frames,
    server_of,
    status_for,
    texts,
    use_tools,
)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_http_on_loopback(mcp_library: Library, mode: str) -> None:
    """Clients of today's protocol and of the one before; a page of another site is refused."""

    async def use() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            serving = asyncio.create_task(serve_http(server_of(mcp_library), listener, "127.0.0.1"))
            async with Client(f"http://127.0.0.1:{port}/mcp", mode=mode) as client:
                several = [call(client, "transcript", video="harbour") for _ in range(4)]
                assert [len(each["lines"]) for each in await asyncio.gather(*several)] == [3] * 4
                (hit,) = (await call(client, "search", query="boat", where="pictures", start_s=5, end_s=8, k=1))["hits"]
                assert 5 <= hit["start_s"] < 8
                await check_frames(client)
                answer = await call(client, "ask", question=QUESTION, options=OPTIONS)
                assert answer["ledger"]["frames"] > 0
            assert await asyncio.to_thread(status_for, port, Host="evil.example") == 421
            assert await asyncio.to_thread(status_for, port, Origin="http://evil.example") == 403
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(use())


def test_http_for_others_serves_no_page_of_a_browser(mcp_library: Library) -> None:
    """Any name may lead there, one that a site has given to this address too."""

    async def use() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            serving = asyncio.create_task(serve_http(server_of(mcp_library), listener, "0.0.0.0"))
            async with Client(f"http://127.0.0.1:{port}/mcp") as client:
                assert len((await call(client, "transcript", video="harbour"))["lines"]) == 3
            assert await asyncio.to_thread(status_for, port, Host="library.example") == 406
            assert await asyncio.to_thread(status_for, port, Origin="http://library.example") == 403
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(use())


def test_what_tools_say_of_themselves(mcp_library: Library) -> None:
    async def use(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        limits = {"videos": 100, "overview": 60, "search": 50, "frames": 8, "transcript": 200, "ask": 50}
        for name, limit in limits.items():
            assert f"At most {limit} " in (tools[name].description or "")
        assert "1,024 pixels" in (tools["frames"].description or "")
        assert "700,000 bytes" in (tools["frames"].description or "")
        reads = {name for name, tool in tools.items() if tool.annotations and tool.annotations.read_only_hint}
        assert reads == TOOLS - {"ask"}
        stated = tuple(getattr(replies, name) for name in ("VIDEOS", "SEGMENTS", "HITS", "FRAMES", "ROWS", "EVIDENCE"))
        assert stated == tuple(limits.values())
        assert (replies.SIDE_PX, replies.IMAGE_BYTES, replies.TEXT_BYTES) == (1024, 700_000, 40_000)

    use_tools(mcp_library, use)


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("frames", {"video": "harbour", "times_s": [99]}, "give a time in there"),
        ("frames", {"video": "harbour", "start_s": 100, "end_s": 200}, "harbour, which covers [0.000, 30.000) s"),
        ("overview", {"video": "x" * 100_000}, "(100,"),
        ("overview", {"video": "harbour", "start_s": "nan"}, "start_s: Input should be a finite number"),
        ("transcript", {"video": "harbour", "start_s": 30}, "[0.000, 30.000) s; give times in there"),
        ("captions", {"video": "harbour", "end_s": 0}, "give times in there"),
        ("detections", {"video": "harbour", "start_s": 31, "end_s": 40}, "give times in there"),
        ("transcript", {"video": "harbour", "start_s": 5, "end_s": 5}, "the end must be after the start"),
        ("search", {"query": " "}, "give some words to look for"),
        ("search", {"query": "x", "videos": ["nobody"]}, "such as harbour"),
        ("search", {"query": "x", "k": -1}, "got k=-1; ask for at least 1 hit"),
        ("ask", {"question": "What?", "agent": "ea"}, "did you mean"),
        ("ask", {"question": "What?", "agent": "videoseek"}, "needs a language model"),
        ("ask", {"question": "What?", "settings": {"zap": 1}}, "there is no parameter 'zap'"),
        ("ask", {"question": "What?", "options": ["one"]}, "2 to 26"),
        ("ask", {"question": "What?", "max_frames": 0}, "above 0, or leave it out"),
        (
            "search",
            {"query": 5, "k": "many"},
            "query: Input should be a valid string; k: Input should be a valid integer",
        ),
        ("search", {"query": "x", "videos": []}, "videos: List should have at least 1 item"),
        ("search", {"query": "x", "where": "frames"}, "where: Input should be 'all'"),
        ("ask", {"question": "What?", "videos": []}, "videos: List should have at least 1 item"),
        ("ask", {"question": "What?", "max_seconds": "inf"}, "max_seconds: Input should be a finite number"),
        ("frames", {"video": "harbour", "times_s": [1.0], "count": 2}, "or else start_s, end_s and count"),
        ("frames", {"video": "harbour", "times_s": [1.0], "start_s": 2}, "or else start_s, end_s and count"),
        ("frames", {"video": "harbour", "times_s": []}, "give times_s with a time or more"),
        ("detections", {"video": "harbour", "min_score": "x" * 100_000}, "min_score: Input should be a valid number"),
    ],
)
def test_errors_of_the_tree_are_one_line(mcp_library: Library, tool: str, arguments: dict[str, Any], says: str) -> None:
    async def use(client: Client) -> None:
        result = await client.call_tool(tool, arguments)
        (text,) = texts(result)
        assert result.is_error
        assert says in text
        assert "\n" not in text and "https:" not in text, "pydantic's messages have lines and links"
        assert len(text) < 1_200

    use_tools(mcp_library, use)


@pytest.mark.parametrize(
    ("tool", "arguments", "wrong"),
    [
        ("search", {"query": "x", "video": "harbour"}, "video"),
        ("frames", {"video": "harbour", "times": [1.0]}, "times"),
    ],
)
def test_an_argument_that_a_tool_does_not_have_is_refused(
    mcp_library: Library, tool: str, arguments: dict[str, Any], wrong: str
) -> None:
    """Left out, it would have been a search of all videos, or other pictures than were asked for."""

    async def use(client: Client) -> None:
        result = await client.call_tool(tool, arguments)
        (text,) = texts(result)
        assert result.is_error
        assert f"{tool} cannot be called so: {wrong}: Extra inputs are not permitted; it takes " in text
        (offered,) = [each for each in (await client.list_tools()).tools if each.name == tool]
        assert offered.input_schema["additionalProperties"] is False

    use_tools(mcp_library, use)


def test_a_library_that_has_gone_is_said_in_a_line(tmp_path: Path) -> None:
    words = text_library(tmp_path / "words", {"walk": [(0.0, 4.0, "a red kite")]}, space="builtin")
    calls: dict[str, dict[str, Any]] = {"videos": {}, "overview": {"video": "walk"}, "search": {"query": "kite"}}
    calls["ask"] = {"question": "What?"}

    async def use(client: Client) -> None:
        assert (await call(client, "search", query="kite"))["hits"]
        shutil.rmtree(words.uri)
        for tool, arguments in calls.items():
            result = await client.call_tool(tool, arguments)
            assert result.is_error
            (text,) = texts(result)
            assert f"cannot use {words.uri}: " in text
            assert "\n" not in text

    use_tools(words, use)
