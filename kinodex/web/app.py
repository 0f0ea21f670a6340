"""The one application of `kinodex serve`: pages, and on a server of questions all else.

A site without questions, only of traces, has only the pages.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from kinodex.server.event_streams import own_event_streams
from kinodex.server.guards import Guard, guarded_app
from kinodex.server.responses import CLIENT_LEFT, answering, json_response
from kinodex.server.sockets import http_protocol
from kinodex.web.ask_routes import asking_routes
from kinodex.web.daily_costs import spent_today
from kinodex.web.mcp_routes import mcp_apps, mcp_routes
from kinodex.web.openai.routes import openai_routes
from kinodex.web.pages import viewer_routes
from kinodex.web.play.routes import play_routes
from kinodex.web.questions import Questions
from kinodex.web.request_log import logged_app
from kinodex.web.take_away import take_away_routes
from kinodex.web.tally import METRICS_KIND, metrics_text
from kinodex.web.viewer_api import ViewerApi

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

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
    with closing(site.api), suppress(KeyboardInterrupt), own_event_streams():  # Ctrl-C is how to end it
        site.api.load_towers()
        _Server(config).run(sockets=[listener])


def make_app(site: Site) -> ASGIApp:
    app = guarded_app(bare_app(site), site.guard)
    return app if site.questions is None else logged_app(app, site.questions.tally.count_request)


def bare_app(site: Site) -> Starlette:
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect

    questions, libraries = site.questions, site.api.inputs.libraries
    mcp = {} if questions is None else mcp_apps(questions, libraries, site.guard.host)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for each in mcp.values():
                await stack.enter_async_context(each.router.lifespan_context(each))
            yield

    site.api.asking = site.questions
    routes = [*_question_routes(site, mcp), *viewer_routes(site.api)]
    handlers: Any = {HTTPException: _refused, ClientDisconnect: _left}
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)


def _question_routes(site: Site, mcp: dict[str, Starlette]) -> list[Any]:
    from starlette.routing import Route

    if site.questions is None:
        return []
    questions, libraries = site.questions, site.api.inputs.libraries
    return [
        *mcp_routes(mcp),
        Route("/metrics", answering(lambda _: _metrics(questions))),
        *asking_routes(questions, libraries),
        *openai_routes(questions, libraries),
        *play_routes(libraries),
        *take_away_routes(libraries),
    ]


async def _refused(request: Request, error: Any) -> Response:
    """Return a path or method that there is not, or a body that is too large, in the form of all other errors."""
    response = json_response({"error": error.detail}, status=error.status_code)
    response.headers.update(error.headers or {})
    return response


async def _left(request: Request, error: Any) -> Response:
    """Return a client that left in the middle of its body reads no reply: this is only for the log."""
    return json_response({}, status=CLIENT_LEFT)


def _metrics(questions: Questions) -> Response:
    from starlette.responses import PlainTextResponse

    if find_spec("prometheus_client") is None:
        return json_response({"error": "metrics need the extra metrics: pip install 'kinodex[metrics]'"}, status=501)
    money = spent_today(questions.settings.traces)
    text = metrics_text(questions.tally, len(questions.running), money)
    return PlainTextResponse(text, headers={"content-type": METRICS_KIND})
