"""The one application of `kinodex serve`: the viewer's pages, and all that can be done beside looking."""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from kinodex.agent.answer import Answer
from kinodex.guards import LOOPBACK, Guard, guarded_app, json_response
from kinodex.index.library import Library
from kinodex.index.text import redact_uri
from kinodex.jobs.models import describe_models
from kinodex.jobs.output import visible
from kinodex.web.ask_routes import asking_routes, ground_routes
from kinodex.web.inputs import ViewerApi
from kinodex.web.kept import spent_today
from kinodex.web.openai_chat import library_names, openai_routes
from kinodex.web.pages import guarded, viewer_routes
from kinodex.web.play import play_routes
from kinodex.web.questions import FINISHED, KIND, AskRequest, Questions, metrics_text
from kinodex.web.take_away import take_away_routes

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from kinodex.mcp.server import Answering, AskCall, Titles, Watch

GRACE_S = 8
"""Seconds that the server waits at its end for clients that stay connected."""


@dataclass(frozen=True, slots=True)
class Site:
    """All that routes need: the libraries as pages see them, the questions, and who may come in."""

    api: ViewerApi
    questions: Questions
    guard: Guard


def site_routes(site: Site) -> list[Any]:
    """All routes, the first that fits wins. Every part of the server adds its own here, imported where it is used."""
    return [
        _metrics_route(site.questions),
        *asking_routes(site.questions),
        *ground_routes(site.questions, site.api.inputs.libraries),
        *openai_routes(site.questions, site.api.inputs.libraries),
        *play_routes(site.api.inputs.libraries),
        *take_away_routes(site.api.inputs.libraries),
        *viewer_routes(site.api),
    ]


def _metrics_route(questions: Questions) -> Any:
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    def metrics(request: Request) -> Response:
        money = spent_today(questions.settings.traces)
        text = metrics_text(questions.tally, len(questions.running), money)
        return PlainTextResponse(text, headers={"content-type": KIND})

    return Route("/metrics", guarded(metrics))


def make_app(site: Site) -> ASGIApp:
    """Make the ASGI application of a site behind its guard."""
    return logged_app(guarded_app(bare_app(site), site.guard), site.questions.tally.count_request)


def bare_app(site: Site) -> Starlette:
    """Make the application without its guard: tests go through its routes."""
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException

    mcp = mount_mcp(site.questions, site.api.inputs.libraries, site.guard.host)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with mcp.opened():
            yield

    site.api.asking = site.questions
    return Starlette(
        routes=[*mcp.routes, *site_routes(site)], lifespan=lifespan, exception_handlers={HTTPException: _refused}
    )


async def _refused(request: Request, error: Any) -> Response:
    """A path or method that there is not, or a body that is too large, in the form of all other errors."""
    response = json_response({"error": error.detail}, status=error.status_code)
    response.headers.update(error.headers or {})
    return response


def serve(site: Site, listener: socket.socket) -> None:
    """Serve until Ctrl-C, which ends all questions with what they have; the text towers are loaded meanwhile."""
    import uvicorn

    class _Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: Any) -> None:
            # Else the streams of their events would hold up the end. In a thread of its own: a signal may come while
            # this one holds a lock that a stop takes.
            threading.Thread(target=site.questions.stop_all, name="stop").start()
            super().handle_exit(sig, frame)

    config = uvicorn.Config(
        make_app(site), log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=GRACE_S
    )
    with closing(site.api), suppress(KeyboardInterrupt):  # Ctrl-C is how to end it
        site.api.load_towers()
        _Server(config).run(sockets=[listener])


# One line a request on standard error, and the counts behind `/metrics`; no line holds a secret.

Count = Callable[[str, int, float], None]
"""Takes a method, a status and seconds."""


def logged_app(app: ASGIApp, count: Count, write: Callable[[str], None] | None = None) -> ASGIApp:
    """Log what comes to an application: method, path, status, milliseconds until the last byte, and bytes sent."""

    async def logged(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        status, size, began = 500, 0, time.perf_counter()

        async def sending(message: Message) -> None:
            nonlocal status, size
            status = message.get("status", status)
            size += len(message.get("body", b""))
            await send(message)

        try:
            await app(scope, receive, sending)
        finally:
            seconds = time.perf_counter() - began
            count(scope["method"], status, seconds)
            line = f"{scope['method']} {_address(scope)} {status} {1000 * seconds:.0f} ms {size} B"
            (write or _print)(line)

    return logged


def _address(scope: Scope) -> str:
    """Path and query without what grants access, in characters that no terminal acts upon."""
    query = scope["query_string"].decode("latin-1")
    whole = redact_uri(f"http://host{scope['path']}" + (f"?{query}" if query else ""))
    return visible(whole.removeprefix("http://host"))


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


# MCP over HTTP in the server's own process: `/mcp/NAME` for each library, and `/mcp` where there is one alone.
#
# The tools are those of `kinodex mcp`. Questions go the way of all others of the server: within its limits, and kept.

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
    from kinodex.mcp.server import AskOptions, LibraryTools, make_server

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
