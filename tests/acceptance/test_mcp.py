"""MCP: the tools of a library by the client of the SDK, over HTTP and stdio, and what is refused."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from PIL import Image

from tests.acceptance import CAPTION, CAPTIONS, FACTS, FRAMES, IN_MCP, LINE, TENTS
from tests.acceptance.conftest import COMMAND, running
from tests.support.command import Kinodex, bad

pytestmark = pytest.mark.slow  # starts servers
Use = Callable[[Callable[[Client], Awaitable[None]]], None]


@pytest.fixture(scope="module")
def using(shown: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Use]:
    """A function that lets a client use the server of the library."""
    with running("mcp", shown, "--http", "--port", 0, state=tmp_path_factory.mktemp("state")) as address:

        def use(work: Callable[[Client], Awaitable[None]]) -> None:
            async def run() -> None:
                async with Client(address) as client:
                    await work(client)

            asyncio.run(run())

        yield use


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


def test_what_a_library_holds_and_where_things_are(using: Use) -> None:
    async def work(client: Client) -> None:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert names >= {"videos", "overview", "search", "ground", "frames", "lines", CAPTIONS, "ask"}
        assert [video["title"] for video in (await call(client, "videos"))["videos"]] == [
            "film-01",
            "film-02",
            "film-03",
        ]
        for fact in FACTS:
            (hit,) = (await call(client, "search", query=fact.words, k=1, **{IN_MCP: FRAMES}))["hits"]
            assert hit["title"] == fact.film and fact.covers(hit["start_s"])
        rear = await call(client, "search", query=TENTS.words, where="camera = 'rear'")
        assert {hit["title"] for hit in rear["hits"]} == {"film-02"}
        best = (await call(client, "ground", text=TENTS.words))["ranges"][0]
        assert best["title"] == TENTS.film and TENTS.covers(best["start_s"])

    using(work)


def test_lines_captions_and_pictures_of_a_film(using: Use) -> None:
    async def work(client: Client) -> None:
        lines = (await call(client, "lines", video="film-01", start_s=10, end_s=20))["lines"]
        assert [(line["text"], line["start_s"], line["end_s"]) for line in lines] == [(LINE[0], *LINE[2:])]
        (caption,) = (await call(client, CAPTIONS, video="film-02"))["captions"]
        assert (caption["text"], caption["start_s"]) == (CAPTION[0], CAPTION[2])
        result = await client.call_tool("frames", {"video": "film-01", "times_s": [18.4], "side_px": 128})
        (picture,) = (part for part in result.content if part.type == "image")
        assert Image.open(io.BytesIO(base64.b64decode(picture.data))).size == (128, 72)

    using(work)


def test_an_agent_answers(using: Use) -> None:
    async def work(client: Client) -> None:
        asked = {"question": TENTS.question, "options": list(TENTS.options), "videos": [TENTS.film]}
        answer = await call(client, "ask", **asked, budget={"frames": 30})
        assert (answer["letter"], answer["answer"], answer["status"]) == (TENTS.letter, "red", "answered")
        assert all(TENTS.covers(each["start_s"]) for each in answer["evidence"])
        assert answer["ledger"]["frames"] <= 30

    using(work)


REFUSED: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("search", {"query": " "}, "give some words"),
    ("search", {"query": "x", IN_MCP: "smells"}, "smells"),
    ("search", {"query": "x", "videos": ["nobody"]}, "such as film-01"),
    ("search", {"query": "x", "k": -1}, "k"),
    ("search", {"query": "x", "zap": 1}, "zap"),
    ("frames", {"video": "film-01", "times_s": [99]}, "give a time in there"),
    ("ask", {"question": "What?", "agent": "kinoo"}, "did you mean"),
    ("ask", {"question": "What?", "budget": {"frames": 0}}, "0 frames"),
)


def test_bad_calls_are_errors_of_one_line(using: Use) -> None:
    async def work(client: Client) -> None:
        for tool, arguments, says in REFUSED:
            result = await client.call_tool(tool, arguments)
            (text,) = (part.text for part in result.content if part.type == "text")
            assert result.is_error and says in text and "\n" not in text.strip(), (tool, text)

    using(work)


def test_an_assistant_starts_it_over_stdio(shown: Path) -> None:
    async def run() -> None:
        command = [*COMMAND, "mcp", str(shown)]
        async with Client(StdioServerParameters(command=command[0], args=command[1:])) as client:
            overview = await client.call_tool("overview", {"video": "film-01"})
            text = next(part.text for part in overview.content if part.type == "text")
            assert json.loads(text)["video"]["title"] == "film-01"

    asyncio.run(run())


def test_what_mcp_refuses(kinodex: Kinodex, shown: Path, tmp_path: Path) -> None:
    bad(kinodex, "mcp", tmp_path / "none", code=4, says="there is no library")
    bad(kinodex, "mcp", shown, "--agent", "kinoo", code=2, says="there is no agent 'kinoo'")
    bad(kinodex, "mcp", shown, "--max-cost", 1, code=2, says="prices")
