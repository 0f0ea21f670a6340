"""What the viewer draws is what the traces, runs and libraries hold; its server gives that and nothing else."""

from __future__ import annotations

import gzip
import http.client
import inspect
import json
import re
import sys
from dataclasses import fields
from ipaddress import ip_address
from urllib.parse import quote, urlsplit

import pytest

from agent.errors import NotATrace
from agent.trace.trace import read_trace
from jobs.cli import view as view_command
from jobs.cli.main import main
from jobs.errors import UsageError
from jobs.server_socket import listen
from jobs.viewer.api import ViewerApi
from jobs.viewer.export import one_file
from jobs.viewer.html import as_json
from jobs.viewer.inputs import classify_inputs
from jobs.viewer.library_view import ROWS, SearchRequest
from jobs.viewer.trace_cost import CallCost
from jobs.viewer.trace_view import Frame, shown_frames, trace_view
from tests.support.command import bad
from tests.support.eval_runs import caption_library, write_questions
from tests.support.viewer_library import (
    EVIL,
    QUESTION,
    SCENE_S,
    SECONDS,
    chromium,
    library_of_titles,
    make_shown,
    picture,
    served,
)


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    return make_shown(tmp_path_factory.mktemp("viewer"))


@pytest.fixture(scope="module")
def api(shown):
    return ViewerApi(classify_inputs([*map(str, shown.traces), shown.library.uri]))


@pytest.fixture(scope="module")
def view(shown):
    return trace_view(read_trace(shown.traces[0]))


@pytest.fixture(scope="module")
def address(shown):
    with served(shown.traces[0], shown.library.uri) as address:
        yield address


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluated")
    library = caption_library(folder / "library", ("harbour", "orchard"))
    questions = write_questions(folder, ("harbour", "orchard"), 2)
    asked = ["eval", "sketch", library.uri, "--annotations", str(questions), "--out", str(folder / "run")]
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit, match="0"):
        patch.setattr(sys, "argv", ["kinodex", *asked, "--agent", "uniform", "--traces"])
        main()
    return folder / "run"


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


def held_in(text):
    """What a page of one file holds."""
    (found,) = re.findall(r'id="held">(.*?)</script>', text, re.DOTALL)
    return json.loads(found)


def test_the_tree_has_every_segment_with_its_parent_and_round(view):
    by_number = {node.number: node for node in view.nodes}
    assert by_number[0].parent is None and by_number[0].depth == 0
    assert (by_number[0].start_s, by_number[0].end_s) == (0.0, SECONDS)
    for node in view.nodes[1:]:
        parent = by_number[node.parent]
        assert parent.start_s <= node.start_s < node.end_s <= parent.end_s
        assert node.depth == parent.depth + 1
        assert node.made_in == parent.opened_in


def test_the_open_segments_of_each_round_are_those_that_were_scored(view):
    for step in view.steps:
        if step.scored:
            there = {node.number for node in view.nodes if node.made_in <= step.round}
            divided = {node.number for node in view.nodes if (node.opened_in or SECONDS) <= step.round}
            assert {each["number"] for each in step.scored["candidates"]} == there - divided


def test_memory_is_what_was_added_less_what_was_evicted(view):
    kept: set[Frame] = set()
    for step in view.steps:
        kept = (kept | set(step.added)) - set(step.evicted)
        assert set(step.memory) == kept
    assert kept


def test_the_ledger_adds_up(view):
    total = sum((step.bill for step in view.steps), CallCost())
    ledger = view.answer["ledger"]
    for each in fields(CallCost):
        assert getattr(total, each.name) + getattr(view.elsewhere, each.name) == pytest.approx(ledger[each.name])
    assert view.steps[-1].so_far == total
    assert view.elsewhere == CallCost()
    assert total.frames == len(shown_frames(view))


def test_frames_that_no_call_showed_are_accounted_for_beside_the_calls(shown):
    records = read_trace(shown.traces[0])
    records[-1]["answer"]["ledger"]["frames"] += 3
    assert trace_view(records).elsewhere == CallCost(frames=3)


def test_a_run_that_was_cut_short_is_drawn_as_far_as_it_came(shown):
    view = trace_view(read_trace(shown.traces[0])[:-2])
    assert view.answer is None
    assert view.steps[-1].calls


def test_a_compressed_trace_is_the_same_trace(shown, tmp_path):
    packed = tmp_path / "trace.jsonl.gz"
    packed.write_bytes(gzip.compress(shown.traces[0].read_bytes()))
    assert read_trace(packed) == read_trace(shown.traces[0])
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(NotATrace):
        read_trace(packed)


def test_curves_are_high_where_the_query_is_seen(api):
    (curve,) = [each for each in api.curves("t0") if each.query.startswith("red shoes")]
    assert len(curve.percent) == len(curve.times_s) == SECONDS
    assert min(curve.percent[:SCENE_S]) > max(curve.percent[SCENE_S:])


def test_a_search_gives_frames_within_its_filters(api, shown):
    hits = api.search(0, SearchRequest("red shoes in the city", "frames"))
    assert 0 <= hits[0]["start_s"] < SCENE_S and hits[0]["frame_no"] == hits[0]["start_s"]
    late = api.search(0, SearchRequest("red shoes in the city", "frames", shown.video_id, 30.0, 50.0))
    assert late and all(30 <= hit["start_s"] < 50 for hit in late)
    (line,) = api.search(0, SearchRequest("sea", "transcript"))
    assert line["text"].startswith("we are at sea") and 20 <= line["frame_no"] < 25


def test_a_trace_knows_its_library_shots_and_titles(api):
    told = api.trace("t0")
    assert told["library"] == 0
    (spans,) = told["shots"].values()
    assert spans == [(0.0, 20.0), (20.0, 40.0), (40.0, 60.0)]
    assert api.home["traces"][0]["question"]["text"] == QUESTION.text


def test_a_trace_without_its_library_has_no_pictures(shown):
    alone = ViewerApi(classify_inputs([str(shown.traces[0])]))
    assert alone.trace("t0")["library"] is None
    assert alone.curves("t0") == []


def test_pictures_that_a_run_did_not_see_are_not_shown_for_it(shown, tmp_path):
    records = read_trace(shown.traces[0])
    text = shown.traces[0].read_text().replace(shown_frames(trace_view(records))[0].jpeg, "0" * 16)
    (tmp_path / "other.jsonl").write_text(text)
    told = ViewerApi(classify_inputs([str(tmp_path / "other.jsonl"), shown.library.uri])).trace("t0")
    assert told["library"] is None and told["shots"] == {}


def test_what_is_neither_trace_run_nor_library_is_refused(kinodex, tmp_path, shown):
    bad(kinodex, "view", tmp_path, code=2, says="which is no trace, run or library")
    (tmp_path / "notes.txt").write_text("hello")
    bad(kinodex, "view", tmp_path / "notes.txt", code=2, says="cannot be read as a trace")
    bad(kinodex, "view", shown.library.uri, "--out", tmp_path / "no" / "x.html", code=2, says="cannot write")
    with pytest.raises(UsageError, match="which is no trace"):
        classify_inputs(["nowhere"])


def test_a_run_shows_every_answer_and_has_its_traces(run):
    api = ViewerApi(classify_inputs([str(run)]))
    told = api.run(0)
    assert [len(each["answers"]) for each in told["questions"]] == [len(told["contenders"])] * 4
    at = told["contenders"].index("uniform")
    assert all(each["answers"][at]["has_trace"] for each in told["questions"])
    trace = api.trace(f"r0-{at}-3")
    assert trace["trace"].question["text"] == told["questions"][3]["question"].text
    assert trace["truth"]["option"] == 0 and trace["truth"]["evidence"][0]["end_s"] == 2.0
    assert trace["library"] == 0
    assert one_file(api).traces_left_out == 0
    small = one_file(api, data_bytes=len(as_json(api.view("r0-0-0"))) + 1)
    questions = held_in(small.text)["data"]["runs/0"]["questions"]
    kept = [answer["has_trace"] for each in questions for answer in each["answers"]]
    assert kept == [True] + [False] * small.traces_left_out


def test_a_run_opens_in_a_browser_with_its_report_and_traces(run):
    with served(run) as address:
        status, headers, body = get(address, "/reports/0/report.html")
        assert status == 200 and b"<html" in body
        assert headers["content-security-policy"].startswith("sandbox allow-scripts;")
        for name in ("run.json", "answers.jsonl", "figures/../run.json", "..%2frun.json", "figures/%2e%2e/run.json"):
            assert get(address, f"/reports/0/{name}")[0] == 404
        with chromium() as browser:
            page = browser.new_page()
            page.goto(address)
            page.locator(".questions tbody tr").first.wait_for()
            assert page.locator(".questions tbody tr").count() == 4
            page.get_by_role("searchbox").fill("orchard")
            page.get_by_text("2", exact=True).first.wait_for()
            assert page.locator(".questions tbody tr").count() == 2
            page.get_by_role("link", name=re.compile("^Trace of uniform")).first.click()
            page.locator(".answer .tag").wait_for()
            assert page.locator(".truth-span").count() == 1 and page.locator("article").count() == 1
            page.go_back()
            page.locator(".questions th a").first.click()
            page.locator("article + article").wait_for()


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
        "/data/traces/t1",
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
    for frame_no in (99_999, 10**20):
        status, _, body = get(address, f"/pictures/0/{shown.video_id}/{frame_no}")
        assert status == 404 and "no such frame" in json.loads(body)["error"]


def test_a_search_that_makes_no_sense_is_told(address):
    for query, says in (("text=", "empty"), ("text=a&kind=all", "kind"), ("text=a&from=x", "number")):
        status, _, body = get(address, f"/data/libraries/0/search?{query}")
        assert status == 400 and says in json.loads(body)["error"]


def test_videos_and_failures_come_in_pages_by_words(address, shown, tmp_path):
    many = library_of_titles(tmp_path / "many", 2 * ROWS + 5)
    api = ViewerApi(classify_inputs([many.uri]))
    first, last = (api.videos(0, "", start) for start in (0, 2 * ROWS))
    assert first["count"] == last["count"] == 2 * ROWS + 5
    assert [len(page["rows"]) for page in (first, last)] == [ROWS, 5]
    assert first["rows"][0].title == "film 0000" and last["rows"][-1].title == f"film {2 * ROWS + 4:04}"
    assert [row.title for row in api.videos(0, "FILM 0007", 0)["rows"]] == ["film 0007"]
    for words, count in (("bad.mp4", 1), ("onerror", 1), ("nothing", 0)):
        found = json.loads(get(address, f"/data/libraries/0/failures?words={words}")[2])
        assert found["count"] == len(found["rows"]) == count
    for start in ("-1", "x", "1e400", "nan"):
        assert get(address, f"/data/libraries/0/videos?start={start}")[0] == 400


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


def test_it_listens_on_loopback_unless_told():
    host = inspect.signature(view_command.view).parameters["host"].default
    with listen(host, 0) as listener:
        assert ip_address(listener.getsockname()[0]).is_loopback


def test_only_reading_is_possible(address):
    connection = http.client.HTTPConnection(urlsplit(address).netloc)
    for method in ("POST", "PUT", "DELETE"):
        connection.request(method, "/data/home")
        reply = connection.getresponse()
        reply.read()
        assert reply.status == 405
    connection.close()


def test_one_file_holds_all_and_escapes_it(kinodex, shown, tmp_path):
    out = tmp_path / "trace.html"
    ran = kinodex("view", shown.traces[0], shown.library.uri, "--out", out)
    assert ran.code == 0, ran
    text = out.read_text(encoding="utf-8")
    assert "<img" not in text
    assert text.count("</script>") == text.count("<script") == 3
    held = held_in(text)
    assert EVIL in held["data"]["home"]["traces"][0]["question"]["text"]
    frames = shown_frames(trace_view(read_trace(shown.traces[0])))
    assert len(held["pictures"]) == len(frames) > 5
    assert not re.search(r"(?:src|href)=\"(?!data:|#)", text)


def test_one_file_of_a_library_has_a_frame_of_each_segment_and_all_words(api, shown):
    alone = ViewerApi(classify_inputs([shown.library.uri]))
    held = held_in(one_file(alone).text)
    assert list(held["pictures"]) == [f"0/{shown.video_id}/{frame_no}" for frame_no in (10, 30, 50)]
    video = held["data"][f"libraries/0/videos/{shown.video_id}"]
    assert video["frame_nos"] == [10, 30, 50] and len(video["captions"]) == 3 and len(video["transcript"]) == 1
    few = one_file(alone, picture_bytes=2 * len(picture((200, 30, 30))) + 100)
    assert few.pictures_left_out == 1


def test_a_frame_of_a_library_is_named_by_its_video_as_it_is(address):
    assert get(address, f"/data/libraries/0/videos/{quote(EVIL, safe='')}")[0] in (400, 404)
