"""A stand-in for a language model's server: it replies without thinking, after a fixed time.

For measuring the time spent around the calls of a model. It speaks chat completions over real HTTP in a process of its
own, and its replies are well-formed: searches go on for some rounds and end with an answer. It serves the agents in
`AGENTS`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

AGENTS = ("eea", "vca", "uniform", "blind")
"""Agents whose requests it can answer."""
MODEL = "stand-in"
START_S = 60.0
"""Time limit for its process to start."""
ROUNDS = 3
"""Average number of rounds of a search, roughly."""

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_QUESTION = re.compile(r"^Question: (.*)$", re.MULTILINE)
_SEGMENT = re.compile(r"^- Segment (\d+)", re.MULTILINE)
_OPEN_SEGMENT = re.compile(r"^- Segment (\d+)(?!.*nothing left to see)", re.MULTILINE)


@dataclass(slots=True)
class Calls:
    """Calls about one question: all of them, and those that waited for another."""

    count: int = 0
    in_sequence: int = 0
    replied_s: float = 0.0
    """Time of the reply to the last of those in sequence."""


@dataclass(frozen=True, slots=True)
class FakeServer:
    """Address and counters of a running server."""

    base_url: str
    _pipe: Connection

    def calls(self) -> dict[str, Calls]:
        """Count the calls until now, by the question's text."""
        self._pipe.send(None)
        counts: dict[str, Calls] = self._pipe.recv()
        return counts


@contextmanager
def open_fake_server(latency_s: float) -> Iterator[FakeServer]:
    """Run a server that takes `latency_s` for every reply, in a process of its own until the block ends."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(latency_s, theirs), daemon=True)
    process.start()
    try:
        if not ours.poll(START_S):
            raise TimeoutError(f"the stand-in server did not start within {START_S:.0f} s")
        yield FakeServer(f"http://127.0.0.1:{ours.recv()}/v1", ours)
    finally:
        process.terminate()
        process.join()
        ours.close()


def _serve(latency_s: float, pipe: Connection) -> None:
    asyncio.run(_Server(latency_s).serve(pipe))


@dataclass(slots=True)
class _Server:
    latency_s: float
    calls: dict[str, Calls] = field(default_factory=dict)

    async def serve(self, pipe: Connection) -> None:
        def send_counts() -> None:
            pipe.recv()
            pipe.send(self.calls)

        asyncio.get_running_loop().add_reader(pipe.fileno(), send_counts)
        server = await asyncio.start_server(self.converse, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection, each a fixed time after it arrived, until the client closes it."""
        now_s = asyncio.get_running_loop().time
        try:
            while True:
                length = _LENGTH.search(await reader.readuntil(b"\r\n\r\n"))
                body = await reader.readexactly(int(length[1]) if length else 0)
                due_s = now_s() + self.latency_s
                request = json.loads(body)
                reply = json.dumps(completion(request)).encode()
                self._count(prompt_of(request), due_s)
                await asyncio.sleep(due_s - now_s())
                head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
                writer.write(f"{head}{len(reply)}\r\n\r\n".encode() + reply)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _count(self, prompt: str, due_s: float) -> None:
        calls = self.calls.setdefault(_question(prompt), Calls())
        calls.count += 1
        if due_s - self.latency_s >= calls.replied_s:
            calls.in_sequence += 1
            calls.replied_s = due_s


def completion(request: Mapping[str, Any]) -> dict[str, object]:
    """Make the chat completion that answers a request."""
    prompt = prompt_of(request)
    content = json.dumps(_REPLIES[request["response_format"]["json_schema"]["name"]](prompt))
    return {
        "object": "chat.completion",
        "model": MODEL,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(content) // 4},
    }


def prompt_of(request: Mapping[str, Any]) -> str:
    """Take the texts of the first message of a request, before and after its frames."""
    content = request["messages"][0]["content"]
    if isinstance(content, str):
        return content
    return "\n\n".join(part["text"] for part in content if part["type"] == "text")


def _question(prompt: str) -> str:
    found = _QUESTION.search(prompt)
    return found[1] if found else ""


def _number(text: str, below: int) -> int:
    """Hash a text to a number from 0 to below `below`, so that a run can be repeated."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) % below


def _queries(prompt: str) -> dict[str, object]:
    words = _question(prompt).lower().split()
    return {"queries": [" ".join([*words[at : at + 6], str(_number(prompt, 1000))]) for at in (0, 3)]}


def _scores(prompt: str) -> dict[str, object]:
    numbers = _SEGMENT.findall(prompt.rpartition("to be scored:")[2].partition("\n\n")[0])
    why = "The frames at its borders suggest little of it."
    return {"segments": [{"segment": each, "reasoning": why, "score": _number(prompt + each, 101)} for each in numbers]}


def _scores_and_queries(prompt: str) -> dict[str, object]:
    return {**_scores(prompt), **_queries(prompt)}


def _decision(prompt: str) -> dict[str, object]:
    left = _OPEN_SEGMENT.findall(prompt)
    if not left or "Exploring is over" in prompt or _number(prompt, ROUNDS) == 0:
        return _conclusion(prompt)
    chosen = left[_number(prompt, len(left))]
    blank: dict[str, object] = {"option": None, "answer": None, "evidence": []}
    return {"reasoning": "", "action": "explore", "segment": chosen, **blank}


def _conclusion(prompt: str) -> dict[str, object]:
    return {"reasoning": "", "action": "answer", "segment": None, "option": "A", "answer": "the first", "evidence": [1]}


_REPLIES: Mapping[str, Callable[[str], dict[str, object]]] = {
    "Queries": _queries,
    "SearchPlan": _queries,
    "SegmentScores": _scores,
    "ScoresAndQueries": _scores_and_queries,
    "Decision": _decision,
    "Conclusion": _conclusion,
}
