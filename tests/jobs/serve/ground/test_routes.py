"""Moments by an agent: a question of the server, whose evidence they are; and on the page."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.libraries.viewer_library import chromium
from tests.support.pages import WAIT_MS, pages
from tests.support.servers.serve_server import Client

PLACE = "/data/libraries/0/moments"
BIRD = "a bird at sea"


def start(client: Client, **body: Any) -> str:
    reply = client.post(PLACE, {"text": BIRD} | body)
    assert reply.status == 201, reply.body
    key: str = reply.json["key"]
    return key


def test_the_evidence_of_an_agent_are_the_moments(client: Client) -> None:
    key = start(client, videos=["film-01"], budget={"rounds": 2})
    row = client.wait(key)
    assert row["question"] == f"When do we see the following: {BIRD}?"
    answer = client.get(f"/data/traces/{key}").json["trace"]["answer"]
    found = client.get(f"/data/questions/{key}/moments").json
    assert (found["text"], found["by"], found["question"]) == (BIRD, "eea", key)
    assert (found["evidence"], found["least_evidence"], found["least_score"]) == (None, None, None)
    shown = [*found["ranges"], *found["weaker"]]
    assert [(each["start_s"], each["end_s"]) for each in shown] == [
        (each["start_s"], each["end_s"]) for each in answer["evidence"]
    ]
    assert found["present"] == bool(found["ranges"])
    assert all(isinstance(each["begin_frame"], int) and each["found_in"] == "evidence" for each in shown)


def test_search_alone_is_the_same_place_by_get(client: Client) -> None:
    found = client.get(f"{PLACE}?text=a+bird&video=film-01").json
    assert found["by"] == "search"
    assert found["ranges"] or found["reason"]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"text": " "}, "empty"),
        ({"text": "a", "options": ["b"]}, "options"),
        ({"text": "a", "agent": "nobody"}, "nobody"),
        ({"text": "a" * 2001}, "at most 2000"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(client: Client, body: dict[str, Any], says: str) -> None:
    reply = client.post(PLACE, body)
    assert reply.status == 400
    assert says in reply.json["error"]


def test_a_question_without_an_answer_has_no_moments(client: Client) -> None:
    assert client.get("/data/questions/q999999/moments").status == 404


def test_any_question_has_the_ranges_of_its_evidence(client: Client) -> None:
    key = client.ask("What colour is the bird?", options=["black", "blue"], videos=["film-01"], budget={"rounds": 2})
    client.wait(key)
    found = client.get(f"/data/questions/{key}/moments").json
    assert found["text"] == "What colour is the bird?"


@pytest.mark.needs_chromium
def test_an_agent_is_chosen_on_the_page_and_a_reload_finds_its_moments(client: Client) -> None:
    with chromium() as browser:
        context = browser.new_context()
        context.set_default_timeout(WAIT_MS)
        with pages(context) as open_page:
            page = open_page(f"{client.address}/#/library/0/moments")
            page.get_by_label("What happens").fill(BIRD)
            page.get_by_label("who looks").select_option("eea")
            assert page.get_by_label("look at").is_disabled()
            page.get_by_text("may cost money").wait_for()
            page.get_by_label("What happens").press("Enter")
            page.get_by_role("link", name="The answer of the agent").wait_for()
            said = page.locator(".moments-status").inner_text()
            assert "question%3Dq" in page.url
            page.reload()
            page.get_by_role("link", name="The answer of the agent").wait_for()
            assert page.locator(".moments-status").inner_text() == said
