"""A library with everything that MCP tools read, its server, and calls by the SDK's own client."""

from __future__ import annotations

import asyncio
import base64
import http.client
import io
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mcp import Client
from mcp.server import MCPServer
from mcp.types import CallToolResult
from PIL import Image

from kinodex.agent.limits.budget import Budget
from kinodex.desk import Desk
from kinodex.index.library import Library
from kinodex.index.rows import SpeechRow
from kinodex.mcp.ask_tool import AskOptions, answer_here
from kinodex.mcp.replies import TEXT_BYTES
from kinodex.mcp.server import make_server
from tests.support.libraries.random_library import add_stage
from tests.support.models.stage_models import library_of
from tests.world.rules.model import RuleBasedModel
from tests.world.sketch.render import render_film
from tests.world.sketch.script import FPS, write_script

TOOLS = {"videos", "overview", "search", "ground", "frames", "lines", "captions", "chapters", "detections", "ask"}
SAID = ((1.0, 3.0, "Good morning."), (4.0, 6.0, "Listen well: the code word is summer."), (8.0, 9.0, "Goodbye."))
QUESTION, OPTIONS = "Which of these is shown?", ["a boat", "a car"]


def make_library(folder: Path) -> Library:
    """Make a library of one drawn and decoded film of 30 s, `harbour`, with a transcript and detections."""
    render_film(write_script("harbour", 30.0, 5), folder / "harbour.mp4", every=FPS)
    library = library_of(folder / "library", [folder / "harbour.mp4"])
    (video,) = library.videos()
    library.writer.add_speech({video.video_id: [SpeechRow(video.video_id, *line, "sidecar") for line in SAID]})
    boat = {"label": "boat", "score": 0.9, "box": (0.1, 0.2, 0.3, 0.4), "track_id": 1}
    seen = [SimpleNamespace(frame_no=number, time_s=float(number), **boat) for number in range(10)]
    add_stage(library, "detections", "eyes", {video.video_id: seen})
    return library


def server_of(library: Library, budget: Budget | None = None) -> MCPServer:
    """Make the MCP server of a library, with the built-in model."""
    desk = Desk(library, agent="eea", is_local=False)
    return make_server(desk, AskOptions({"default": "rules"}, budget or Budget()), answer_here(desk, RuleBasedModel))


def use_tools(library: Library, use: Callable[[Client], Awaitable[None]], budget: Budget | None = None) -> None:
    """Let a client in this process use a library's tools."""

    async def run() -> None:
        async with Client(server_of(library, budget)) as client:
            await use(client)

    asyncio.run(run())


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool and return its reply as data, which is the same as its text."""
    result = await client.call_tool(tool, {name.rstrip("_"): value for name, value in arguments.items()})
    assert not result.is_error, result.content
    assert json.loads(texts(result)[0]) == result.structured_content
    assert len(texts(result)[0].encode()) < TEXT_BYTES + 2_000
    return dict(result.structured_content or {})


def texts(result: CallToolResult) -> list[str]:
    return [each.text for each in result.content if each.type == "text"]


def pictures(result: CallToolResult) -> list[Image.Image]:
    jpegs = [base64.b64decode(each.data) for each in result.content if each.type == "image"]
    return [Image.open(io.BytesIO(jpeg)) for jpeg in jpegs]


async def check_frames(client: Client) -> None:
    """Check that `frames` returns each picture after its number and time."""
    result = await client.call_tool("frames", {"video": "harbour", "times_s": [3.4, 10.0], "side_px": 128})
    heading, *labels = map(json.loads, texts(result))
    assert (heading["frames"], [label["time_s"] for label in labels]) == (2, [3.0, 10.0])
    assert [each.type for each in result.content] == ["text", "text", "image", "text", "image"]
    assert [picture.size for picture in pictures(result)] == [(128, 72), (128, 72)]


def status_for(port: int, **headers: str) -> int:
    """Status of a bare POST to the server's address with these headers."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/mcp", "{}", {"Content-Type": "application/json", **headers})
    status = connection.getresponse().status
    connection.close()
    return status
