"""The log of requests: a line for each on standard error, and the counts behind `/metrics`; no line holds a secret."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kinodex.index.terminal_text import visible
from kinodex.output import tell
from kinodex.redaction import redact_uri

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


Count = Callable[[str, int, float], None]
"""Takes a method, a status and seconds."""


def logged_app(app: ASGIApp, count: Count, write: Callable[[str], Any] = tell) -> ASGIApp:
    """Log what comes to an application: method, path, status, milliseconds until the last byte, and bytes sent."""

    async def logged(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        status, size, began = 500, 0, time.perf_counter()

        async def sending(message: Message) -> None:
            nonlocal status, size
            status = message.get("status", status)
            size += len(message.get("body", b""))
            await send(message)

        try:
            await app(scope, receive, sending)
        finally:
            seconds = time.perf_counter() - began
            count(scope["method"], status, seconds)
            write(f"{scope['method']} {_address(scope)} {status} {1000 * seconds:.0f} ms {size} B")

    return logged


def _address(scope: Scope) -> str:
    """Path and query without what grants access, in characters that no terminal acts upon."""
    query = scope["query_string"].decode("latin-1")
    whole = redact_uri(f"http://host{scope['path']}" + (f"?{query}" if query else ""))
    return visible(whole.removeprefix("http://host"))
