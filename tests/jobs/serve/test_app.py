"""The whole application: path parameters with hostile values, errors of one form, one policy for the page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from starlette.routing import Route

from kinodex.index.library import Library
from kinodex.web.app import bare_app
from kinodex.web.search import KINDS
from tests.support.servers.serve_server import JSON, Client

HOSTILE: tuple[str, ...] = (
    "../../../../etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "%2e%2e/%2e%2e/etc/passwd",
    "/etc/passwd",
    "\x00",
    "a" * 3000,
)
HOSTILE += ("file:///etc/passwd", "http://169.254.169.254/", "'; DROP TABLE videos; --", "*", "q1/../q2", "‮txt")
SOME_NUMBERS = ("7", "99999999999999999999999")


def paths(client: Client) -> list[tuple[str, str]]:
    """Every route with each of its parameters replaced by a hostile value, the others being right."""
    found = []
    routes = [route for route in bare_app(client.site).routes if isinstance(route, Route)]
    for route in routes:
        for name, kind in re.findall(r"\{(\w+)(:\w+)?\}", route.path):
            for value in SOME_NUMBERS if kind == ":number" else [quote(each, safe="%/") for each in HOSTILE]:
                filled = re.sub(rf"\{{{name}(:\w+)?\}}", value.replace("\\", ""), route.path)
                path = re.sub(r"\{\w+:number\}", "0", filled)
                path = re.sub(r"\{[^}]*\}", "q1", path)
                found += [(method, path) for method in route.methods or ["GET"] if method != "HEAD"]
    return found


def test_no_parameter_is_a_path_or_breaks_the_server(client: Client) -> None:
    every = paths(client)
    assert len(every) > 100
    for method, path in every:
        reply = client.send(method, path, b"{}" if method == "POST" else None, JSON)
        assert reply.status < 500 and b"root:" not in reply.body, (method, path, reply.status)
        assert reply.status >= 400 or reply.json is not None, (method, path)


@pytest.mark.parametrize("path", ["/nowhere", "/data/nowhere", "/page/../app.py", "//etc/passwd"])
def test_errors_have_one_form(client: Client, path: str) -> None:
    reply = client.get(path)
    assert reply.status == 404 and reply.headers["content-type"] == "application/json" and reply.json["error"]
    assert client.send("DELETE", "/data/home").status == 405


def test_the_page_loads_from_its_server_alone(client: Client) -> None:
    policy = client.get("/").headers["content-security-policy"]
    assert policy.startswith("default-src 'none'") and "media-src 'self'" in policy
    assert "unsafe" not in policy and "http" not in policy and "*" not in policy


NUMBERS = ["0" * 5000 + "9", "9" * 5000, "9" * 40, "2147483648", "-1", "1e30", "1e308", "inf", "nan", "٣", "", "x"]
QUERIES = [
    "/data/questions?library={n}",
    "/data/libraries/{n}",
    "/data/libraries/{n}/videos",
    "/data/libraries/0/videos?start={n}",
    "/data/libraries/0/failures?start={n}",
    "/data/libraries/0/search?text=bird&kind=transcript&most={n}",
    *(f"/data/libraries/0/search?text=bird&kind={kind}&from={{n}}" for kind in KINDS),
    "/data/libraries/0/search?text=bird&to={n}",
    "/data/libraries/0/search?like={video}/{n}",
    "/data/libraries/0/moments?text=bird&most={n}",
    "/data/libraries/0/videos/{video}/detections/{n}",
    "/data/libraries/0/videos/{video}/playback?from={n}",
    "/data/libraries/0/export/csv?video={video}&ranges=1-{n}",
    "/data/libraries/0/export/clip?video={video}&ranges={n}-{n}",
    "/data/runs/{n}",
    "/data/traces/t{n}",
    "/data/traces/q{n}",
    "/data/questions/q{n}/events",
    "/data/questions/q{n}/moments",
    "/pictures/0/{video}/{n}",
    "/pictures/{n}/{video}/0",
    "/posters/{n}/{video}",
    "/reports/{n}/report.html",
    "/media/{n}/{video}",
    "/media/0/{video}/captions.vtt?from={n}",
    "/media/0/{video}/stream?way=remuxed&from={n}",
]


@pytest.mark.parametrize("path", QUERIES)
def test_no_number_is_a_fault_of_the_server(client: Client, library: Path, path: str) -> None:
    video = Library.open(str(library)).video("film-01").video_id
    replies = {number: client.get(path.format(n=quote(number), video=video)) for number in NUMBERS}
    assert {number[:20]: reply.status for number, reply in replies.items() if reply.status >= 500} == {}
    assert all(len(reply.body) < 500 for reply in replies.values() if reply.status >= 400), "it repeats the number"


BODIES: list[dict[str, Any]] = [
    {"budget": {"frames": 10**400}},
    {"budget": {"tokens": -1}},
    {"budget": {"seconds": float("nan")}},
    {"budget": {"seconds": float("inf")}},
    {"budget": {"cost": float("nan")}},
    {"settings": {"frames": 10**400}},
    {"settings": {"frames": float("nan")}},
    {"settings": {"frames": "9" * 5000}},
    {"question": "\ud800"},
    {"videos": ["\ud800"]},
]


@pytest.mark.parametrize("body", BODIES, ids=str)
def test_no_number_of_a_body_is_a_fault_of_the_server(client: Client, body: dict[str, Any]) -> None:
    asked = {"question": "What colour is the bird at sea?", "agent": "uniform", **body}
    assert client.post("/data/libraries/0/questions", asked).status == 400
    own = {"agent": "uniform"} | {name: value for name, value in body.items() if name != "question"}
    said = [{"role": "user", "content": asked["question"]}]
    reply = client.post("/v1/chat/completions", {"model": "library", "messages": said, "kinodex": own})
    assert (reply.status, reply.json["error"]["type"]) == (400, "invalid_request_error")


def test_a_length_of_thousands_of_digits_is_too_large(client: Client) -> None:
    reply = client.send("POST", "/data/libraries/0/questions", b"{}", JSON | {"content-length": "9" * 5000})
    assert reply.status in (400, 413)
