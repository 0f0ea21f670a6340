"""Credentials that are configured for the web go to origins that the user named, and to no address in a library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from fsspec.config import conf

from kinodex.pipeline.errors import SourceForbidden, SubtitleError
from kinodex.pipeline.fetch import identify, local_copy
from kinodex.pipeline.origins import origin_of
from kinodex.pipeline.places import Place, look
from kinodex.pipeline.remote_parts import open_parts
from kinodex.pipeline.source import Source
from kinodex.pipeline.source_list import SourceList
from kinodex.pipeline.sources import list_sources, named_sources
from kinodex.pipeline.stamps import stamp
from kinodex.pipeline.subtitles.lines import sidecar_lines

TOKEN = "Bearer of-the-user"
Seen = list[tuple[str, str, str, str]]


@contextmanager
def web_server(moved_to: str = "") -> Iterator[tuple[str, Seen]]:
    """A server that sends the same bytes for every name and notes who asked with what; "/moved" is elsewhere."""
    seen: Seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            headers = (self.headers.get(name, "") for name in ("Authorization", "X-Key", "Cookie"))
            seen.append((self.path, *headers))  # type: ignore[arg-type]
            is_moved = moved_to and self.path.startswith("/moved")
            self.send_response(302 if is_moved else 200)
            if is_moved:
                self.send_header("Location", f"{moved_to}/elsewhere.mp4")
            self.send_header("Content-Length", "0" if is_moved else "4")
            self.end_headers()
            if self.command == "GET" and not is_moved:
                self.wfile.write(b"film")

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", seen
        server.shutdown()


@pytest.fixture(autouse=True)
def configured(monkeypatch: pytest.MonkeyPatch) -> None:
    client = {"headers": {"Authorization": TOKEN, "X-Key": "of-the-user"}, "cookies": {"session": "of-the-user"}}
    monkeypatch.setitem(conf, "http", {"client_kwargs": client, "headers": {"X-Key": "of-the-user"}})
    monkeypatch.delenv("KINODEX_ORIGINS", raising=False)


def test_an_address_that_nobody_named_gets_no_credentials(tmp_path: Path) -> None:
    """All that reads an address of a library: a look, a stamp, a fetch, parts of a file, subtitles."""
    with web_server() as (address, seen):
        uri = f"{address}/film.mp4"
        look(Place(uri))
        (source,) = named_sources([uri])
        stamp(source)
        identify(source, tmp_path)
        with local_copy(source):
            pass
        with open_parts(uri):
            pass
        with pytest.raises(SubtitleError):
            sidecar_lines(f"{address}/film.srt")
    assert len(seen) >= 6
    assert {credentials for _, *given in seen for credentials in given} == {""}


def test_a_source_of_the_command_gets_them_and_its_redirect_to_another_origin_does_not(tmp_path: Path) -> None:
    with web_server() as (other, seen_there), web_server(moved_to=other) as (address, seen):
        for name in ("film.mp4", "moved.mp4"):
            (source,) = SourceList(list_sources([f"{address}/{name}"]))
            with local_copy(source) as path:
                assert path.read_bytes() == b"film"
    assert {tuple(given) for _, *given in seen} == {(TOKEN, "of-the-user", "session=of-the-user")}
    assert seen_there == [("/elsewhere.mp4", "", "", "")]


def test_an_origin_in_the_environment_gets_them(monkeypatch: pytest.MonkeyPatch) -> None:
    with web_server() as (address, seen):
        monkeypatch.setenv("KINODEX_ORIGINS", f"https://films.example.org, {address}")
        with local_copy(Source(f"{address}/film.mp4", "film")):
            pass
    assert seen[0][1:3] == (TOKEN, "of-the-user")


@pytest.mark.parametrize(
    "uri",
    [
        "reference:///x?fo=http://127.0.0.1:9/a.json",
        "simplecache::http://127.0.0.1:9/film.mp4",
        "zip://film.mp4::http://127.0.0.1:9/a.zip",
        "https://a.example/b::http://127.0.0.1:9/film.mp4",
        "sftp://elsewhere/film.mp4",
        "smb://elsewhere/film.mp4",
        "file:///etc/passwd",
    ],
)
def test_an_address_that_nobody_named_is_of_the_web_or_a_store(uri: str, tmp_path: Path) -> None:
    with pytest.raises(SourceForbidden, match="KINODEX_ORIGINS"):
        identify(Source(uri, "film"), tmp_path)
    with pytest.raises(SourceForbidden, match="KINODEX_ORIGINS"), open_parts(uri):
        pass
    assert look(Place(uri)).state == "unknown"
    assert [each.uri for each in named_sources([uri])] == [uri], "a failure of its own, not of all"


def test_origins_are_compared_as_browsers_do() -> None:
    assert origin_of("HTTPS://user:word@Films.example.org:443/a?b") == origin_of("https://films.example.org")
    assert origin_of("http://a.example") != origin_of("https://a.example") != origin_of("https://a.example:8443")
    assert origin_of("https://a.example@evil.example/") == origin_of("https://evil.example")
