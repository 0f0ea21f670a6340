"""Guards: the right Host, the token on every route, no page of another site, no body that is too large."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.routing import Mount, Route

from kinodex.guards import BODY_BYTES, check_host, check_token
from kinodex.jobs.errors import UsageError
from kinodex.web.app import bare_app
from tests.support.servers.serve_server import JSON, Client, serving

TOKEN = "correct-horse-battery-staple"
WRONG = ("", "wrong", TOKEN[:-1], f"{TOKEN}x", TOKEN.upper())
ASK = "/data/libraries/0/questions"


@pytest.fixture(scope="module")
def behind(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
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
            path = re.sub(r"\{\w+:int\}", "0", route.path)
            found += [(method, re.sub(r"\{[^}]*\}", "x", path)) for method in sorted(route.methods or ["GET"])]
    return [*found, ("GET", "/metrics"), ("GET", "/v1/models"), ("POST", "/v1/chat/completions"), ("POST", "/mcp")]


def test_no_route_is_open_without_the_token(behind: Client) -> None:
    every = paths(behind)
    assert len(every) > 20
    for method, path in every:
        for headers in ({}, {"authorization": "Bearer wrong"}, {"cookie": f"{behind.site.guard.cookie}={TOKEN}"}):
            reply = behind.send(
                method, path, b"{}" if method == "POST" else None, JSON | {"authorization": ""} | headers
            )
            assert reply.status == 401, (method, path, headers)
            assert reply.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("token", WRONG)
def test_a_wrong_token_opens_nothing(behind: Client, token: str) -> None:
    for headers in (
        {"authorization": f"Bearer {token}"},
        {"authorization": token},
        {"authorization": f"Basic {token}"},
    ):
        assert behind.get("/data/home", headers).status == 401
    assert behind.get(f"/?token={token}", {"authorization": ""}).status == 401


def test_the_token_in_the_address_becomes_a_cookie_once(behind: Client) -> None:
    entered = behind.get(f"/?token={TOKEN}", {"authorization": ""})
    assert (entered.status, entered.headers["location"]) == (303, "/")
    cookie = entered.headers["set-cookie"]
    assert TOKEN not in cookie and "HttpOnly" in cookie and "SameSite=strict" in cookie and "Path=/" in cookie
    shown = {"authorization": "", "cookie": cookie.partition(";")[0]}
    assert behind.get("/", shown).status == behind.get("/data/home", shown).status == 200
    assert behind.get("/data/home?token=" + TOKEN, {"authorization": ""}).status == 401, "nowhere else"
    assert behind.send("POST", f"/?token={TOKEN}", b"{}", JSON | {"authorization": ""}).status == 401


def test_with_a_token_other_names_are_answered(behind: Client) -> None:
    assert behind.get("/data/home", {"host": "kinodex.example.com"}).status == 200
    assert behind.get("/data/home", {"authorization": f"bearer {TOKEN}"}).status == 200, "the scheme has no case"
    assert behind.get("/data/home", {"host": "kinodex.example.com", "authorization": ""}).status == 401
    assert behind.get("/data/home", {"host": "["}).status == 400


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "169.254.1.1", "", "[", "localhost@evil", "x:y"],
)
def test_without_one_no_other_name_is(client: Client, host: str) -> None:
    for path in ("/", "/data/home", "/data/traces/q1"):
        assert client.get(path, {"host": host}).status == 400


def test_the_names_of_this_machine_are_answered(client: Client) -> None:
    port = client.site.guard.port
    for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}", "LOCALHOST"):
        assert client.get("/data/home", {"host": host}).status == 200


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost", "", "http://[", "file://"]
)
def test_a_page_of_another_site_is_refused(client: Client, origin: str) -> None:
    reply = client.post(ASK, {"question": "What?"}, {"origin": origin})
    assert reply.status == 403 and "another site" in reply.json["error"]


def test_the_page_itself_is_not(client: Client) -> None:
    reply = client.post(ASK, {"question": "What colour is the bird?"}, {"origin": client.address})
    assert reply.status == 201
    assert client.get("/data/home", {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}).status == 200
    assert client.get("/", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}).status == 200
    assert client.get("/data/home", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}).status == 403


@pytest.mark.parametrize(
    "kind", ["text/plain", "text/plain; charset=utf-8", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_content_that_any_page_can_send_is_not_taken(client: Client, kind: str) -> None:
    """A form or a `fetch` in mode no-cors sends these without asking first."""
    for path in (ASK, "/data/questions/q1/stop", "/nowhere"):
        reply = client.send("POST", path, b'{"question": "What?"}', {"content-type": kind})
        assert reply.status == 415, path


def test_no_response_invites_other_sites(client: Client) -> None:
    for method in ("GET", "OPTIONS", "POST"):
        reply = client.send(method, "/data/home", b"{}" if method == "POST" else None, JSON)
        assert not any(name.startswith("access-control") for name in reply.headers)
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["cross-origin-resource-policy"] == "same-origin"


def test_a_body_that_is_too_large_is_not_read(client: Client) -> None:
    said = client.send("POST", ASK, None, JSON | {"content-length": str(BODY_BYTES + 1)})
    assert said.status == 413 and "at most 1.0 MiB" in said.json["error"]
    for length in ("-1", "many", "9" * 400):
        assert client.send("POST", ASK, None, JSON | {"content-length": length}).status in (400, 413)


def test_a_body_that_grows_without_saying_so_is_cut(client: Client) -> None:
    connection = client.connect()
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


@pytest.mark.parametrize(
    "token", ["", "short", "fifteen letters", "has a space in it, this one", "ünïcödé" * 4, "x" * 15]
)
def test_a_token_that_could_be_guessed_or_not_be_sent_is_refused(token: str) -> None:
    with pytest.raises(UsageError, match="give 16 or more") as refused:
        check_token(token)
    assert token not in str(refused.value) or not token


def test_an_address_that_others_reach_needs_a_token() -> None:
    check_token(TOKEN)
    for host in ("0.0.0.0", "::", "192.168.1.5", "", "example.com"):
        with pytest.raises(UsageError, match="KINODEX_SERVE_TOKEN"):
            check_host(host, None)
        check_host(host, TOKEN)
    for host in ("127.0.0.1", "localhost", "::1"):
        check_host(host, None)
