"""A request that does not come whole in time ends its connection; a response that takes longer goes on."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from kinodex.server import sockets
from kinodex.server.sockets import http_protocol, listen
from tests.support.loopback import serve_in_thread

HEAD = b"POST /slow HTTP/1.1\r\nHost: localhost\r\n"
WHOLE = HEAD + b"Content-Length: 2\r\n\r\n{}"


async def slow(request: Request) -> Response:
    body = await request.body()
    await asyncio.sleep(4 * sockets.REQUEST_S)
    return PlainTextResponse(body)


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    monkeypatch.setattr(sockets, "REQUEST_S", 0.25)
    app = Starlette(routes=[Route("/slow", slow, methods=["POST"])])
    with serve_in_thread(app, listen("127.0.0.1", 0), http=http_protocol()) as url:
        parts = urlsplit(url)
        assert parts.hostname and parts.port
        yield parts.hostname, parts.port


@pytest.mark.parametrize(
    ("begins", "half"),
    [(b"", b""), (b"", HEAD), (b"", HEAD + b"Content-Length: 2\r\n\r\n{"), (WHOLE, HEAD)],
    ids=["nothing", "head", "body", "head of a second"],
)
def test_half_a_request_ends_its_connection(address: tuple[str, int], begins: bytes, half: bytes) -> None:
    with socket.create_connection(address, timeout=20) as client:
        if begins:
            client.sendall(begins)
            reply = b""
            while not reply.endswith(b"\r\n\r\n{}"):
                part = client.recv(4096)
                assert part, "a response may take longer than a request"
                reply += part
        client.sendall(half)
        assert client.recv(4096) == b""
