"""The server gives data, pictures and the page to its own address, and nothing else."""

from __future__ import annotations

import http.client
import json
import re
from urllib.parse import quote, urlsplit

import pytest

from tests.support.libraries.viewer_library import EVIL, QUESTION, picture, served


def get(address, path, host=None):
    """Status, headers and body of a request that is sent as it is, whatever its path and host."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc)
    connection.putrequest("GET", path, skip_host=True)
    connection.putheader("Host", host or urlsplit(address).netloc)
    connection.endheaders()
    reply = connection.getresponse()
    body = reply.read()
    connection.close()
    return reply.status, {name.lower(): value for name, value in reply.getheaders()}, body


def test_the_server_gives_frames_data_and_the_page(address, shown):
    status, headers, body = get(address, f"/pictures/0/{shown.video_id}/0")
    assert (status, headers["content-type"], body) == (200, "image/jpeg", picture((200, 30, 30)))
    status, headers, body = get(address, "/data/traces/t0")
    assert status == 200 and headers["content-type"].startswith("application/json")
    assert json.loads(body)["trace"]["question"]["text"] == QUESTION.text
    status, headers, body = get(address, "/")
    assert status == 200 and b"http" not in body.replace(b"http-equiv", b"")
    for part in re.findall(r'"(/page/[^"]+)"', body.decode()):
        assert get(address, part)[0] == 200


@pytest.mark.parametrize(
    "path",
    [
        "/page/../viewer.css",
        "/page/..%2fserver.py",
        "/page/%2e%2e/%2e%2e/server.py",
        "/page/server.py",
        "/data/traces/..%2f..%2fetc%2fpasswd",
        "/data/traces/t2",
        "/data/traces/t-1",
        "/data/traces/r0-0-0",
        "/data/libraries/7",
        "/data/runs/0",
        "/pictures/0/..%2f..%2fetc/1",
        "/pictures/0/nobody/1",
        "/pictures/1/nobody/1",
        "/reports/0/report.html",
        "//etc/passwd",
        "/../../etc/passwd",
    ],
)
def test_the_server_gives_nothing_else(address, path):
    status, _, body = get(address, path)
    assert status in (400, 404), body
    assert b"root:" not in body and b"import" not in body


def test_a_frame_that_is_not_there_is_told(address, shown):
    status, _, body = get(address, f"/pictures/0/{shown.video_id}/99999")
    assert status == 404 and "no such frame" in json.loads(body)["error"]
    assert get(address, f"/pictures/0/{shown.video_id}/{10**20}")[0] == 404


def test_a_search_that_makes_no_sense_is_told(address):
    for query, says in (("text=", "empty"), ("text=a&kind=all", "kind"), ("text=a&from=x", "number")):
        status, _, body = get(address, f"/data/libraries/0/search?{query}")
        assert status == 400 and says in json.loads(body)["error"]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "169.254.1.1"])
def test_another_host_is_refused(address, host):
    assert get(address, "/data/home", host)[0] == 400


def test_the_policy_lets_the_page_load_only_from_its_server(address):
    _, headers, _ = get(address, "/")
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy and "http" not in policy and "*" not in policy
    _, headers, _ = get(address, "/data/home")
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert headers["x-content-type-options"] == "nosniff"


def test_nothing_can_be_asked_of_the_viewer(address):
    assert json.loads(get(address, "/data/home")[2])["serve"] is None
    for path in ("/data/traces/q1", "/data/questions", "/data/questions/q1/events"):
        assert get(address, path)[0] == 404


def test_only_reading_is_possible(address):
    connection = http.client.HTTPConnection(urlsplit(address).netloc)
    for method in ("POST", "PUT", "DELETE"):
        connection.request(method, "/data/home", headers={"content-type": "application/json"})
        reply = connection.getresponse()
        reply.read()
        assert reply.status == 405
    connection.close()


def test_a_frame_of_a_library_is_named_by_its_video_as_it_is(address):
    assert get(address, f"/data/libraries/0/videos/{quote(EVIL, safe='')}")[0] in (400, 404)


def test_pages_of_rows_by_words(address):
    for words, count in (("bad.mp4", 1), ("onerror", 1), ("nothing", 0)):
        found = json.loads(get(address, f"/data/libraries/0/failures?words={words}")[2])
        assert found["count"] == len(found["rows"]) == count
    for start in ("-1", "x", "1e400", "nan"):
        assert get(address, f"/data/libraries/0/videos?start={start}")[0] == 400


def test_the_report_of_a_run_comes_in_a_sandbox(run):
    with served(run) as address:
        status, headers, body = get(address, "/reports/0/report.html")
        assert status == 200 and b"<html" in body
        assert headers["content-security-policy"].startswith("sandbox allow-scripts;")
        for name in ("run.json", "answers.jsonl", "figures/../run.json", "..%2frun.json", "figures/%2e%2e/run.json"):
            assert get(address, f"/reports/0/{name}")[0] == 404
