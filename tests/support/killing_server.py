"""A web server that kills the process which makes its first request, if that is a child that reads videos."""

from __future__ import annotations

import http.server
import os
import signal
from contextlib import suppress
from typing import ClassVar

from tests.support.reader_children import child


class KillingServer(http.server.BaseHTTPRequestHandler):
    """Kills the child that makes the first request, and gives subtitles to those after it."""

    kills: ClassVar[list[int]] = []
    text = b"1\n00:00:01,000 --> 00:00:02,000\nhello\n"

    def do_HEAD(self) -> None:
        if not self.kills:
            self.kills.append(child())
            os.kill(self.kills[0], signal.SIGKILL)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.text)))
        self.end_headers()

    def do_GET(self) -> None:
        self.do_HEAD()
        with suppress(ConnectionError):
            self.wfile.write(self.text)

    def log_message(self, *args: object) -> None:
        pass
