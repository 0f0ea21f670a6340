"""The one application of `kinodex serve`: the viewer's pages, and all that can be done beside looking."""

from __future__ import annotations

import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jobs.serve.access_log import logged_app
from jobs.serve.asking_routes import asking_routes
from jobs.serve.day_money import spent_today
from jobs.serve.ground.routes import ground_routes
from jobs.serve.guards import Guard, guarded_app
from jobs.serve.mcp_mount import mount_mcp
from jobs.serve.metrics import KIND, metrics_text
from jobs.serve.openai.routes import openai_routes
from jobs.serve.play.routes import play_routes
from jobs.serve.questions import Questions
from jobs.serve.take_away import take_away_routes
from jobs.viewer.api import ViewerApi
from jobs.viewer.server import guarded, json_response, viewer_routes

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

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
