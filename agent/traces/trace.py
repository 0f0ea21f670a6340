"""Traces: one run as JSON lines, one event each, enough to replay it without a model and to draw its tree.

The first line is the run's header with the version of the format. Frames are named by video, number, time and a hash
of their picture; an exchange carries the request's content key, inputs and prompt, and the raw and the checked reply.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kinodex.agent.errors import NotATrace
from kinodex.agent.prompts.rendering import render
from kinodex.agent.protocol.request_key import plain, request_fields, request_key
from kinodex.agent.traces.events import Event, Exchanged, RunStarted
from kinodex.index.named_files import open_named, read_bytes
from kinodex.index.nesting import parse_json

VERSION = 2
Record = dict[str, Any]


@contextmanager
def trace_to(
    path: Path, on_record: Callable[[Record], None] = lambda record: None
) -> Iterator[Callable[[Event], None]]:
    """Write events to a file as they come; every line is complete, so that a crash leaves a readable trace.

    The file's earlier content is removed when a run has started: a run that is refused leaves it. `on_record` receives
    each event's record once it is written.
    """
    with path.open("a", encoding="utf-8") as file:

        def write(event: Event) -> None:
            if isinstance(event, RunStarted) and path.stat().st_size:  # a pipe has no size and no content
                file.truncate(0)
            line = record(event)
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
            file.flush()
            on_record(line)

        yield write


def record(event: Event) -> Record:
    """Write one event as JSON values, its kind under "event"."""
    if isinstance(event, Exchanged):
        return _exchange(event)
    fields = plain(event)
    assert isinstance(fields, dict)
    version = {"version": VERSION} if isinstance(event, RunStarted) else {}
    return {"event": type(event).__name__, **version, **fields}


MOST_UNPACKED_BYTES = 200_000_000
"""Of a packed trace: a few bytes may unpack to any number."""


def _unpacked(path: Path) -> bytes:
    with open_named(path) as packed, gzip.open(packed) as file:
        content = file.read(MOST_UNPACKED_BYTES + 1)
    if len(content) > MOST_UNPACKED_BYTES:
        raise NotATrace(f"{path} unpacks to more than {MOST_UNPACKED_BYTES / 1e6:.0f} MB; unpack it, and give the file")
    return content


def read_trace(path: Path) -> list[Record]:
    """Read all records of a trace, header first; the file may be compressed (.gz). Raises `NotATrace` if it is none."""
    try:
        content = _unpacked(path) if path.suffix == ".gz" else read_bytes(path)
        records = [parse_json(line) for line in content.splitlines()]  # of bytes: a text knows more line ends
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise NotATrace(f"{path} cannot be read as a trace: {error}; give a file written with --trace") from error
    header = records[0] if records else None
    if not isinstance(header, dict) or header.get("event") != RunStarted.__name__:
        raise NotATrace(f"{path} does not begin with the header of a run; give a file written with --trace")
    if header.get("version") != VERSION:
        versions = f"version {header.get('version')}, this kinodex reads version {VERSION}"
        raise NotATrace(f"{path} is a trace of {versions}; record it again")
    return records


def _exchange(event: Exchanged) -> Record:
    request, exchange = event.request, event.exchange
    return {
        "event": "Exchanged",
        "round": event.round,
        "model": event.model,
        "role": request.role,
        "request": type(request).__name__,
        "key": request_key(request),
        "inputs": request_fields(request),
        "prompt": render(request),
        "raw": exchange.raw,
        "reply": None if exchange.reply is None else exchange.reply.model_dump(mode="json"),
        "invalid": exchange.invalid,
        "usage": plain(exchange.usage),
        "cached": exchange.cached,
        "seconds": exchange.seconds,
        "waited_s": exchange.waited_s,
    }
