"""Servers on loopback, in a thread of the test: of a function from requests to answers, or of an ASGI application."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

POLL_S = 0.02
"""How soon a server notices that it is to end; the default is half a second."""
NOT_FOUND = {"detail": "Not Found"}


@dataclass(frozen=True)
class Call:
    """A request as it arrived; headers by their names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer:
    """Status, body and further headers; a body that is no bytes is sent as JSON. `reason` stands beside the status."""

    status: int
    body: Any = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    reason: str | None = None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two packets, and the second would wait 40 ms for the first
    respond: Callable[[Call], Answer]

    def handle(self) -> None:
        with suppress(ConnectionError):  # a client that is cancelled, or timed out, hangs up
            super().handle()

    def log_message(self, *_: object) -> None:
        """Print nothing: servers record what they are asked."""

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        if len(body) < length:
            raise ConnectionError("the client hung up within its request")
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = type(self).respond(Call(self.command, self.path, headers, body))
        is_json = not isinstance(answer.body, bytes)
        raw = json.dumps(answer.body).encode() if is_json else answer.body
        self.send_response(answer.status, answer.reason)
        usual = {"Content-Type": "application/json"} if is_json else {}
        for name, value in {**usual, **answer.headers, "Content-Length": str(len(raw))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    do_HEAD = do_POST = do_GET  # noqa: N815 - the names are the base class's


class _Listening(ThreadingHTTPServer):
    request_queue_size = 128  # an evaluation connects dozens of times at once


@contextmanager
def serve_handler(handler: Callable[..., BaseHTTPRequestHandler], port: int = 0) -> Iterator[str]:
    """Serve until the block ends, in a thread a connection; gives the address."""
    with _Listening(("127.0.0.1", port), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(POLL_S,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def serve(respond: Callable[[Call], Answer], port: int = 0) -> Iterator[str]:
    """Answer requests by a function until the block ends; gives the address."""
    with serve_handler(type("Handler", (_Handler,), {"respond": staticmethod(respond)}), port) as address:
        yield address


class Server:
    """A server that is there within a `with`, at `address`; `respond` says what it answers."""

    address = ""
    port = 0
    """Port 0 is any free one."""

    def respond(self, call: Call) -> Answer:
        raise NotImplementedError

    @property
    def base_url(self) -> str:
        return f"{self.address}/v1"

    def __enter__(self) -> Self:
        self._serving = serve(self.respond, self.port)
        self.address = self._serving.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._serving.__exit__(*error)


@contextmanager
def address_without_server() -> Iterator[str]:
    """An address that refuses all connections: its port is held, so that no server of another test gets it."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"


def free_port() -> int:
    """A port that nobody listened at a moment ago."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def serve_in_thread(app: Any, listener: socket.socket, **settings: Any) -> Iterator[str]:
    """Serve an ASGI application at a socket of loopback until the block ends; gives the address, without a slash."""
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False, **settings))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
