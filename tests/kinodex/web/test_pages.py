"""The pages of a server without questions over HTTP: data, pictures and the page, and nothing else."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import json
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from tests.support.libraries.viewer_library import QUESTION, picture, served


def get(address: str, path: str, headers: Mapping[str, str] | None = None, method: str = "GET"):
    """Status, headers and body of a request that is sent as it is, whatever its path and headers."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in ({"Host": urlsplit(address).netloc} | dict(headers or {})).items():
        connection.putheader(name, value)
    connection.endheaders()
    reply = connection.getresponse()
    body = reply.read()
    connection.close()
    return reply.status, {name.lower(): value for name, value in reply.getheaders()}, body


def test_the_server_gives_frames_data_and_the_page(address, shown):
    status, headers, body = get(address, f"/pictures/0/{shown.video_id}/0")
    assert (status, headers["content-type"], body) == (200, "image/jpeg", picture((200, 30, 30)))
    status, headers, body = get(address, "/data/traces/t0")
    assert status == 200 and json.loads(body)["trace"]["question"]["text"] == QUESTION.text
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert headers["x-content-type-options"] == "nosniff"
    assert json.loads(get(address, "/data/home")[2])["serve"] is None
    status, headers, body = get(address, "/")
    assert status == 200 and b"http" not in body.replace(b"http-equiv", b"")
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'") and "media-src 'self'" in policy
    assert "unsafe" not in policy and "http" not in policy and "*" not in policy
    parts = {*re.findall(r'"(/page/[^"]+)"', body.decode())}
    assert len(parts) == 2, "the style sheet and one program"
    for part in parts:
        status, headers, packed = get(address, part, {"accept-encoding": "gzip"})
        assert (status, headers["content-encoding"], headers["vary"].lower()) == (200, "gzip", "accept-encoding"), part
        assert "immutable" in headers["cache-control"] and part.split("/")[2].startswith(
            hashlib.sha256(gzip.decompress(packed)).hexdigest()[:20]
        ), "its name changes with its content"
        assert get(address, part)[2] == gzip.decompress(packed), "who takes no gzip gets it plain"
    for words, count in (("bad.mp4", 1), ("onerror", 1), ("nothing", 0)):
        found = json.loads(get(address, f"/data/libraries/0/failures?words={words}")[2])
        assert found["count"] == len(found["rows"]) == count


def test_the_server_gives_nothing_else_and_only_reading_is_possible(address, shown):
    for path in (
        *("/page/..%2fserver.py", "/page/%2e%2e/%2e%2e/server.py", "/page/server.py", "/../../etc/passwd"),
        *("/data/traces/t2", "/data/traces/t-1", "/data/traces/r0-0-0", "/data/libraries/7", "/data/runs/0"),
        *("/reports/0/report.html", "/pictures/0/nobody/1", "/pictures/1/nobody/1"),
        *("/data/traces/q1", "/data/questions", "/data/questions/q1/events", "/metrics", "/v1/models", "/mcp"),
    ):
        status, _, body = get(address, path)
        assert status in (400, 404), path
        assert b"root:" not in body and b"import" not in body, path
    for path, status, says in (
        (f"/pictures/0/{shown.video_id}/99999", 404, "no such frame"),
        ("/data/libraries/0/search?query=", 400, "empty"),
        ("/data/libraries/0/search?query=a&in=smells", 400, "where to look"),
        ("/data/libraries/0/search?query=a&start_s=x", 400, "seconds"),
        ("/data/libraries/0/videos?start=nan", 400, "number"),
    ):
        found, _, body = get(address, path)
        assert found == status and says in json.loads(body)["error"], path
    assert get(address, "/data/home", {"Host": "evil.example"})[0] == 400
    assert get(address, "/data/home", {"origin": "http://evil.example"})[0] == 403
    for method in ("POST", "PUT", "DELETE"):
        assert get(address, "/data/home", {"content-type": "application/json"}, method)[0] == 405, method


def test_a_poster_is_sent_once_and_then_said_to_be_the_same(address, shown):
    path = f"/posters/0/{shown.video_id}"
    status, headers, body = get(address, path)
    assert (status, headers["content-type"], body[:2]) == (200, "image/jpeg", b"\xff\xd8")
    assert headers["cache-control"].startswith("private") and headers["x-content-type-options"] == "nosniff"
    status, _, body = get(address, path, {"if-none-match": headers["etag"]})
    assert (status, body) == (304, b"")
    for gone in ("/posters/0/nobody", f"/posters/1/{shown.video_id}", "/posters/0/..%2f..%2fetc"):
        assert get(address, gone)[0] == 404, gone


def test_the_report_of_a_run_comes_in_a_sandbox(run):
    with served(run) as address:
        status, headers, body = get(address, "/reports/0/report.html")
        assert status == 200 and b"<html" in body
        assert headers["content-security-policy"].startswith("sandbox allow-scripts;")
        for name in ("run.json", "answers.jsonl", "figures/../run.json", "..%2frun.json", "figures/%2e%2e/run.json"):
            assert get(address, f"/reports/0/{name}")[0] == 404, name


def test_examples_come_of_a_library_with_frames_and_of_no_other(address, many):
    status, _, body = get(address, "/data/libraries/0/examples")
    assert status == 200 and isinstance(json.loads(body), list)
    assert get(address, "/data/libraries/1/examples")[0] == 404
    with served(many.uri) as of_titles:
        assert [get(of_titles, "/data/libraries/0/examples")[index] for index in (0, 2)] == [200, b"[]"]
