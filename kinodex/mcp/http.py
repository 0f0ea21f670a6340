"""MCP over streamable HTTP, by a server of its own."""

from __future__ import annotations

import socket

from mcp.server import MCPServer
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from kinodex.server.event_streams import own_event_streams
from kinodex.server.guards import LOOPBACK
from kinodex.server.sockets import http_protocol

GRACE_S = 3
"""Seconds that the server waits at its end for clients that stay connected."""


def without_browsers(app: ASGIApp) -> ASGIApp:
    """Refuse pages in browsers: where the server accepts any name, a site can point its own name here."""

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and "origin" in Headers(scope=scope):
            refusal = PlainTextResponse("a page in a browser cannot use this server", status_code=403)
            await refusal(scope, receive, send)
        else:
            await app(scope, receive, send)

    return guarded


async def serve_http(server: MCPServer, listener: socket.socket, host: str) -> None:
    """Serve at `/mcp` until interrupted, to no page of a site; on loopback, under no other host name."""
    import uvicorn

    app: ASGIApp = server.streamable_http_app(host=host)
    app = app if host in LOOPBACK else without_browsers(app)
    config = uvicorn.Config(app, http=http_protocol(), log_level="warning", timeout_graceful_shutdown=GRACE_S)
    with own_event_streams():
        await uvicorn.Server(config).serve(sockets=[listener])
