"""Web servers of files on loopback: a folder by ranges, openly or to one user; a film; one that kills who asks."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from urllib.parse import unquote

from tests.support.loopback import Answer, Call, serve


def serve_folder(folder: Path, login: str | None = None, by_parts: bool = False) -> AbstractContextManager[str]:
    """Serve a folder until the block ends, openly or to one user ("user:password"), by ranges or not; the address.

    Files have an entity tag; who does not say `login` is refused, and the request quoted.
    """
    key = None if login is None else f"Basic {base64.b64encode(login.encode()).decode()}"

    def respond(call: Call) -> Answer:
        if key is not None and call.headers.get("authorization") != key:
            return Answer(401, reason=f"not for you: {call.path}")
        path = folder / unquote(call.path.partition("?")[0]).lstrip("/")
        if not path.is_file():
            return Answer(404, b"not found")
        whole, state = path.read_bytes(), path.stat()
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", call.headers.get("range", "") if by_parts else "")
        first, last = (int(match[1]), int(match[2] or len(whole) - 1)) if match else (0, len(whole) - 1)
        part = whole[first : last + 1]
        span = {"Content-Range": f"bytes {first}-{first + len(part) - 1}/{len(whole)}"} if match else {}
        return Answer(206 if match else 200, part, {"ETag": f'"{state.st_size}-{state.st_mtime_ns}"', **span})

    return serve(respond)


class FilmHandler:
    """Answers with one film; `/busy` fails twice first, other paths answer with their number as status."""

    film = bytes(range(256)) * 5000
    visits = 0

    @classmethod
    def respond(cls, call: Call) -> Answer:
        status = 200
        if call.path == "/busy.mp4":
            cls.visits += 1
            status = 503 if cls.visits < 3 else 200
        elif call.path[1:4].isdigit():
            status = int(call.path[1:4])
        tag = {"ETag": '"first"'} if call.path.startswith("/marked") else {}
        return Answer(status, cls.film if status == 200 else b"no", tag)


@contextmanager
def film_server() -> Iterator[str]:
    """Serve films until the block ends; gives the address."""
    FilmHandler.visits = 0
    with serve(FilmHandler.respond) as address:
        yield address
