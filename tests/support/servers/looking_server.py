"""A chat server that looks at the moments of a search as a test wants it: `LookingServer(lambda number, line: True)`.

Its replies have the schema of `JudgeMoments`; the list of models says that it sees.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.support.servers.chat_server import ChatServer

MOMENT = re.compile(r"^- moment (\d+), .*$", re.MULTILINE)


def looking_server(sees: Callable[[int, str], bool]) -> ChatServer:
    """A server whose verdict on each moment is `sees` of its number and its line in the prompt."""

    def reply(body: dict) -> dict:
        text = "\n".join(part.get("text", "") for part in parts_of(body))
        found = [(int(line[1]), sees(int(line[1]), line[0])) for line in MOMENT.finditer(text)]
        return {"moments": [entry(number, present) for number, present in found]}

    return ChatServer(reply)


def parts_of(body: dict) -> list[dict]:
    """The parts of all messages of a request."""
    contents = [message["content"] for message in body["messages"]]
    return [part for each in contents for part in ([{"text": each}] if isinstance(each, str) else each)]


def entry(number: int, present: bool) -> dict:
    """One moment's verdict, with its reason."""
    reason = "a boat is in the picture" if present else "only the sea is seen"
    return {"moment": number, "reasoning": f"{reason} ({number})", "present": present}
