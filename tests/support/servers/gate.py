"""A model that keeps those who ask it waiting: for the reply of a `ChatServer`."""

from __future__ import annotations

import json
import threading
from typing import Any

from tests.support.servers.chat_server import Reply

MOST_S = 250
"""Seconds that a request waits at the most, so that no server is held up at its end."""


class Gate:
    """Replies once it is `open`; `reached` says that somebody waits. With `rules` only decisions have to wait."""

    def __init__(self, rules: Reply | None = None) -> None:
        self._rules = rules
        self.open, self.reached = threading.Event(), threading.Event()

    def __call__(self, body: dict) -> Any:
        if self._rules is None or 'Decision"' in json.dumps(body.get("response_format", {})):
            self.reached.set()
            self.open.wait(MOST_S)
        return "{}" if self._rules is None else self._rules(body)
