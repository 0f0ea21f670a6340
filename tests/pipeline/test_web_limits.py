"""A web server of a source that is slow, endless or packed: it is given up, and nothing fills memory or the disk."""

from __future__ import annotations

import gzip
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest

from kinodex.index.spaces.quick_hub import quick_hub
from kinodex.pipeline import web_limits
from kinodex.pipeline.errors import SourceError, SourceUnreachable
from kinodex.pipeline.fetch import identify, local_copy
from kinodex.pipeline.remote_parts import open_parts
from kinodex.pipeline.source import Source
from kinodex.pipeline.stamps import stamp
from tests.support.servers.model_hub import hub_at

pytestmark = pytest.mark.usefixtures("quick_fetches")


@contextmanager
def odd_server() -> Iterator[str]:
    over = Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            with suppress(OSError):
                getattr(self, self.path.strip("/").partition(".")[0])()
            self.close_connection = True

        def do_HEAD(self) -> None:
            self.do_GET()

        def _head(self, status: int = 200, **headers: object) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), str(value))
            self.end_headers()

        def slow_head(self) -> None:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
            while not over.wait(0.05):
                self.wfile.write(b"x")

        def slow(self) -> None:
            self._head(Content_Length=1 << 30)
            while self.command == "GET" and not over.wait(0.05):
                self.wfile.write(b"x")

        def endless(self) -> None:
            self._head(Connection="close")
            while self.command == "GET" and not over.is_set():
                self.wfile.write(b"x" * (1 << 20))

        def packed(self) -> None:
            body = gzip.compress(bytes(64 << 20), 9)
            self._head(Content_Length=len(body), Content_Encoding="gzip")
            self.wfile.write(body if self.command == "GET" else b"")

        def parts(self) -> None:
            if self.command == "HEAD":
                self._head(Content_Length=1 << 30, Accept_Ranges="bytes")
                return
            self._head(206, Content_Range=f"bytes 0-1/{1 << 30}", Connection="close")
            while not over.is_set():
                self.wfile.write(b"x" * (1 << 20))

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            over.set()
            server.shutdown()


@pytest.mark.parametrize("is_named", [False, True])
def test_a_server_that_sends_a_byte_at_a_time_is_given_up(is_named: bool, tmp_path: Path) -> None:
    with odd_server() as address:
        began_s = time.monotonic()
        for name in ("slow_head.mp4", "slow.mp4"):
            source = Source(f"{address}/{name}", "film", timeout_s=0.2, is_named=is_named)
            with pytest.raises(SourceUnreachable) as caught:
                identify(source, tmp_path)
            assert "\n" not in str(caught.value) and list(tmp_path.iterdir()) == []
        with pytest.raises(SourceUnreachable):
            stamp(Source(f"{address}/slow_head.mp4", "film", timeout_s=0.2, is_named=is_named))
        assert time.monotonic() - began_s < 30


def test_an_endless_film_ends_where_the_disk_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_limits, "LEAST_FREE_BYTES", 1 << 60)
    with odd_server() as address, pytest.raises(SourceUnreachable, match="is full; make room"):
        identify(Source(f"{address}/endless.mp4", "film"), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_film_for_which_there_is_no_room_is_fetched_once(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))  # a longer file than this cannot be written
    try:
        with odd_server() as address, pytest.raises(SourceUnreachable, match=r"no room is left.*TMPDIR"):
            identify(Source(f"{address}/endless.mp4", "film"), tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


def test_what_is_packed_is_not_unpacked(tmp_path: Path) -> None:
    with odd_server() as address:
        for is_named in (False, True):
            source = Source(f"{address}/packed.mp4", "film", is_named=is_named)
            with pytest.raises(SourceUnreachable, match="sent as gzip"), local_copy(source):
                pass


def test_a_part_is_no_longer_than_was_asked_for() -> None:
    with odd_server() as address, pytest.raises(SourceError), open_parts(f"{address}/parts.mp4"):
        pass


def test_a_hub_that_answers_a_byte_at_a_time_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kinodex.index.spaces.quick_hub.PROBE_TIMEOUT_S", 1.0)
    with odd_server() as address, hub_at(f"{address}/slow_head"):
        began_s = time.monotonic()
        with quick_hub() as online:
            assert not online
        assert time.monotonic() - began_s < 20
