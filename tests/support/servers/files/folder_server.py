"""A web server on loopback that serves a folder, openly or to one user."""

from __future__ import annotations

import base64
import functools
import http.server
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from tests.support.loopback import serve_handler


class _FolderHandler(http.server.SimpleHTTPRequestHandler):
    """Serve files with an entity tag; refuse whoever does not say `login` ("user:password"), and quote the request."""

    def __init__(self, *arguments: Any, login: str | None, **options: Any) -> None:
        self._login = login
        super().__init__(*arguments, **options)

    def _is_refused(self) -> bool:
        if self._login is None:
            return False
        return self.headers.get("Authorization") != f"Basic {base64.b64encode(self._login.encode()).decode()}"

    def do_GET(self) -> None:
        if self._is_refused():
            self.send_error(401, f"not for you: {self.path}")
        else:
            super().do_GET()

    def do_HEAD(self) -> None:
        if self._is_refused():
            self.send_error(401)
        else:
            super().do_HEAD()

    def end_headers(self) -> None:
        path = Path(self.translate_path(self.path))
        if path.is_file():
            self.send_header("ETag", f'"{path.stat().st_size}-{path.stat().st_mtime_ns}"')
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def serve_folder(folder: Path, login: str | None = None) -> AbstractContextManager[str]:
    """Serve a folder until the block ends, and give the address."""
    return serve_handler(functools.partial(_FolderHandler, directory=str(folder), login=login))
