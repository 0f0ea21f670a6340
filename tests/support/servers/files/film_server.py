"""A web server on loopback that serves one film, and whatever status a path names."""

from __future__ import annotations

import http.server
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.loopback import serve_handler


class FilmHandler(http.server.BaseHTTPRequestHandler):
    """Handler that serves one film; `/busy` fails twice first, other paths answer with their number as status."""

    film = bytes(range(256)) * 5000
    visits = 0

    def do_GET(self) -> None:
        status = 200
        if self.path == "/busy.mp4":
            FilmHandler.visits += 1
            status = 503 if FilmHandler.visits < 3 else 200
        elif self.path[1:4].isdigit():
            status = int(self.path[1:4])
        body = FilmHandler.film if status == 200 else b"no"
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if self.path.startswith("/marked"):
            self.send_header("ETag", '"first"')
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def film_server() -> Iterator[str]:
    """Serve films until the block ends, and give the address."""
    FilmHandler.visits = 0
    with serve_handler(FilmHandler) as address:
        yield address
