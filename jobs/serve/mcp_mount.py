"""MCP over HTTP in the server's own process: `/mcp/NAME` for each library, and `/mcp` where there is one alone.

The tools are those of `kinodex mcp`. Questions go the way of all others of the server: within its limits, and kept.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from agent.answer import Answer
from index.library import Library
from jobs.model_choice import describe_models
from jobs.serve.openai.model_names import library_names
from jobs.serve.questions import Questions
from jobs.serve.running import FINISHED, AskRequest
from jobs.server_socket import LOOPBACK
from jobs.viewer.server import json_response

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from jobs.mcp.ask_tool import Answering, AskCall, Titles, Watch

EVERY_NAME = "0.0.0.0"
"""The host for which the SDK checks no names: the server's guard does, by its token."""


@dataclass(frozen=True, slots=True)
class McpMount:
    """Routes, and what has to be open while they are served."""

    routes: Sequence[Any]
    opened: Callable[[], AbstractAsyncContextManager[None]]


def mount_mcp(questions: Questions, libraries: Sequence[Library], host: str) -> McpMount:
    """Make the routes over these libraries; without the extra `mcp` one that says so."""
    if find_spec("mcp") is None:
        return McpMount(_elsewhere("MCP needs the extra mcp: pip install 'kinodex[mcp]'", 501), _nothing)
    names = library_names([library.uri for library in libraries])
    paths = ["/mcp", f"/mcp/{names[0]}"] if len(names) == 1 else [f"/mcp/{name}" for name in names]
    numbers = [0] * len(paths) if len(names) == 1 else range(len(names))
    apps = [
        _app(questions, number, libraries[number].uri, path, host) for number, path in zip(numbers, paths, strict=True)
    ]

    @asynccontextmanager
    async def opened() -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for app in apps:
                await stack.enter_async_context(app.router.lifespan_context(app))
            yield

    routes = [route for app in apps for route in app.routes]
    return McpMount([*routes, *_elsewhere(f"there is no MCP server here; there is {', '.join(paths)}", 404)], opened)


def _app(questions: Questions, number: int, uri: str, path: str, host: str) -> Any:
    from jobs.mcp.ask_tool import AskOptions
    from jobs.mcp.server import make_server
    from jobs.mcp.tools import LibraryTools

    settings = questions.settings
    tools = LibraryTools(Library.open(uri), settings.detector, settings.space)  # of its own: it is read in threads
    options = AskOptions(None, describe_models(settings.choice), settings.agent, settings.budget)
    server = make_server(tools, options, _answering(questions, number, tools))
    checked = host if host in LOOPBACK else EVERY_NAME
    return server.streamable_http_app(streamable_http_path=path, host=checked)


def _answering(questions: Questions, number: int, tools: Any) -> Answering:
    """Answer calls as questions of the server; a client who cancels stops its own."""

    async def answer(call: AskCall, watch: Watch) -> tuple[Answer, Titles]:
        running = questions.start(
            AskRequest(
                library=number,
                question=call.question,
                agent=call.agent.name,
                videos=tuple(call.videos),
                settings=call.settings,
                budget=call.budget,
            )
        )
        seen = 0
        try:
            async for _ in running.changes():
                records = running.records
                for record in records[seen:]:
                    watch(record.get("round", 0), record["event"] == "Exchanged")
                    seen += 1
            answered = await running.finished()
        finally:
            if running.state not in FINISHED:
                running.stop(at_once=True)
        titles = {video["video_id"]: video["title"] for video in running.records[0]["videos"]}
        return answered, titles

    return answer


def _elsewhere(sentence: str, status: int) -> list[Any]:
    from starlette.routing import Route

    async def respond(request: Request) -> Response:
        return json_response({"error": sentence}, status=status)

    methods = ["GET", "POST", "DELETE"]
    return [Route("/mcp", respond, methods=methods), Route("/mcp/{rest:path}", respond, methods=methods)]


@asynccontextmanager
async def _nothing() -> AsyncIterator[None]:
    yield
