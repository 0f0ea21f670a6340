"""A server of nothing but playing, on loopback, in a thread."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection

from starlette.applications import Starlette

from kinodex.index.library import Library
from kinodex.web.play import Children, play_routes
from tests.support.loopback import serve_in_thread


@contextmanager
def listening(library: Library, children: Children | None = None) -> Iterator[str]:
    """A server of nothing but playing; its host and port."""
    app = Starlette(routes=play_routes([library], children))
    with serve_in_thread(app, socket.create_server(("127.0.0.1", 0))) as address:
        yield address.removeprefix("http://")


def get(address: str, path: str) -> tuple[int, bytes]:
    connection = HTTPConnection(address, timeout=60)
    connection.request("GET", path)
    response = connection.getresponse()
    reply = response.status, response.read()
    connection.close()
    return reply
