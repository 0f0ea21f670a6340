"""Web servers of files on loopback: a folder by ranges, openly or to one user; a film; one that kills who asks."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import unquote

from tests.support.loopback import serve_handler


class _Quiet(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        raise NotImplementedError

    def reply(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command == "GET":
            with suppress(ConnectionError):
                self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class _FolderHandler(_Quiet):
    """Serve files whole or in parts, with an entity tag; refuse whoever does not say `login`, and quote the request."""

    folder: Path
    login: str | None
    by_parts: bool
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        said = None if self.login is None else f"Basic {base64.b64encode(self.login.encode()).decode()}"
        if said is not None and self.headers.get("Authorization") != said:
            return self.send_error(401, f"not for you: {self.path}")
        path = self.folder / unquote(self.path.partition("?")[0]).lstrip("/")
        if not path.is_file():
            return self.send_error(404)
        whole, state = path.read_bytes(), path.stat()
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "") if self.by_parts else "")
        first, last = (int(match[1]), int(match[2] or len(whole) - 1)) if match else (0, len(whole) - 1)
        part = whole[first : last + 1]
        span = {"Content_Range": f"bytes {first}-{first + len(part) - 1}/{len(whole)}"} if match else {}
        tag = f'"{state.st_size}-{state.st_mtime_ns}"'
        return self.reply(206 if match else 200, part, ETag=tag, **span)


def serve_folder(folder: Path, login: str | None = None, by_parts: bool = False) -> AbstractContextManager[str]:
    """Serve a folder until the block ends, openly or to one user ("user:password"), by ranges or not; the address."""
    about = {"folder": folder, "login": login, "by_parts": by_parts}
    return serve_handler(type("Handler", (_FolderHandler,), about))


class FilmHandler(_Quiet):
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
        tag = {"ETag": '"first"'} if self.path.startswith("/marked") else {}
        self.reply(status, FilmHandler.film if status == 200 else b"no", **tag)


@contextmanager
def film_server() -> Iterator[str]:
    """Serve films until the block ends; gives the address."""
    FilmHandler.visits = 0
    with serve_handler(FilmHandler) as address:
        yield address
