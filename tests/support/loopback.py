"""Servers of a request handler on loopback, in a thread of the test."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

POLL_S = 0.02
"""How soon a server notices that it is to end; the default is half a second."""


@contextmanager
def serve_handler(handler: Callable[..., BaseHTTPRequestHandler], port: int = 0) -> Iterator[str]:
    """Serve until the block ends, in a thread a connection; gives the address."""
    with ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(POLL_S,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def send_json(handler: BaseHTTPRequestHandler, status: int, value: Any) -> None:
    """Answer a request with JSON; who asked may have gone."""
    sent = json.dumps(value).encode()
    with suppress(ConnectionError):
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(sent)))
        handler.end_headers()
        handler.wfile.write(sent)


@contextmanager
def serve_in_thread(app: Any, listener: socket.socket) -> Iterator[str]:
    """Serve an ASGI application at a socket of loopback until the block ends; gives the address, without a slash."""
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
