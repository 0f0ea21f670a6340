"""Traces: one run as JSON lines, one event each, enough to replay it without a model and to draw its tree.

The first line is the run's header with the version of the format. Frames are named by video, number, time
and a hash of their picture; an exchange carries the request's content key, inputs and prompt, and the raw
and the checked reply.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agent.core.protocol import plain, request_fields, request_key
from agent.errors import NotATrace
from agent.prompts.render import render
from agent.trace.events import Event, Exchanged, RunStarted
from index.clock import moved

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


def read_trace(path: Path) -> list[Record]:
    """Read all records of a trace, header first; the file may be compressed (.gz). Raises `NotATrace` if it is none."""
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        records = [json.loads(line) for line in content.splitlines()]  # of bytes: a text knows more line ends
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise NotATrace(f"{path} cannot be read as a trace: {error}; give a file written with --trace") from error
    header = records[0] if records else None
    if not isinstance(header, dict) or header.get("event") != RunStarted.__name__:
        raise NotATrace(f"{path} does not begin with the header of a run; give a file written with --trace")
    if header.get("version") != VERSION:
        raise NotATrace(
            f"{path} is a trace of version {header.get('version')}, this kinodex reads version {VERSION}; "
            "record it again"
        )
    return _as_players_show(records)


def _as_players_show(records: list[Record]) -> list[Record]:
    """Turn the presentation times of older traces into those that a player shows; their videos say what is 0:00."""
    videos = records[0].get("videos", ())
    zeros_s = {video["video_id"]: video["zero_s"] for video in videos if video.get("zero_s")}
    only_s = next(iter(zeros_s.values()), 0.0) if len(videos) == 1 else 0.0
    return [_moved(each, zeros_s, only_s) for each in records] if zeros_s else records


def _moved(value: Any, zeros_s: Mapping[str, float], zero_s: float) -> Any:
    if isinstance(value, list):
        return [_moved(each, zeros_s, zero_s) for each in value]
    if not isinstance(value, dict):
        return value
    zero_s = zeros_s.get(value["video_id"], 0.0) if "video_id" in value else zero_s
    return moved({name: _moved(each, zeros_s, zero_s) for name, each in value.items() if name != "zero_s"}, -zero_s)


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
