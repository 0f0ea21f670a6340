"""Streams of events, which end with the server that sends them, and not with the one before it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def own_event_streams() -> Iterator[None]:
    """Let streams of events end with the server of this block, and none of a later server.

    sse-starlette, by which MCP sends events, notes that Ctrl-C has ended a server for the whole process. Without this,
    a notebook that served once would serve no assistant again: its streams would end at once.
    """
    try:
        yield
    finally:
        if module := sys.modules.get("sse_starlette.sse"):
            module.AppStatus.should_exit = False
