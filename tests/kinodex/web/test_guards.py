"""Guards: the right Host, the token on every route, no page of another site, no body that is too large; sockets."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator

import pytest
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from kinodex.jobs.errors import UsageError
from kinodex.server.guards import BODY_BYTES, Guard, check_host, check_token, guarded_app
from kinodex.server.sockets import http_url, listen
from kinodex.web.app import bare_app
from tests.support.servers.serve_server import JSON, Client, serving

TOKEN = "correct-horse-battery-staple"
WRONG = ("", "wrong", TOKEN[:-1], f"{TOKEN}x", TOKEN.upper())
ASK = "/data/libraries/0/questions"
NO_TOKEN = {"authorization": ""}


@pytest.fixture(scope="module")
def behind(library, tmp_path_factory) -> Iterator[Client]:
    """A server with a token; the client shows it unless a test sends another."""
    with serving([library], tmp_path_factory.mktemp("traces"), token=TOKEN) as client:
        yield client


def paths(client: Client) -> list[tuple[str, str]]:
    """Every route of the server with a path that it takes."""
    found = []
    for route in bare_app(client.site).routes:
        if isinstance(route, Mount):
            found.append(("GET", f"{route.path}/x"))
        elif isinstance(route, Route):
            path = re.sub(r"\{[^}]*\}", "x", re.sub(r"\{\w+:number\}", "0", route.path))
            found += [(method, path) for method in sorted(route.methods or ["GET"])]
    posted = [("POST", path) for path in ("/v1/chat/completions", "/v1/responses", "/mcp")]
    return [*found, ("GET", "/metrics"), ("GET", "/v1/models"), *posted]


@pytest.mark.slow
def test_no_route_is_open_without_the_token(behind):
    every = paths(behind)
    assert len(every) > 20
    for method, path in every:
        for headers in ({}, {"authorization": "Bearer wrong"}, {"cookie": f"{behind.site.guard.cookie}={TOKEN}"}):
            body = b"{}" if method == "POST" else None
            reply = behind.send(method, path, body, JSON | NO_TOKEN | headers)
            assert reply.status == 401, (method, path, headers)
            assert reply.headers["www-authenticate"] == "Bearer"
            if path.startswith("/v1/") and method != "HEAD":
                assert reply.json["error"]["code"] == "invalid_api_key", "as OpenAI's clients read it"
    for token in WRONG:
        for shown in (f"Bearer {token}", token, f"Basic {token}"):
            assert behind.get("/data/home", {"authorization": shown}).status == 401, shown
        assert behind.get(f"/?token={token}", NO_TOKEN).status == 401, token


def test_the_token_in_the_address_becomes_a_cookie_once(behind):
    entered = behind.get(f"/?token={TOKEN}", NO_TOKEN)
    assert (entered.status, entered.headers["location"]) == (303, "/")
    cookie = entered.headers["set-cookie"]
    assert TOKEN not in cookie and "HttpOnly" in cookie and "SameSite=strict" in cookie and "Path=/" in cookie
    shown = {**NO_TOKEN, "cookie": cookie.partition(";")[0]}
    assert behind.get("/", shown).status == behind.get("/data/home", shown).status == 200
    assert behind.get("/data/home?token=" + TOKEN, NO_TOKEN).status == 401, "nowhere else"
    assert behind.send("POST", f"/?token={TOKEN}", b"{}", JSON | NO_TOKEN).status == 401


def test_names_of_the_server(behind, client):
    """With a token any name is answered, without one that of this machine alone, or those chosen (DNS rebinding)."""
    assert behind.get("/data/home", {"host": "kinodex.example.com"}).status == 200
    assert behind.get("/data/home", {"authorization": f"bearer {TOKEN}"}).status == 200, "the scheme has no case"
    assert behind.get("/data/home", {"host": "kinodex.example.com", **NO_TOKEN}).status == 401
    assert behind.get("/data/home", {"host": "["}).status == 400
    port = client.site.guard.port
    for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}", "LOCALHOST"):
        assert client.get("/data/home", {"host": host}).status == 200, host
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[", "localhost@evil", "x:y"):
        for path in ("/", "/data/home", "/data/traces/q1"):
            assert client.get(path, {"host": host}).status == 400, (host, path)
    for names, host, status in (
        (("192.168.1.5",), "192.168.1.5:80", 200),
        (("192.168.1.5",), "localhost", 400),
        ((), "any.example", 200),
    ):
        app = guarded_app(PlainTextResponse("here"), Guard("192.168.1.5", 80, names=names))
        assert TestClient(app).get("/", headers={"host": host}).status_code == status, (names, host)


def test_a_page_of_another_site_is_refused(client):
    for origin in ("https://evil.example", "null", "http://127.0.0.1:1", "http://localhost", "", "http://[", "file://"):
        reply = client.post(ASK, {"question": "What?"}, {"origin": origin})
        assert reply.status == 403 and "another site" in reply.json["error"], origin
    assert client.post(ASK, {"question": "What colour is it?"}, {"origin": client.address}).status == 201
    for path, site, mode, status in (
        ("/data/home", "same-origin", "cors", 200),
        ("/", "cross-site", "navigate", 200),
        ("/data/home", "cross-site", "no-cors", 403),
    ):
        assert client.get(path, {"sec-fetch-site": site, "sec-fetch-mode": mode}).status == status, (path, mode)
    # A form or a `fetch` in mode no-cors sends these without asking first.
    form = "application/x-www-form-urlencoded"
    for kind in ("text/plain", "text/plain; charset=utf-8", form, "multipart/form-data", ""):
        for path in (ASK, "/data/questions/q1/stop", "/nowhere"):
            reply = client.send("POST", path, b'{"question": "What?"}', {"content-type": kind})
            assert reply.status == 415, (kind, path)
    for method in ("GET", "OPTIONS", "POST"):
        reply = client.send(method, "/data/home", b"{}" if method == "POST" else None, JSON)
        assert not any(name.startswith("access-control") for name in reply.headers)
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["cross-origin-resource-policy"] == "same-origin"


def test_a_body_that_is_too_large_is_not_read(client):
    said = client.send("POST", ASK, None, JSON | {"content-length": str(BODY_BYTES + 1)})
    assert said.status == 413 and "at most 1.0 MiB" in said.json["error"]
    for length in ("-1", "many", "9" * 400):
        assert client.send("POST", ASK, None, JSON | {"content-length": length}).status in (400, 413), length
    connection = client.connect()  # and one that grows without saying so is cut
    connection.putrequest("POST", ASK)
    connection.putheader("content-type", "application/json")
    connection.putheader("transfer-encoding", "chunked")
    connection.endheaders()
    chunk = b" " * 2**16
    for _ in range(BODY_BYTES // len(chunk) + 1):
        connection.send(b"%x\r\n%b\r\n" % (len(chunk), chunk))
    reply = connection.getresponse()
    said = reply.read()
    connection.close()
    assert reply.status == 413 and b"at most" in said


def test_a_token_that_could_be_guessed_and_an_address_without_one_are_refused():
    for token in ("", "short", "fifteen letters", "has a space in it, this one", "ünïcödé" * 4, "x" * 15):
        with pytest.raises(UsageError, match="give 16 or more") as refused:
            check_token(token)
        assert token not in str(refused.value) or not token
    check_token(TOKEN)
    for host in ("0.0.0.0", "::", "192.168.1.5", "", "example.com"):
        with pytest.raises(UsageError, match="KINODEX_SERVE_TOKEN"):
            check_host(host, None)
        check_host(host, TOKEN)
    for host in ("127.0.0.1", "localhost", "::1"):
        check_host(host, None)


def test_sockets_of_a_free_port_a_used_one_and_no_host():
    with listen("127.0.0.1", 0) as listener:
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY), "else each reply waits 40 ms"
        port = listener.getsockname()[1]
        assert http_url(listener, "localhost") == f"http://localhost:{port}/"
        assert http_url(listener, "::1") == f"http://[::1]:{port}/"
        used = f"cannot listen on 127.0.0.1, port {port}: .*give another --host or --port"
        with pytest.raises(UsageError, match=used):
            listen("127.0.0.1", port)
    with pytest.raises(UsageError, match=r"cannot listen on no\.such\.host\.invalid"):
        listen("no.such.host.invalid", 0)
