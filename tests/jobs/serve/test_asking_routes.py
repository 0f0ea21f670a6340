"""Questions over HTTP: begun, followed by events, stopped, followed up, listed, kept, and refused with a reason."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.trace import read_trace
from kinodex.jobs.models import ModelChoice
from tests.support.libraries.viewer_library import EVIL
from tests.support.servers.chat_server import Behaviour, ChatServer, Reply, hanging
from tests.support.servers.rule_server import MODEL, Rules, RuleServer
from tests.support.servers.serve_server import JSON, Client, serving

BIRD = "What colour is the bird at sea?"
COLOURS = ["red", "black", "white"]
ASK = "/data/libraries/0/questions"


def test_a_question_is_answered_and_its_trace_grows(client: Client) -> None:
    key = client.ask(BIRD, options=COLOURS)
    events = list(client.events(key))
    assert [event.number for event in events] == sorted(event.number for event in events)
    assert events[-1].kind == "state" and events[-1].data == {"state": "done", "error": None}
    last = [event for event in events if event.kind == "progress"][-1].data
    assert last["calls"] > 0 and last["frames"] > 0 and last["round"] > 0 and last["sentence"]
    trace = client.get(f"/data/traces/{key}").json
    assert trace["library"] == 0 and trace["trace"]["answer"]["text"] == "black"
    row = client.wait(key)
    assert (row["state"], row["text"], row["letter"], row["status"]) == ("done", "black", "B", "answered")
    assert (row["question"], row["agent"], row["library"], row["videos"]) == (BIRD, "eea", 0, [])


def test_home_says_what_can_be_asked(client: Client) -> None:
    serve = client.get("/data/home").json["serve"]
    assert serve["can_ask"] and serve["is_drawn_world"] and serve["models"] == {"default": "builtin"}
    assert serve["libraries"] == [{"key": 0, "can_ask": True, "how": None, "is_drawn_world": True}]
    names = [each["name"] for each in serve["agents"]]
    assert names[0] == serve["agent"] == "eea" and "videoseek" not in names, "it needs language"


def test_some_videos_another_agent_and_its_settings(client: Client) -> None:
    key = client.ask(BIRD, videos=["film-01"], agent="uniform", settings={"frames": 3}, budget={"seconds": 100})
    row = client.wait(key)
    assert (row["agent"], row["videos"]) == ("uniform", ["film-01"])
    trace = client.get(f"/data/traces/{key}").json["trace"]
    assert trace["answer"]["ledger"]["frames"] == 3
    assert trace["budget"] == {"rounds": 1, "frames": None, "tokens": None, "seconds": 100.0, "cost": None}


def test_a_follow_up_sees_what_the_question_before_saw(client: Client) -> None:
    first = client.ask(BIRD, videos=["film-01"])
    client.wait(first)
    second = client.ask("What colour is the bird at sea, again?", after=first)
    row = client.wait(second)
    assert (row["after"], row["text"], row["videos"]) == (first, "black", ["film-01"])
    question = client.get(f"/data/traces/{second}").json["trace"]["question"]
    assert question["earlier"] == [{"question": BIRD, "answer": "black"}]


@pytest.mark.parametrize(
    ("change", "status", "says"),
    [
        ({"question": ""}, 400, "empty"),
        ({"question": "x" * 30_000}, 400, "at most 20000"),
        ({"options": ["one"]}, 400, "2 to 26"),
        ({"agent": "eaa"}, 400, "did you mean 'eea'"),
        ({"agent": "evil.py"}, 400, "no agent 'evil.py'"),
        ({"agent": "os:system"}, 400, "no agent 'os:system'"),
        ({"agent": "videoseek"}, 400, "needs a language model"),
        ({"settings": {"framez": 3}}, 400, "did you mean 'frames'"),
        ({"settings": {"frames": "many"}}, 400, "frames='many'"),
        ({"budget": {"frames": 0}}, 400, "above 0"),
        ({"budget": {"money": 1}}, 400, "budget.money"),
        ({"videos": ["../../etc/passwd"]}, 404, "etc/passwd"),
        ({"after": "q99999"}, 404, "q99999"),
        ({"after": "../q1"}, 404, "not the key of a question"),
        ({"model": "gpt-4o"}, 400, "model"),
        ({"question": 3}, 400, "question"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused_with_the_reason(
    client: Client, change: dict[str, Any], status: int, says: str
) -> None:
    reply = client.post(ASK, {"question": BIRD} | change)
    assert reply.status == status and says in reply.json["error"], reply.body


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"question": "\\ud800"}', b"\xff", b"[" * 100_000])
def test_a_body_that_is_no_question_is_refused(client: Client, body: bytes) -> None:
    reply = client.send("POST", ASK, body, JSON)
    assert reply.status == 400 and reply.json["error"]


def test_a_library_or_question_that_is_not_there(client: Client) -> None:
    assert client.post("/data/libraries/7/questions", {"question": BIRD}).status == 404
    assert client.get("/data/questions?library=7").status == 404
    assert client.get("/data/questions?library=x").status == 400
    for path in ("/data/questions/q99999/events", "/data/traces/q99999", "/data/questions/..%2fq1/events"):
        assert client.get(path).status == 404
    assert client.post("/data/questions/q99999/stop").status == 404


def test_hostile_words_stay_words(client: Client) -> None:
    key = client.ask(f"What colour is it? {EVIL}", options=[f"red {EVIL}", "blue\nevent: state\ndata: {}"])
    for event in client.events(key):
        assert event.kind in ("progress", "state")
    row = client.wait(key)
    assert EVIL in row["question"]
    for path in (f"/data/traces/{key}", "/data/questions?library=0"):
        reply = client.get(path)
        assert reply.headers["content-type"] == "application/json"
        assert reply.headers["x-content-type-options"] == "nosniff"


def test_a_trace_is_a_file_that_view_reads(client: Client) -> None:
    key = client.ask(BIRD)
    client.wait(key)
    path = client.questions.kept.path(0, key)
    records = read_trace(path)
    assert [records[0]["event"], records[-1]["event"]] == ["RunStarted", "Finished"]
    held = client.get(f"/data/traces/{key}").json["trace"]
    assert held["question"]["text"] == records[0]["question"]["text"]


class Hanging:
    """A server of models that replies by rules until it is asked for a decision, and then never."""

    def __init__(self, rules: Reply) -> None:
        self._rules = rules
        self.hangs = threading.Event()

    def __call__(self, body: dict[str, Any]) -> Any:
        if '"Decision"' in json.dumps(body.get("response_format", {})):
            self.hangs.set()
            return hanging(600)
        return self._rules(body)


@pytest.fixture(scope="module")
def models() -> Iterator[ChatServer]:
    with RuleServer(Rules()) as server:
        yield server


@pytest.fixture
def stuck(library: Path, tmp_path: Path, models: ChatServer) -> Iterator[tuple[Client, Hanging]]:
    """A server whose model hangs at the first decision; at most two questions at once."""
    reply = Hanging(models.reply)
    with ChatServer(reply, models=[MODEL]) as server:
        choice = ModelChoice(MODEL, server.base_url, cache=False)
        with serving([library], tmp_path / "traces", choice, at_once=2) as client:
            yield client, reply


def test_a_question_that_hangs_is_stopped(stuck: tuple[Client, Hanging]) -> None:
    client, reply = stuck
    key = client.ask(BIRD, options=COLOURS)
    assert reply.hangs.wait(60)
    live = client.get(f"/data/traces/{key}").json["trace"]
    assert live["answer"] is None and live["steps"]
    assert client.get("/data/questions?library=0").json["rows"][0]["state"] == "running"
    for _ in range(2):  # the second cuts the last request, which hangs as well
        assert client.post(f"/data/questions/{key}/stop").status == 202
    row = client.wait(key)
    assert (row["state"], row["status"]) == ("done", "budget_exhausted")
    assert client.get(f"/data/traces/{key}").json["trace"]["answer"]["reason"] == "stopped"
    assert client.post(f"/data/questions/{key}/stop").status == 202, "one that has ended stays as it is"


def test_a_reader_comes_back_and_gets_only_what_is_new(stuck: tuple[Client, Hanging]) -> None:
    client, reply = stuck
    key = client.ask(BIRD)
    assert reply.hangs.wait(60)
    events = client.events(key)
    before = next(event for event in events if event.kind == "progress")
    events.close()
    for _ in range(2):
        client.post(f"/data/questions/{key}/stop")
    after = list(client.events(key, {"last-event-id": str(before.number)}))
    assert all(event.number > before.number for event in after) and after[-1].data["state"] == "done"


def test_more_questions_than_allowed_have_to_wait(stuck: tuple[Client, Hanging]) -> None:
    client, _ = stuck
    keys = [client.ask(BIRD), client.ask(BIRD)]
    refused = client.post(ASK, {"question": BIRD})
    assert refused.status == 429 and int(refused.headers["retry-after"]) > 0
    assert "2 questions are under way" in refused.json["error"]
    follow = client.post(ASK, {"question": BIRD, "after": keys[0]})
    assert follow.status == 400 and "not answered yet" in follow.json["error"]
    for _ in range(2):
        client.post(f"/data/questions/{keys[0]}/stop")
    client.wait(keys[0])
    assert client.post(ASK, {"question": BIRD}).status == 201


def test_a_client_that_goes_away_ends_nothing(stuck: tuple[Client, Hanging]) -> None:
    client, reply = stuck
    key = client.ask(BIRD)
    connection = client.connect()
    connection.request("GET", f"/data/questions/{key}/events")
    assert connection.getresponse().readline()
    connection.close()
    assert reply.hangs.wait(60)
    assert client.get("/data/questions?library=0").json["rows"][0]["state"] == "running"


def test_questions_over_the_wire_of_a_language_model(library: Path, tmp_path: Path, models: ChatServer) -> None:
    choice = ModelChoice(MODEL, models.base_url, cache=False)
    with serving([library], tmp_path, choice) as client:
        keys = [client.ask(BIRD, options=COLOURS), client.ask(BIRD, options=COLOURS, agent="videoseek")]
        assert [client.wait(key)["letter"] for key in keys] == ["B", "B"]


def test_a_model_that_fails_is_said_and_holds_no_key(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-abcdefghijklmnopqrstuvwx")
    body = {"error": {"message": "Incorrect API key provided: sk-abcdefghijklmnopqrstuvwx."}}
    with ChatServer(lambda _: Behaviour(status=401, body=body), models=["tester"]) as models:
        choice = ModelChoice("tester", models.base_url, cache=False)
        with serving([library], tmp_path, choice) as client:
            key = client.ask(BIRD)
            events = list(client.events(key))
            row = client.wait(key)
            texts = [str(events), client.get("/data/questions?library=0").body.decode()]
            texts += [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert events[-1].data["state"] == row["state"] == "failed" and "API key" in row["error"]
    assert not any("sk-abcdefghij" in text for text in texts)
