"""Serve: pages, searches, questions and the OpenAI endpoint of a real server over HTTP, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.acceptance import CAPTION, CAPTIONS, FACTS, FRAMES, IN_HTTP, TENTS
from tests.acceptance.conftest import running
from tests.support.command import Kinodex, bad

pytestmark = pytest.mark.slow  # starts a server
SEARCH, QUESTIONS, MOMENTS = (f"data/libraries/0/{name}" for name in ("search", "questions", "moments"))


@pytest.fixture(scope="module")
def client(shown: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    state = tmp_path_factory.mktemp("state")
    with (
        running("serve", shown, "--port", 0, "--no-browser", state=state) as address,
        httpx2.Client(base_url=address, timeout=60) as client,
    ):
        yield client


def test_the_page_and_its_parts_are_served(client: httpx2.Client) -> None:
    page = client.get("/")
    assert page.status_code == 200 and page.headers["content-type"].startswith("text/html")
    assert "default-src" in page.headers["content-security-policy"]
    missing = client.get("/data/nothing")
    assert (missing.status_code, list(missing.json())) == (404, ["error"])


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.film)
def test_a_search_finds_the_moment(client: httpx2.Client, fact) -> None:
    found = client.get(SEARCH, params={"query": fact.words, IN_HTTP: FRAMES, "k": "1"}).json()
    (group,) = found["groups"]
    assert group["title"] == fact.film and fact.covers(group["hits"][0]["start_s"])


def test_moments_captions_and_what_a_search_refuses(client: httpx2.Client) -> None:
    best = client.get(MOMENTS, params={"text": TENTS.words}).json()["ranges"][0]
    assert best["title"] == TENTS.film and TENTS.covers(best["start_s"])
    found = client.get(SEARCH, params={"query": "walrus", IN_HTTP: CAPTIONS}).json()
    assert [group["title"] for group in found["groups"]][:1] == [CAPTION[1]]
    assert found["groups"][0]["hits"][0]["text"] == CAPTION[0]
    for wrong, says in (
        ({"query": "a", IN_HTTP: "smells"}, "smells"),
        ({"query": "a", "k": "0"}, "k"),
        ({"query": "x" * 3000}, "at most 2,000"),
        ({"query": "a", "zap": "1"}, "zap"),
    ):
        refused = client.get(SEARCH, params=wrong)
        assert refused.status_code == 400 and says in refused.json()["error"]


def test_a_question_is_answered_with_its_events_and_kept(client: httpx2.Client) -> None:
    asked = {"question": TENTS.question, "options": TENTS.options, "videos": [TENTS.film]}
    begun = client.post(QUESTIONS, json=asked)
    assert begun.status_code == 201
    key = begun.json()["key"]
    events = client.get(f"data/questions/{key}/events").text
    assert 'data: {"state":"done"' in events
    row = next(row for row in client.get("data/questions?library=0").json()["rows"] if row["key"] == key)
    assert (row["state"], row["status"], row["letter"], row["text"]) == ("done", "answered", TENTS.letter, "red")
    assert client.get(f"data/traces/{key}").status_code == 200


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"question": " "}, "question is empty"),
        ({"question": "What?", "options": ["one"]}, "1 option"),
        ({"question": "What?", "agent": "kinoo"}, "kinoo"),
        ({"question": "What?", "agent": "/etc/passwd.py"}, "/etc/passwd.py"),
        ({"question": "What?", "videos": ["nobody"]}, "nobody"),
        ({"question": "What?", "zap": 1}, "zap"),
        ({"question": "What?", "budget": {"frames": 0}}, "frames"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused_in_one_line(client: httpx2.Client, asked, says: str) -> None:
    refused = client.post(QUESTIONS, json=asked)
    assert refused.status_code in (400, 404) and says in refused.json()["error"]
    assert "\n" not in refused.json()["error"]


def test_openais_chat_completions_answer_with_evidence(client: httpx2.Client) -> None:
    models = [each["id"] for each in client.get("v1/models").json()["data"]]
    options = "\n".join(f"{letter}. {option}" for letter, option in zip("ABCD", TENTS.options, strict=True))
    content = f"video: {TENTS.film}\n{TENTS.question}\n{options}"
    body = {"model": models[0], "messages": [{"role": "user", "content": content}]}
    reply = client.post("v1/chat/completions", json=body).json()
    assert reply["choices"][0]["message"]["content"] == "C. red"
    assert all(TENTS.covers(each["start_s"]) for each in reply["kinodex"]["evidence"])
    refused = client.post("v1/chat/completions", json=body | {"model": "nobody"})
    assert refused.status_code == 404 and "nobody" in refused.json()["error"]["message"]


def test_an_export_is_a_download(client: httpx2.Client) -> None:
    group = client.get(SEARCH, params={"query": TENTS.words, IN_HTTP: FRAMES, "k": "1"}).json()["groups"][0]
    table = client.get("data/libraries/0/export/csv", params={"video": group["video_id"], "ranges": "18-20"})
    assert table.status_code == 200 and f"{TENTS.film}," in table.text and ",18.0,20.0," in table.text


def test_other_names_and_other_sites_are_refused(client: httpx2.Client) -> None:
    assert client.get("data/questions", headers={"host": "evil.example"}).status_code == 400
    evil = {"origin": "http://evil.example"}
    assert client.post(QUESTIONS, json={"question": "What?"}, headers=evil).status_code == 403


def test_what_serve_refuses(kinodex: Kinodex, shown: Path, tmp_path: Path) -> None:
    for arguments, says in (
        ((tmp_path,), "which is no"),
        ((shown, "--host", "0.0.0.0"), "KINODEX_SERVE_TOKEN"),
        ((shown, "--token", "short"), "16 or more"),
        ((shown, "--agent", "kinoo"), "did you mean 'kino'"),
    ):
        bad(kinodex, "serve", *arguments, code=2, says=says)
