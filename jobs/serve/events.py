"""Server-sent events of one question: how far it is, and its end.

A message says all that is known when it is sent, so a reader who comes late, or back with `Last-Event-ID`, gets the
latest one alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from agent.trace.trace import Record
from index.redact import redact, redact_values
from jobs.serve.questions import Questions
from jobs.serve.running import FINISHED, Running
from jobs.viewer.html import as_json
from jobs.viewer.sentences import latest_sentence
from jobs.viewer.server import FORBIDDEN_ELSEWHERE, SAFE

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

BEAT_S = 15.0
"""Seconds after which a silent stream says that it lives: proxies cut those that do not."""

END = 999_999_999
"""The number of every question's last message: who names it has had the end, whichever server sent it."""

GAP_S = 0.15
"""The least time between two messages: each says all that is known, so those between are left out."""


async def event_stream(questions: Questions, request: Request) -> Response:
    """Stream the events of a question; raises NotGiven. A reader who has had the end gets no content."""
    from starlette.responses import Response, StreamingResponse

    found = questions.find(request.path_params["key"])
    last = request.headers.get("last-event-id", "")
    since = int(last) if last.isdecimal() and len(last) < 10 else 0
    headers = SAFE | {"content-security-policy": FORBIDDEN_ELSEWHERE, "x-accel-buffering": "no"}
    if since == END:
        return Response(status_code=204, headers=headers)
    if isinstance(found, Running):
        return StreamingResponse(_events(found, since), 200, headers, media_type="text/event-stream")
    end = message("state", END, {"state": found.state, "error": found.error})
    return StreamingResponse(iter([end]), 200, headers, media_type="text/event-stream")


async def _events(running: Running, since: int) -> AsyncIterator[bytes]:
    """Messages of a question until its end; every `BEAT_S` without one, a comment."""
    changes = running.changes(since)
    coming = asyncio.ensure_future(anext(changes, None))
    state = ""
    try:
        while True:
            done, _ = await asyncio.wait([coming], timeout=BEAT_S)
            if not done:
                yield b": still at work\n\n"
                continue
            version = coming.result()
            if version is None:
                return
            if running.records:
                yield message("progress", version, progress(running))
            if running.state != state:
                state = running.state
                ended = state in FINISHED
                yield message("state", END if ended else version, {"state": state, "error": running.error})
                if ended:
                    return
            await asyncio.sleep(GAP_S)  # events come in bursts
            coming = asyncio.ensure_future(anext(changes, None))
    finally:
        coming.cancel()
        await asyncio.wait([coming])
        await changes.aclose()


def progress(running: Running) -> dict[str, Any]:
    """Progress of a question: rounds, calls, frames, seconds, money, and the latest round in a sentence."""
    records = list(running.records)
    calls = [each for each in records if each["event"] == "Exchanged"]
    return {
        "round": max((each.get("round", 0) for each in records), default=0),
        "calls": len(calls),
        "frames": len({frame for call in calls for frame in _frames(call)}),
        "seconds": round((datetime.now(UTC) - running.asked_at).total_seconds(), 1),
        "cost": round(sum(call["usage"]["cost"] for call in calls), 6),
        "sentence": redact(latest_sentence(records)),
    }


def message(event: str, number: int, value: Any) -> bytes:
    """One message of a stream; JSON has no line ends of its own."""
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (number, event.encode(), as_json(redact_values(value)))


def _frames(call: Record) -> list[tuple[str, int]]:
    return [(each["video_id"], each["frame_no"]) for each in call["inputs"].get("frames", ())]
