"""Limits of what any server replies: whole time, decoded bytes, depth of JSON, and no other server instead of it."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import repeat
from pathlib import Path
from threading import Event, Thread

import httpx2
import pytest

from kinodex.agent.errors import ModelError, ModelUnreachable, ReplyRefused
from kinodex.agent.models import bounded_http
from kinodex.agent.models.bounded_http import MOST_REPLY_BYTES, BoundedClient
from kinodex.agent.models.openai_model import OpenAIModel
from kinodex.agent.models.reply_parser import parse_reply
from kinodex.agent.models.roles import Role
from kinodex.index.library import Library
from kinodex.index.nesting import MOST_DEPTH, MOST_DIGITS, is_deep, is_deep_value, parse_json
from kinodex.index.rows import Hit
from kinodex.jobs.notices import send_notice
from kinodex.jobs.rerank import reranked
from tests.support.servers.wire import discover

pytestmark = pytest.mark.usefixtures("quick_tries")

MEBIBYTE = 1 << 20
DEEP = b'{"choices": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"
LONG = b'{"choices": ' + b"9" * 6000 + b"}"
Parts = Callable[[], Iterator[bytes]]


@contextmanager
def server(
    parts: Parts, headers: dict[str, str] | None = None, status: int = 200, head: Parts = lambda: iter(())
) -> Iterator[tuple[str, list[str], list[int]]]:
    """A server that answers each request so; gives its address, the paths asked for, and the bytes that it sent."""
    paths, sent = list[str](), [0]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            paths.append(self.path)
            with suppress(OSError):
                self.wfile.write(f"HTTP/1.1 {status} OK\r\nConnection: close\r\n".encode())
                for name, value in (headers or {"Content-Type": "application/json"}).items():
                    self.wfile.write(f"{name}: {value}\r\n".encode())
                for part in head():
                    self.wfile.write(part)
                self.wfile.write(b"\r\n")
                for part in parts():
                    self.wfile.write(part)
                    sent[0] += len(part)
            self.close_connection = True

        def do_GET(self) -> None:
            if self.path == "/props":  # asked of llama.cpp
                self.send_error(404)
            else:
                self.do_POST()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        Thread(target=listening.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listening.server_port}", paths, sent
        listening.shutdown()


def drip(over: Event) -> Parts:
    """A byte each twentieth of a second, which no limit of a wait ends."""

    def parts() -> Iterator[bytes]:
        while not over.wait(0.05):
            yield b" "

    return parts


def flood() -> Iterator[bytes]:
    return repeat(b"x" * MEBIBYTE)


def bomb() -> Iterator[bytes]:
    packed = gzip.compress(bytes(64 * MEBIBYTE), 9)
    yield from repeat(packed, 50)


def ask(address: str, **settings: object) -> None:
    async def run() -> None:
        role = Role.model_validate({"base_url": address, "model": "tester", "timeout_s": 5.0, **settings})
        async with OpenAIModel(role) as model:
            await model.ask(discover())

    asyncio.run(run())


@pytest.mark.parametrize("in_head", [False, True])
def test_the_time_of_an_attempt_is_that_of_the_whole_reply(in_head: bool) -> None:
    over = Event()
    dripping = drip(over)
    began_s = time.monotonic()
    with (
        server(lambda: iter(()) if in_head else dripping(), head=dripping if in_head else lambda: iter(())) as seen,
        pytest.raises(ModelUnreachable, match=r"within 0\.5 s"),
    ):
        try:
            ask(seen[0], timeout_s=0.5, attempts=2)
        finally:
            over.set()
    assert time.monotonic() - began_s < 10 and len(seen[1]) == 2


@pytest.mark.parametrize(
    ("parts", "headers", "words"),
    [
        (flood, None, "more than 33,554,432 bytes"),
        (bomb, {"Content-Encoding": "gzip"}, "more than 33,554,432 bytes"),
        (lambda: iter([b"..."]), {"Content-Encoding": "zstd"}, "as 'zstd', which was not asked for"),
        (lambda: iter([DEEP]), None, f"nested more than {MOST_DEPTH} deep"),
        (lambda: iter([b"\r\n" + DEEP]), None, f"nested more than {MOST_DEPTH} deep"),
        (lambda: iter([DEEP.decode().encode("utf-16")]), None, f"nested more than {MOST_DEPTH} deep"),
        (lambda: iter([LONG]), None, f"with a number of more than {MOST_DIGITS} digits"),
        (lambda: iter([b"9" * 6000]), None, f"with a number of more than {MOST_DIGITS} digits"),
    ],
    ids=["endless", "gzip bomb", "another encoding", "deep", "deep after a line", "deep UTF-16", "long", "a number"],
)
def test_a_reply_that_nobody_could_read_ends_after_one_attempt(
    parts: Parts, headers: dict[str, str] | None, words: str
) -> None:
    with server(parts, headers) as (address, paths, sent), pytest.raises(ReplyRefused, match=words) as caught:
        ask(address)
    assert len(paths) == 1 and "\n" not in str(caught.value)
    assert sent[0] < MOST_REPLY_BYTES + 64 * MEBIBYTE


def test_a_refusal_and_a_list_of_models_are_bounded_too() -> None:
    for status in (400, 429, 500):
        with server(flood, status=status) as (address, _, _), pytest.raises(ModelError):
            ask(address, attempts=1)


def test_a_request_is_not_sent_on_to_another_server_and_is_to_the_same() -> None:
    completion = json.dumps({"choices": [{"message": {"content": '{"queries": ["a kite"]}'}}]}).encode()
    with server(lambda: iter([completion])) as (other, others, _):
        with (
            server(lambda: iter(()), {"Location": f"{other}/chat/completions"}, 307) as (address, _, _),
            pytest.raises(ReplyRefused, match=f"sends the request on to {other}, another server"),
        ):
            ask(address)
        assert others == []
        with (
            server(lambda: iter(()), {"Location": "/again"}, 307) as (address, paths, _),
            pytest.raises(ReplyRefused, match="again and again"),
        ):
            ask(address)
        assert paths[:2] == ["/chat/completions", "/again"]


def test_what_is_packed_and_short_is_read() -> None:
    async def get(address: str) -> httpx2.Response:
        async with BoundedClient(timeout=5.0) as client:
            return await client.get(address)

    packed = gzip.compress(b'{"a": [1, 2]}')
    with server(lambda: iter([packed[:9], packed[9:]]), {"Content-Encoding": "gzip"}) as (address, _, _):
        reply = asyncio.run(get(address))
    assert reply.json() == {"a": [1, 2]} and reply.status_code == 200


def test_rerankers_and_receivers_of_notices_have_the_same_limits(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hit = Hit("a" * 32, 0.0, 1.0, None, 1.0, "a kite", "speech")
    for parts, headers, words in ((flood, None, "bytes"), (lambda: iter([DEEP]), None, "deep")):
        with server(parts, headers) as (address, _, _):
            with pytest.raises(ReplyRefused, match=words):
                reranked(Library.open(str(library)), "kite", [hit], address)
            said = send_notice(address, {"id": "one"}, Event())
            assert said is not None and said.startswith("refused: notice one: ") and words in said
    over = Event()
    monkeypatch.setattr("kinodex.jobs.rerank.TIMEOUT_S", 0.5)
    with server(drip(over)) as (address, _, _), pytest.raises(ModelUnreachable, match="does not answer"):
        try:
            reranked(Library.open(str(library)), "kite", [hit], address)
        finally:
            over.set()


def test_depth_is_that_of_brackets_outside_strings() -> None:
    fine = b"[" * MOST_DEPTH + b"]" * MOST_DEPTH
    assert not is_deep(fine) and is_deep(b"[" + fine + b"]")
    assert not is_deep(json.dumps(["[" * 500, '"' + "{" * 500]).encode())
    assert is_deep(b'["' + b"]" * 500 + b'",' + b"[" * 101 + b"]" * 102)
    assert is_deep_value(json.loads(b"[" + fine + b"]")) and not is_deep_value(json.loads(fine))
    assert parse_json('{"a": [1]}') == {"a": [1]}
    for deep in (DEEP, DEEP.decode(), " " + DEEP.decode()):
        with pytest.raises(ValueError, match="nested more than"):
            parse_json(deep)
    assert parse_json('{"a": "%s"}' % ("9" * 6000)) == {"a": "9" * 6000}
    with pytest.raises(json.JSONDecodeError, match="number of more than"):
        parse_json(LONG)


@pytest.mark.parametrize("depth", [300, 900, 200_000])
def test_a_model_that_writes_deep_json_has_written_a_reply_that_cannot_be_used(depth: int) -> None:
    reply, problem = parse_reply('{"queries": ' + '{"a": [' * depth + "]}" * depth + "}", discover())
    assert reply is None and problem is not None and "nested" in problem


def test_every_client_of_servers_is_bounded() -> None:
    from tests.support.house.source_tree import read_sources

    root = Path(bounded_http.__file__).parents[2]
    free = {
        "agent/models/bounded_http.py",
        "jobs/blocking_http.py",
        "pipeline/live/playlist.py",
    }  # the last has its own limits
    makers = ("httpx2.Client(", "httpx2.AsyncClient(", "DefaultAsyncHttpxClient(", "DefaultHttpxClient(", "httpx2.get(")
    for source in read_sources(root):
        assert str(source.path) in free or not any(maker in source.text for maker in makers), source.path
        if "OpenAI(" in source.text:
            assert "http_client=" in source.text, source.path
