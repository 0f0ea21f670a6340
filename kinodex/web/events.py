"""Server-sent events of one question: how far it is, and its end.

A message says all that is known when it is sent, so a reader who comes late, or back with `Last-Event-ID`, gets the
latest one alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from kinodex.agent.traces.trace import Record
from kinodex.redaction import redact, redact_values
from kinodex.server.responses import FORBIDDEN_ELSEWHERE, SAFE
from kinodex.web.kept_traces import Kept
from kinodex.web.page import as_json
from kinodex.web.questions import Questions
from kinodex.web.running import FINISHED, Running
from kinodex.web.sentences import latest_sentence

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

BEAT_S = 15.0
"""Seconds after which a silent stream says that it lives: proxies cut those that do not."""

END = 999_999_999
"""The number of every question's last message: who names it has had the end, whichever server sent it."""

MOST_LOOKED = 64
"""Frames of calls under way that a message names: captions of a whole video are asked for at once."""

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
    end = message("state", END, state_of(found))
    return StreamingResponse(iter([end]), 200, headers, media_type="text/event-stream")


async def _events(running: Running, since: int) -> AsyncIterator[bytes]:
    """Messages of a question until its end; every `BEAT_S` without one, a comment."""
    state = ""
    async with aclosing(running.changes(since, BEAT_S)) as changes:
        async for version in changes:
            if version is None:
                yield b": still at work\n\n"
                continue
            if running.records:
                yield message("progress", version, progress(running))
            if running.state != state:
                state = running.state
                ended = state in FINISHED
                yield message("state", END if ended else version, state_of(running))
                if ended:
                    return
            await asyncio.sleep(GAP_S)  # events come in bursts


def state_of(question: Running | Kept) -> dict[str, Any]:
    said = {"state": question.state, "error": question.error}
    return said if question.error is None else said | {"tried": question.tried, "remedy": question.remedy}


def progress(running: Running) -> dict[str, Any]:
    """Progress of a question: rounds, calls, frames, time, money, the latest round in a sentence, what is looked at."""
    records = list(running.records)
    looking = {(each.video_id, each.frame_no): each for frames in list(running.looking) for each in frames}
    calls = [each for each in records if each["event"] == "Exchanged"]
    return {
        "round": max((each.get("round", 0) for each in records), default=0),
        "calls": len(calls),
        "frames": len({frame for call in calls for frame in _frames(call)}),
        "seconds": round((datetime.now(UTC) - running.asked_at).total_seconds(), 1),
        "cost": round(sum(call["usage"]["cost"] for call in calls), 6),
        "sentence": redact(latest_sentence(records)),
        "looking": [
            {"video_id": each.video_id, "frame_no": each.frame_no, "time_s": each.time_s}
            for _, each in sorted(looking.items())[:MOST_LOOKED]
        ],
    }


def message(event: str, number: int, value: Any) -> bytes:
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (number, event.encode(), as_json(redact_values(value)))


def _frames(call: Record) -> list[tuple[str, int]]:
    return [(each["video_id"], each["frame_no"]) for each in call["inputs"].get("frames", ())]
