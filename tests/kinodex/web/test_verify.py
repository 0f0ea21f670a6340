"""The server's model looks at moments of a search: over HTTP within the limits of questions, and on the page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kinodex.jobs.models import ModelChoice
from tests.support.pages import OpenPage, browser_context, pages
from tests.support.servers.chat_server import ChatServer
from tests.support.servers.looking_server import looking_server
from tests.support.servers.serve_server import Client, serving

VERIFY = "/data/libraries/0/verify"


@pytest.fixture
def looking(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Client, ChatServer]]:
    monkeypatch.setenv("KINODEX_CACHE", str(tmp_path / "cache"))
    place = shutil.copytree(library, tmp_path / "library")
    with looking_server(lambda number, line: number == 1) as server:
        choice = ModelChoice("tester", server.base_url, input_price=1000.0)
        with serving([place], tmp_path / "traces", choice, usd_a_day=0.5) as client:
            yield client, server


def test_verdicts_over_http_are_paid_from_the_money_of_the_day(looking: tuple[Client, ChatServer]) -> None:
    client, _ = looking
    assert client.get("/data/home").json["serve"]["looks"] == "tester"
    found = client.get("/data/libraries/0/search?text=a+boat&in=pictures").json
    (first, second, *_) = found["groups"][0]["hits"]
    video_id = found["groups"][0]["video_id"]
    moments = [{"video_id": video_id, "start_s": each["start_s"], "end_s": each["end_s"]} for each in (first, second)]
    said = client.post(VERIFY, {"text": "a boat", "moments": moments}).json
    assert (said["basis"], [each["present"] for each in said["moments"]]) == ("verified", [True, False])
    assert said["claim"] == "present: a model saw it in 1 of the 2 moments it looked at"
    assert (said["calls"], said["invalid"], said["cost"] > 0) == (1, 0, True)
    again = client.post(VERIFY, {"text": "a boat", "moments": moments}).json
    assert (again["moments"], again["calls"], again["cost"]) == (said["moments"], 0, 0)
    for body, status, says in (
        ({"text": "a boat", "moments": []}, 400, "moments"),
        ({"text": " ", "moments": moments}, 400, "give a text"),
        ({"text": "a boat", "moments": [moments[0] | {"end_s": 1e6}]}, 400, "no moment of"),
        ({"text": "a boat", "moments": [moments[0] | {"video_id": "nowhere"}]}, 404, "nowhere"),
    ):
        reply = client.post(VERIFY, body)
        assert (reply.status, says in reply.json["error"]) == (status, True), reply.json
    assert client.send("POST", VERIFY, b"{}", {"content-type": "text/plain"}).status == 415
    refused = [client.post(VERIFY, {"text": f"boat {n}", "moments": moments}).status for n in range(3)]
    assert refused[-1] == 429, "the money of the day is spent"


@pytest.mark.slow
def test_the_page_offers_it_only_with_a_model_that_sees(looking: tuple[Client, ChatServer], client: Client) -> None:
    assert client.get("/data/home").json["serve"]["looks"] is None, "the built-in model does not see"
    with browser_context() as context, pages(context) as open_page:
        check_page(open_page, looking[0].address, client.address)


def check_page(open_page: OpenPage, with_model: str, without: str) -> None:
    page = open_page(f"{with_model}#/library/0/search/text%3Da%2Bboat%26in%3Dpictures")
    page.get_by_role("button", name="Have tester look at the first 5").click()
    page.get_by_text("present: a model saw it in 1 of the 5 moments it looked at").wait_for()
    assert page.locator(".judged.yes").inner_text() == "yesa boat is in the picture (1)"
    assert page.locator(".judged.no").count() == 4 and page.locator(".look").count() == 0
    page.goto(f"{with_model}#/library/0/moments/text%3Da%2Bred%2Bboat")
    page.get_by_role("button", name="Have tester look at the first").click()
    page.locator(".judged.yes").wait_for()
    assert page.locator(".weaker .judged.no").count() >= 1, "what the model denied stands apart"
    page = open_page(f"{without}#/library/0/search/text%3Da%2Bboat")
    page.locator(".hit").first.wait_for()
    assert page.locator(".look").count() == 0
