"""The one application of `kinodex serve`: pages, and on a server of questions all else.

A site without questions, of traces alone, has the pages alone.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from kinodex.agent.answer import Answer
from kinodex.guards import CLIENT_LEFT, LOOPBACK, Guard, answering, guarded_app, http_protocol, json_response
from kinodex.index.library import Library
from kinodex.index.terminal_text import visible
from kinodex.jobs.models import describe_models
from kinodex.output import tell
from kinodex.redaction import redact_uri
from kinodex.requests import Ask
from kinodex.web.ask_routes import asking_routes
from kinodex.web.chat_models import library_names
from kinodex.web.inputs import ViewerApi
from kinodex.web.kept_traces import spent_today
from kinodex.web.openai_api import openai_routes
from kinodex.web.pages import viewer_routes
from kinodex.web.play import play_routes
from kinodex.web.questions import Questions
from kinodex.web.take_away import take_away_routes
from kinodex.web.tally import METRICS_KIND, metrics_text

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from kinodex.mcp.ask_tool import Answering, Titles, Watch

GRACE_S = 8
"""Seconds that the server waits at its end for clients that stay connected."""

HERE = Guard()
"""For this machine alone."""


@dataclass(frozen=True, slots=True)
class Site:
    """All that routes need: the libraries as pages see them, the questions (None: it only shows), and who may come."""

    api: ViewerApi
    questions: Questions | None = None
    guard: Guard = HERE


def serve(site: Site, listener: socket.socket) -> None:
    """Serve until Ctrl-C, which ends all questions with what they have; the text towers are loaded meanwhile."""
    import uvicorn

    class _Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: Any) -> None:
            # Else the streams of their events would hold up the end. In a thread of its own: a signal may come while
            # this one holds a lock that a stop takes.
            if site.questions is not None:
                threading.Thread(target=site.questions.stop_all, name="stop").start()
            super().handle_exit(sig, frame)

    grace_s = 1 if site.questions is None else GRACE_S
    config = uvicorn.Config(
        make_app(site),
        http=http_protocol(),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=grace_s,
    )
    with closing(site.api), suppress(KeyboardInterrupt):  # Ctrl-C is how to end it
        site.api.load_towers()
        _Server(config).run(sockets=[listener])


def make_app(site: Site) -> ASGIApp:
    app = guarded_app(bare_app(site), site.guard)
    return app if site.questions is None else logged_app(app, site.questions.tally.count_request)


def bare_app(site: Site) -> Starlette:
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect

    mcp_apps = _mcp_apps(site)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for each in mcp_apps.values():
                await stack.enter_async_context(each.router.lifespan_context(each))
            yield

    site.api.asking = site.questions
    routes = [*_question_routes(site, mcp_apps), *viewer_routes(site.api)]
    handlers: Any = {HTTPException: _refused, ClientDisconnect: _left}
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)


def _question_routes(site: Site, mcp_apps: dict[str, Starlette]) -> list[Any]:
    from starlette.routing import Route

    if site.questions is None:
        return []
    questions, libraries = site.questions, site.api.inputs.libraries
    return [
        *_mcp_routes(mcp_apps),
        Route("/metrics", answering(lambda _: _metrics(questions))),
        *asking_routes(questions, libraries),
        *openai_routes(questions, libraries),
        *play_routes(libraries),
        *take_away_routes(libraries),
    ]


async def _refused(request: Request, error: Any) -> Response:
    """A path or method that there is not, or a body that is too large, in the form of all other errors."""
    response = json_response({"error": error.detail}, status=error.status_code)
    response.headers.update(error.headers or {})
    return response


async def _left(request: Request, error: Any) -> Response:
    """A client that left in the middle of its body reads no reply: this is for the log alone."""
    return json_response({}, status=CLIENT_LEFT)


def _metrics(questions: Questions) -> Response:
    from starlette.responses import PlainTextResponse

    if find_spec("prometheus_client") is None:
        return json_response({"error": "metrics need the extra metrics: pip install 'kinodex[metrics]'"}, status=501)
    money = spent_today(questions.settings.traces)
    text = metrics_text(questions.tally, len(questions.running), money)
    return PlainTextResponse(text, headers={"content-type": METRICS_KIND})


# One line a request on standard error, and the counts behind `/metrics`; no line holds a secret.

Count = Callable[[str, int, float], None]
"""Takes a method, a status and seconds."""


def logged_app(app: ASGIApp, count: Count, write: Callable[[str], Any] = tell) -> ASGIApp:
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
            write(f"{scope['method']} {_address(scope)} {status} {1000 * seconds:.0f} ms {size} B")

    return logged


def _address(scope: Scope) -> str:
    """Path and query without what grants access, in characters that no terminal acts upon."""
    query = scope["query_string"].decode("latin-1")
    whole = redact_uri(f"http://host{scope['path']}" + (f"?{query}" if query else ""))
    return visible(whole.removeprefix("http://host"))


# MCP over HTTP in the server's own process: `/mcp/NAME` for each library, and `/mcp` where there is one alone.
#
# The tools are those of `kinodex mcp`. Questions go the way of all others of the server: within its limits, and kept.

EVERY_NAME = "0.0.0.0"
"""The host for which the SDK checks no names: the server's guard does, by its token."""


def _mcp_apps(site: Site) -> dict[str, Starlette]:
    questions, libraries = site.questions, site.api.inputs.libraries
    if questions is None or find_spec("mcp") is None:
        return {}
    names = library_names([library.uri for library in libraries])
    numbers = {f"/mcp/{name}": number for number, name in enumerate(names)}
    numbers = {"/mcp": 0} | numbers if len(names) == 1 else numbers
    host = site.guard.host if site.guard.host in LOOPBACK else EVERY_NAME
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


def _mcp_routes(apps: dict[str, Starlette]) -> Sequence[Any]:
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
