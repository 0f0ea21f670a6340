"""A model that replies from a trace: for tests, and to look at a run again without a key."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from kinodex.agent.errors import NotInTrace
from kinodex.agent.protocol.exchange import Exchange, Usage
from kinodex.agent.protocol.reply import R
from kinodex.agent.protocol.request import Request
from kinodex.agent.protocol.request_key import request_fields, request_key
from kinodex.agent.traces.trace import read_trace

SIMILARITY_NOISE = 1e-4
"""Scores made of vectors differ by less than this between machines and numbers of threads."""


class ReplayModel:
    """Replies by the content of requests. Raises `NotATrace` for a bad file, `NotInTrace` for an unknown request."""

    name = "replay"
    has_language = True

    def __init__(self, path: Path) -> None:
        self.path = path
        records = read_trace(path)
        self.header: dict[str, Any] = records[0]
        self._exchanges = {each["key"]: each for each in records if each["event"] == "Exchanged"}

    def recorded_name(self, role: str) -> str:
        """Return the model that answered for a role when the trace was written."""
        names = self.header["models"]
        return str(names.get(role) or names.get("default") or self.name)

    def holds(self, request: Request[R]) -> bool:
        """Return True if the reply to a request was recorded."""
        return self._recorded(request) is not None

    async def ask(self, request: Request[R]) -> Exchange[R]:
        found = self._recorded(request)
        if found is None:
            raise NotInTrace(
                f"{self.path} holds no {type(request).__name__} with key {request_key(request)}; replay with the "
                "question, library, agent and parameters of its header, or ask a model; if an earlier kinodex wrote "
                f"it, it asked otherwise: `kinodex serve {self.path}` still shows it"
            )
        reply = None if found["reply"] is None else request.Reply.model_validate(found["reply"])
        usage = Usage(**found["usage"])
        return Exchange(reply, found["invalid"], usage, found["cached"], found["raw"], found["seconds"])

    def _recorded(self, request: Request[R]) -> dict[str, Any] | None:
        """Return the exchange of the same request, or of one that differs in the last digits of a score alone."""
        same = self._exchanges.get(request_key(request))
        if same is not None:
            return same
        inputs = request_fields(request)
        return next((each for each in self._exchanges.values() if _is_close(each.get("inputs"), inputs)), None)


def _is_close(one: object, other: object) -> bool:
    """Return True if two JSON values are equal but for the noise of floats."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=SIMILARITY_NOISE, abs_tol=SIMILARITY_NOISE)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_close(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_close, one, other))
    return one == other
