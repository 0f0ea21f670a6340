"""A model that answers from a trace: for tests, and to look at a run again without a key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agent.core.protocol import Exchange, R, Request, Usage, request_key
from agent.errors import NotInTrace
from agent.trace.trace import read_trace


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
        """The model that answered for a role when the trace was written."""
        names = self.header["models"]
        return str(names.get(role) or names.get("default") or self.name)

    def holds(self, request: Request[R]) -> bool:
        """Whether the reply to a request was recorded."""
        return request_key(request) in self._exchanges

    async def ask(self, request: Request[R]) -> Exchange[R]:
        key = request_key(request)
        found = self._exchanges.get(key)
        if found is None:
            raise NotInTrace(
                f"{self.path} holds no {type(request).__name__} with key {key}; replay with the question, "
                "library, agent and parameters of its header, or ask a model"
            )
        reply = None if found["reply"] is None else request.Reply.model_validate(found["reply"])
        usage = Usage(**found["usage"])
        return Exchange(reply, found["invalid"], usage, found["cached"], found["raw"], found["seconds"])
