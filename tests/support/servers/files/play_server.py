"""A server of nothing but playing, on loopback, in a thread."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection

import uvicorn
from starlette.applications import Starlette

from index.library import Library
from jobs.serve.play.children import Children
from jobs.serve.play.routes import play_routes


@contextmanager
def listening(library: Library, children: Children | None = None) -> Iterator[str]:
    """A server of nothing but playing; its host and port."""
    listener = socket.create_server(("127.0.0.1", 0))
    app = Starlette(routes=play_routes([library], children))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield "{}:{}".format(*listener.getsockname())
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def get(address: str, path: str) -> tuple[int, bytes]:
    connection = HTTPConnection(address, timeout=60)
    connection.request("GET", path)
    response = connection.getresponse()
    reply = response.status, response.read()
    connection.close()
    return reply
