"""The whole application: hostile paths, numbers and bodies, errors of one form, its log, its counts, MCP beside it."""

from __future__ import annotations

import asyncio
import re
import shutil
from contextlib import nullcontext
from typing import Any
from urllib.parse import quote

import pytest
from mcp import Client as McpClient
from starlette.routing import Route

from kinodex.agent.limits.ledger import Ledger
from kinodex.index.kinds import PLACES
from kinodex.index.library import Library
from kinodex.jobs.models import ModelChoice
from kinodex.web.app import bare_app
from kinodex.web.request_log import logged_app
from kinodex.web.tally import Tally, metrics_text
from tests.support.servers.chat_server import ChatServer
from tests.support.servers.gate import Gate
from tests.support.servers.mcp_client import TOOLS, call, texts
from tests.support.servers.serve_server import JSON, Client, serving

BIRD = "What colour is the bird at sea?"
HOSTILE = (
    "..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd", "/etc/passwd", "\x00", "a" * 3000,
    "http://169.254.169.254/", "'; DROP TABLE videos; --", "q1/../q2", "‮*",
)  # fmt: skip
SOME_NUMBERS = ("7", "99999999999999999999999")


def paths(client: Client) -> list[tuple[str, str]]:
    """Every route with each of its parameters replaced by a hostile value, the others being right."""
    found = []
    for route in bare_app(client.site).routes:
        if not isinstance(route, Route):
            continue
        for name, kind in re.findall(r"\{(\w+)(:\w+)?\}", route.path):
            for value in SOME_NUMBERS if kind == ":number" else [quote(each, safe="%/") for each in HOSTILE]:
                filled = re.sub(rf"\{{{name}(:\w+)?\}}", value.replace("\\", ""), route.path)
                path = re.sub(r"\{[^}]*\}", "q1", re.sub(r"\{\w+:number\}", "0", filled))
                found += [(method, path) for method in route.methods or ["GET"] if method != "HEAD"]
    return found


@pytest.mark.slow
def test_no_parameter_is_a_path_or_breaks_the_server(client):
    every = paths(client)
    assert len(every) > 100
    for method, path in every:
        reply = client.send(method, path, b"{}" if method == "POST" else None, JSON)
        assert reply.status < 500 and b"root:" not in reply.body, (method, path, reply.status)
        assert reply.status >= 400 or reply.json is not None, (method, path)
    for path in ("/nowhere", "/data/nowhere", "/page/../app.py", "//etc/passwd"):
        reply = client.get(path)
        assert reply.status == 404 and reply.headers["content-type"] == "application/json" and reply.json["error"]
    assert client.send("DELETE", "/data/home").status == 405


NUMBERS = ["0" * 5000 + "9", "9" * 5000, "2147483648", "-1", "1e308", "inf", "nan", "٣", ""]
ADDRESSES = [
    "/data/questions?library={n}",
    "/data/libraries/{n}",
    "/data/libraries/{n}/videos",
    "/data/libraries/0/videos?start={n}",
    "/data/libraries/0/failures?start={n}",
    "/data/libraries/0/search?query=bird&in=speech&k={n}",
    *(f"/data/libraries/0/search?query=bird&in={place}&start_s={{n}}" for place in PLACES),
    "/data/libraries/0/search?query=bird&end_s={n}",
    "/data/libraries/0/search?like={video}@{n}",
    "/data/libraries/0/moments?text=bird&k={n}",
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
BODIES: list[dict[str, Any]] = [
    *({"budget": {"frames": 10**400}}, {"budget": {"tokens": -1}}, {"budget": {"seconds": float("nan")}}),
    *({"budget": {"seconds": float("inf")}}, {"budget": {"cost": float("nan")}}, {"settings": {"frames": 10**400}}),
    *({"settings": {"frames": float("nan")}}, {"settings": {"frames": "9" * 5000}}),
    *({"question": "\ud800"}, {"videos": ["\ud800"]}),
]


@pytest.mark.slow
def test_no_number_is_a_fault_of_the_server(client, library):
    video = Library.open(str(library)).video("film-01").video_id
    for address in ADDRESSES:
        replies = {number: client.get(address.format(n=quote(number), video=video)) for number in NUMBERS}
        assert {number[:20]: each.status for number, each in replies.items() if each.status >= 500} == {}, address
        assert all(len(each.body) < 500 for each in replies.values() if each.status >= 400), f"{address}: repeated"
    for body in BODIES:
        asked = {"question": BIRD, "agent": "uniform", **body}
        assert client.post("/data/libraries/0/questions", asked).status == 400, body
        own = {"agent": "uniform"} | {name: value for name, value in body.items() if name != "question"}
        said = [{"role": "user", "content": asked["question"]}]
        reply = client.post("/v1/chat/completions", {"model": "library", "messages": said, "kinodex": own})
        assert (reply.status, reply.json["error"]["type"]) == (400, "invalid_request_error"), body
    reply = client.send("POST", "/data/libraries/0/questions", b"{}", JSON | {"content-length": "9" * 5000})
    assert reply.status in (400, 413)


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

    async def send(message: Any) -> None:
        pass

    logged = logged_app(app, lambda method, status, seconds: counted.append((method, status)), lines.append)
    scope: Any = {"type": "http", "method": "GET", "path": path, "query_string": query}
    with pytest.raises(RuntimeError) if fails else nullcontext():
        asyncio.run(logged(scope, None, send))  # type: ignore[arg-type]
    return lines, counted


def test_a_request_is_one_line_without_a_secret_that_cannot_be_broken():
    (line,), counted = log("/media/0/abc", b"from=3")
    assert line.startswith("GET /media/0/abc?from=3 206 ") and line.endswith(" ms 5 B")
    assert counted == [("GET", 206)]
    for query in (b"token=correct-horse-battery", b"a=1&token=correct-horse-battery&b=2"):
        assert "correct-horse" not in log("/", query)[0][0]
    (line,), _ = log("/data/\nGET /admin 200\x1b[2J", b"text=\xff")
    assert "\n" not in line and "\x1b" not in line
    (line,), counted = log("/data/home", fails=True)
    assert " 500 " in line and counted == [("GET", 500)]


def parsed(text: str) -> dict[tuple[str, ...], float]:
    """Samples of metrics, as Prometheus's own client reads them."""
    from prometheus_client.parser import text_string_to_metric_families

    families = text_string_to_metric_families(text)
    return {(each.name, *each.labels.values()): each.value for family in families for each in family.samples}


def test_what_was_counted_is_read_by_prometheus(client):
    tally = Tally()
    tally.count_request("GET", 200, 0.5)
    tally.count_request("GET", 200, 0.25)
    tally.count_request('A"}\n', 404, 0.0)
    tally.count_question("answered", Ledger(frames=3, calls=2, input_tokens=10, output_tokens=5))
    tally.count_question("failed", None)
    assert parsed(metrics_text(tally, 1, 0.125)) == {
        ("kinodex_requests_total", "GET", "200"): 2,
        ("kinodex_requests_total", "other", "404"): 1,
        ("kinodex_request_seconds_total",): 0.75,
        ("kinodex_questions_total", "answered"): 1,
        ("kinodex_questions_total", "failed"): 1,
        ("kinodex_model_calls_total",): 2,
        ("kinodex_model_frames_total",): 3,
        ("kinodex_model_tokens_total",): 15,
        ("kinodex_questions_running",): 1,
        ("kinodex_cost_today",): 0.125,
    }
    client.wait(client.ask(BIRD))
    reply = client.get("/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    values = parsed(reply.body.decode())
    assert values[("kinodex_questions_total", "evidence_only")] >= 1 and values[("kinodex_model_frames_total",)] > 0
    assert values[("kinodex_requests_total", "POST", "201")] >= 1


def test_an_extra_that_is_missing_is_named(client, monkeypatch):
    for module in ("app", "mcp_routes"):
        monkeypatch.setattr(f"kinodex.web.{module}.find_spec", lambda name: None)
    reply = client.get("/metrics")
    assert reply.status == 501 and "kinodex[metrics]" in reply.json["error"]
    routes = {route.path: route for route in bare_app(client.site).routes if isinstance(route, Route)}
    said = asyncio.run(routes["/mcp"].endpoint(None))
    assert said.status_code == 501 and b"kinodex[mcp]" in said.body


PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPT = {"accept": "application/json, text/event-stream"}


def test_mcp_has_the_tools_of_a_library_and_asks(client):
    async def use() -> dict[str, Any]:
        async with McpClient(f"{client.address}/mcp") as mcp:
            assert {tool.name for tool in (await mcp.list_tools()).tools} == TOOLS
            assert (await call(mcp, "videos"))["library_videos"] == 3
            return await call(mcp, "ask", question=BIRD, options=["red", "black", "white"], videos=["film-01"])

    answer = asyncio.run(use())
    assert (answer["status"], answer["letter"], answer["evidence"][0]["title"]) == ("answered", "B", "film-01")
    row = client.get("/data/questions?library=0").json["rows"][0]
    assert (row["question"], row["videos"], row["letter"]) == (BIRD, ["film-01"], "B")


def test_mcp_of_several_libraries_is_named_and_guarded(library, tmp_path):
    other = shutil.copytree(library, tmp_path / "other")
    with serving([library, other], tmp_path / "traces") as client:

        async def titles(name: str) -> list[str]:
            async with McpClient(f"{client.address}/mcp/{name}") as mcp:
                return [each["title"] for each in (await call(mcp, "videos"))["videos"]]

        for name in ("library", "other"):
            assert asyncio.run(titles(name)) == ["film-01", "film-02", "film-03"]
        missing = client.post("/mcp", PING, ACCEPT)
        assert missing.status == 404
        assert missing.json == {"error": "there is no MCP server here; there is /mcp/library, /mcp/other"}
        assert client.post("/mcp", PING, {**ACCEPT, "origin": "http://evil.example"}).status == 403
        assert client.send("POST", "/mcp", b"x" * 2**21, {**JSON, **ACCEPT}).status == 413


def test_the_limits_of_the_server_hold_for_mcp(library, tmp_path):
    """A question that is cancelled is stopped, and no more than one is answered at once."""
    gate = Gate()

    async def use(client: Client) -> None:
        async with McpClient(f"{client.address}/mcp") as mcp:
            first = asyncio.ensure_future(mcp.call_tool("ask", {"question": "Who?"}))
            assert await asyncio.to_thread(gate.reached.wait, 60)
            (running,) = client.questions.running
            refused = await mcp.call_tool("ask", {"question": "Who?"})
            assert refused.is_error and "as many as this server answers at once" in texts(refused)[0]
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            assert (await running.finished()).reason == "stopped"
        gate.open.set()

    with ChatServer(gate) as server:
        choice = ModelChoice("tester", server.base_url, cache=False)
        with serving([library], tmp_path, choice, at_once=1) as client:
            asyncio.run(use(client))
