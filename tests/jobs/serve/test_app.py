"""The whole application: path parameters with hostile values, errors of one form, one policy for the page."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from starlette.routing import Route

from jobs.serve.app import bare_app
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
NUMBERS = ("7", "99999999999999999999999")


def paths(client: Client) -> list[tuple[str, str]]:
    """Every route with each of its parameters replaced by a hostile value, the others being right."""
    found = []
    routes = [route for route in bare_app(client.site).routes if isinstance(route, Route)]
    for route in routes:
        for name, kind in re.findall(r"\{(\w+)(:\w+)?\}", route.path):
            for value in NUMBERS if kind == ":int" else [quote(each, safe="%/") for each in HOSTILE]:
                filled = re.sub(rf"\{{{name}(:\w+)?\}}", value.replace("\\", ""), route.path)
                path = re.sub(r"\{\w+:int\}", "0", filled)
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
