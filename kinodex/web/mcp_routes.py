"""MCP over HTTP in the server's own process: `/mcp/NAME` for each library, and `/mcp` where there is one alone.

The tools are those of `kinodex mcp`. Questions go the way of all others of the server: within its limits, and kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from kinodex.agent.answer import Answer
from kinodex.index.library import Library
from kinodex.jobs.models import describe_models
from kinodex.requests import Ask
from kinodex.server.guards import LOOPBACK
from kinodex.server.responses import json_response
from kinodex.web.openai.models import library_names
from kinodex.web.questions import Questions

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    from kinodex.mcp.ask_tool import Answering, Titles, Watch

EVERY_NAME = "0.0.0.0"
"""The host for which the SDK checks no names: the server's guard does, by its token."""


def mcp_apps(questions: Questions, libraries: Sequence[Library], own_host: str) -> dict[str, Starlette]:
    """Return an MCP server for each library, by its path; none without the extra `mcp`."""
    if find_spec("mcp") is None:
        return {}
    names = library_names([library.uri for library in libraries])
    numbers = {f"/mcp/{name}": number for number, name in enumerate(names)}
    numbers = {"/mcp": 0} | numbers if len(names) == 1 else numbers
    host = own_host if own_host in LOOPBACK else EVERY_NAME
    return {path: _mcp_app(questions, number, libraries[number], path, host) for path, number in numbers.items()}


def _mcp_app(questions: Questions, number: int, library: Library, path: str, host: str) -> Starlette:
    from kinodex.mcp.ask_tool import AskOptions
    from kinodex.mcp.server import make_server

    settings = questions.settings
    looks = settings.choice.may_use_endpoints
    own = Library.open(library.uri)  # it is read in threads
    desk = settings.desk(own, look=questions.look if looks else None)
    options = AskOptions(describe_models(settings.choice), settings.budget)
    server = make_server(desk, options, _mcp_answering(questions, number), looks=looks)
    return server.streamable_http_app(streamable_http_path=path, host=host)


def _mcp_answering(questions: Questions, number: int) -> Answering:
    """Answer calls as questions of the server; a client who cancels stops its own."""

    async def answer(request: Ask, watch: Watch) -> tuple[Answer, Titles]:
        running = questions.start(number, request)
        seen = 0
        try:
            async for _ in running.changes():
                records = running.records
                for record in records[seen:]:
                    watch(record.get("round", 0), record["event"] == "Exchanged")
                    seen += 1
            answered = await running.finished()
        finally:
            running.stop(at_once=True)
        titles = {video["video_id"]: video["title"] for video in running.records[0]["videos"]}
        return answered, titles

    return answer


def mcp_routes(apps: dict[str, Starlette]) -> Sequence[Any]:
    from starlette.routing import Route

    sentence, status = f"there is no MCP server here; there is {', '.join(apps)}", 404
    if not apps:
        sentence, status = "MCP needs the extra mcp: pip install 'kinodex[mcp]'", 501

    async def elsewhere(request: Request) -> Response:
        return json_response({"error": sentence}, status=status)

    methods = ["GET", "POST", "DELETE"]
    return [
        *(route for app in apps.values() for route in app.routes),
        Route("/mcp", elsewhere, methods=methods),
        Route("/mcp/{rest:path}", elsewhere, methods=methods),
    ]
