"""One line a request, which holds no secret and cannot be broken."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import Any

import pytest

from kinodex.web.app import logged_app


def log(path: str, query: bytes = b"", *, fails: bool = False) -> tuple[list[str], list[tuple[str, int]]]:
    """Lines and counts of one request to an application that sends five bytes, or fails before them."""
    lines: list[str] = []
    counted: list[tuple[str, int]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if fails:
            raise RuntimeError("inside")
        await send({"type": "http.response.start", "status": 206, "headers": []})
        await send({"type": "http.response.body", "body": b"abc", "more_body": True})
        await send({"type": "http.response.body", "body": b"de"})

    async def receive() -> Any:
        raise AssertionError("nothing is read")

    async def send(message: Any) -> None:
        pass

    logged = logged_app(app, lambda method, status, seconds: counted.append((method, status)), lines.append)
    scope: Any = {"type": "http", "method": "GET", "path": path, "query_string": query}

    async def run() -> None:
        with pytest.raises(RuntimeError) if fails else nullcontext():
            await logged(scope, receive, send)

    asyncio.run(run())
    return lines, counted


def test_a_line_says_what_came_and_what_went() -> None:
    (line,), counted = log("/media/0/abc", b"from=3")
    assert line.startswith("GET /media/0/abc?from=3 206 ") and line.endswith(" ms 5 B")
    assert counted == [("GET", 206)]


@pytest.mark.parametrize("query", [b"token=correct-horse-battery", b"a=1&token=correct-horse-battery&b=2"])
def test_a_token_is_left_out(query: bytes) -> None:
    (line,), _ = log("/", query)
    assert "correct-horse" not in line


def test_a_line_cannot_be_broken() -> None:
    (line,), _ = log("/data/\nGET /admin 200\x1b[2J", b"text=\xff")
    assert "\n" not in line and "\x1b" not in line


def test_a_fault_is_a_line_as_well() -> None:
    (line,), counted = log("/data/home", fails=True)
    assert " 500 " in line and counted == [("GET", 500)]
