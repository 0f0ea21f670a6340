"""A web server on loopback that serves the files of a folder, whole or in parts, as servers of films do."""

from __future__ import annotations

import http.server
import re
from contextlib import AbstractContextManager
from pathlib import Path

from tests.support.loopback import serve_handler


class _PartHandler(http.server.BaseHTTPRequestHandler):
    """Serve `folder`'s files by HTTP ranges; `asked` counts requests, and the bytes that were sent."""

    folder: Path
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = self.folder / self.path.lstrip("/")
        if not path.is_file():
            self.send_error(404)
            return
        whole = path.read_bytes()
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        first, last = (int(match[1]), int(match[2] or len(whole) - 1)) if match else (0, len(whole) - 1)
        part = whole[first : last + 1]
        self.send_response(206 if match else 200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", f'"{path.stat().st_mtime_ns}"')
        self.send_header("Content-Length", str(len(part)))
        if match:
            self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(whole)}")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(part)

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def serve_parts(folder: Path) -> AbstractContextManager[str]:
    """Serve a folder until the block ends, and give the address."""
    return serve_handler(type("Handler", (_PartHandler,), {"folder": folder}))
