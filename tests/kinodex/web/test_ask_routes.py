"""Questions over HTTP: begun, followed by events, stopped, followed up, listed, kept, and refused with a reason."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import pytest

from kinodex.agent.traces.trace import read_trace
from kinodex.jobs.models import ModelChoice
from tests.support.libraries.viewer_library import EVIL
from tests.support.servers.chat_server import Behaviour, ChatServer
from tests.support.servers.gate import Gate
from tests.support.servers.rule_server import MODEL, Rules
from tests.support.servers.serve_server import JSON, Client, serving

BIRD = "What colour is the bird at sea?"
COLOURS = ["red", "black", "white"]
ASK, MOMENTS = "/data/libraries/0/questions", "/data/libraries/0/moments"


def test_a_question_is_answered_and_its_trace_grows(client):
    key = client.ask(BIRD, options=COLOURS)
    stream = client.get(f"/data/questions/{key}/events")
    assert stream.headers["content-type"].startswith("text/event-stream")
    assert (stream.headers["x-accel-buffering"], stream.headers["cache-control"]) == ("no", "no-store")
    assert stream.headers["content-security-policy"].startswith("default-src 'none'")
    key = client.ask(BIRD, options=COLOURS)
    events = list(client.events(key))
    assert [event.number for event in events] == sorted(event.number for event in events)
    assert events[-1].kind == "state" and events[-1].data == {"state": "done", "error": None}
    last = [event for event in events if event.kind == "progress"][-1].data
    assert last["calls"] > 0 and last["frames"] > 0 and last["round"] > 0 and last["sentence"] and not last["looking"]
    trace = client.get(f"/data/traces/{key}").json
    assert trace["library"] == 0 and trace["trace"]["answer"]["text"] == "black"
    row = client.wait(key)
    assert (row["state"], row["text"], row["letter"], row["status"]) == ("done", "black", "B", "answered")
    assert (row["question"], row["agent"], row["library"], row["videos"]) == (BIRD, "eea", 0, [])
    records = read_trace(client.questions.kept.path(0, key))
    assert [records[0]["event"], records[-1]["event"]] == ["RunStarted", "Finished"], "an ordinary trace"
    assert trace["trace"]["question"]["text"] == records[0]["question"]["text"]


def test_one_who_had_the_end_is_not_sent_it_again_and_one_who_broke_off_is(client):
    """An EventSource comes back for ever where a stream just ends; 204 is how to say no (HTML, section 9.2.3)."""
    key = client.ask(BIRD)
    before, *_, end = client.events(key)
    assert before.number < end.number
    for number in (before.number, end.number - 1):
        assert list(client.events(key, {"last-event-id": str(number)})) == [end]
    assert client.get(f"/data/questions/{key}/events", {"last-event-id": str(end.number)}).status == 204
    for number in ("x", "-1", "9" * 30):
        (only,) = client.events(key, {"last-event-id": number})
        assert (only.kind, only.data) == ("state", {"state": "done", "error": None}), number


def test_home_says_what_can_be_asked_and_how_a_language_model_is_given(client, library):
    serve = client.get("/data/home").json["serve"]
    assert not serve["has_language"] and serve["models"] == {"default": "similarity"}
    (offered,) = serve["libraries"]
    assert [each["name"] for each in offered["ways"]][1] == "A provider"
    assert all(shlex.quote(str(library)) in each["command"] for each in offered["ways"])
    names = [each["name"] for each in serve["agents"]]
    assert names[0] == serve["agent"] == "eea" and "videoseek" not in names, "it needs language"


def test_videos_agents_settings_and_follow_ups(client):
    key = client.ask(BIRD, videos=["film-01"], agent="uniform", settings={"frames": 3}, budget={"seconds": 100})
    row = client.wait(key)
    assert (row["agent"], row["videos"]) == ("uniform", ["film-01"])
    trace = client.get(f"/data/traces/{key}").json["trace"]
    assert trace["answer"]["ledger"]["frames"] == 3
    assert trace["budget"] == {"rounds": 1, "frames": None, "tokens": None, "seconds": 100.0, "cost": None}
    first = client.ask(BIRD, options=COLOURS, videos=["film-01"])
    client.wait(first)
    second = client.ask("What colour is the bird at sea, again?", options=COLOURS, follow_up=first)
    row = client.wait(second)
    assert (row["follow_up"], row["text"], row["videos"]) == (first, "black", ["film-01"])
    question = client.get(f"/data/traces/{second}").json["trace"]["question"]
    assert question["earlier"] == [{"question": BIRD, "answer": "black"}]


def test_what_makes_no_sense_is_refused_with_the_reason(client):
    for change, status, says in (
        ({"question": ""}, 400, "empty"),
        ({"question": "x" * 30_000}, 400, "at most 20,000"),
        ({"question": 3}, 400, "question"),
        ({"options": ["one"]}, 400, "2 to 26"),
        ({"agent": "eaa"}, 400, "did you mean 'eea'"),
        ({"agent": "evil.py"}, 400, "no agent 'evil.py'"),
        ({"agent": "videoseek"}, 400, "needs a language model"),
        ({"settings": {"framez": 3}}, 400, "did you mean 'frames'"),
        ({"settings": {"frames": "many"}}, 400, "frames='many'"),
        ({"budget": {"frames": 0}}, 400, "above 0"),
        ({"budget": {"money": 1}}, 400, "budget.money"),
        ({"videos": ["../../etc/passwd"]}, 404, "etc/passwd"),
        ({"follow_up": "q99999"}, 404, "q99999"),
        ({"follow_up": "../q1"}, 404, "not the key of a question"),
        ({"model": "gpt-4o"}, 400, "model"),
    ):
        reply = client.post(ASK, {"question": BIRD} | change)
        assert reply.status == status and says in reply.json["error"], (change, reply.body)
    for body, says in (
        ({"text": " "}, "empty"),
        ({"text": "a", "options": ["b"]}, "options"),
        ({"text": "a", "agent": "nobody"}, "nobody"),
        ({"text": "a" * 2001}, "at most 2,000"),
    ):
        reply = client.post(MOMENTS, body)
        assert reply.status == 400 and says in reply.json["error"], body
    for raw in (b"", b"[]", b"{", b'{"question": "\\ud800"}', b"\xff", b"[" * 100_000):
        reply = client.send("POST", ASK, raw, JSON)
        assert reply.status == 400 and reply.json["error"], raw[:20]
    assert client.post("/data/libraries/7/questions", {"question": BIRD}).status == 404
    assert client.post("/data/questions/q99999/stop").status == 404
    for path, status in (
        ("/data/questions?library=7", 404),
        ("/data/questions?library=x", 400),
        ("/data/questions/q99999/events", 404),
        ("/data/questions/q99999/moments", 404),
        ("/data/traces/q99999", 404),
        ("/data/questions/..%2fq1/events", 404),
    ):
        assert client.get(path).status == status, path


def test_hostile_words_stay_words(client):
    key = client.ask(f"What colour is it? {EVIL}", options=[f"red {EVIL}", "blue\nevent: state\ndata: {}"])
    assert {event.kind for event in client.events(key)} == {"progress", "state"}
    reply = client.get(f"/data/traces/{key}")
    assert reply.headers["content-type"] == "application/json" and EVIL in reply.json["trace"]["question"]["text"]


def test_the_evidence_of_an_agent_are_its_moments(client):
    reply = client.post(MOMENTS, {"text": "a bird at sea", "videos": ["film-01"], "budget": {"rounds": 2}})
    assert reply.status == 201, reply.body
    key = reply.json["key"]
    assert client.wait(key)["question"] == "When do we see the following: a bird at sea?"
    answer = client.get(f"/data/traces/{key}").json["trace"]["answer"]
    found = client.get(f"/data/questions/{key}/moments").json
    assert (found["text"], found["by"], found["question"]) == ("a bird at sea", "eea", key)
    assert (found["evidence"], found["basis"]) == (None, "ranking" if found["present"] is None else "verified")
    shown = [*found["ranges"], *found["weaker"]]
    cited = [(each["start_s"], each["end_s"]) for each in answer["evidence"]]
    assert [(each["start_s"], each["end_s"]) for each in shown] == cited
    assert bool(found["present"]) == bool(found["ranges"])
    assert all(isinstance(each["begin_frame"], int) and each["found_in"] == "evidence" for each in shown)
    alone = client.get(f"{MOMENTS}?text=a+bird&videos=film-01").json
    assert alone["by"] == "search" and (alone["ranges"] or alone["reason"]), "the same place, by GET"
    key = client.ask("What colour is the bird?", options=["black", "blue"], videos=["film-01"], budget={"rounds": 2})
    client.wait(key)
    assert client.get(f"/data/questions/{key}/moments").json["text"] == "What colour is the bird?"


@pytest.fixture
def stuck(library, tmp_path) -> Iterator[tuple[Client, Gate]]:
    """A server whose model hangs at the first decision; at most two questions at once."""
    gate = Gate(Rules())
    with ChatServer(gate, models=[MODEL]) as server:
        choice = ModelChoice(MODEL, server.base_url, cache=False)
        with serving([library], tmp_path / "traces", choice, at_once=2) as client:
            yield client, gate
            gate.open.set()


@pytest.mark.slow
def test_a_question_that_hangs_is_followed_and_stopped(stuck):
    client, gate = stuck
    key = client.ask(BIRD, options=COLOURS)
    connection = client.connect()  # a client that goes away ends nothing
    connection.request("GET", f"/data/questions/{key}/events")
    assert connection.getresponse().readline()
    connection.close()
    assert gate.reached.wait(60)
    live = client.get(f"/data/traces/{key}").json["trace"]
    assert live["answer"] is None and live["steps"]
    assert client.get("/data/questions?library=0").json["rows"][0]["state"] == "running"
    events = client.events(key)
    before = next(event for event in events if event.kind == "progress")
    events.close()
    frames = {(each["video_id"], each["frame_no"]) for each in live["steps"][-1]["shown"]}
    looking = {(each["video_id"], each["frame_no"]) for each in before.data["looking"]}
    assert looking and looking <= frames, "what the call under way shows, before it is answered"
    (first, *_) = live["steps"][-1]["said"]
    assert live["steps"][-1]["opened"] and 0 <= first["score"] <= 100 and first["start_s"] < first["end_s"]
    for _ in range(2):  # the second cuts the last request, which hangs as well
        assert client.post(f"/data/questions/{key}/stop").status == 202
    after = list(client.events(key, {"last-event-id": str(before.number)}))
    assert all(event.number > before.number for event in after) and after[-1].data["state"] == "done"
    row = client.wait(key)
    assert (row["state"], row["status"]) == ("done", "budget_exhausted")
    assert client.get(f"/data/traces/{key}").json["trace"]["answer"]["reason"] == "stopped"
    assert client.post(f"/data/questions/{key}/stop").status == 202, "one that has ended stays as it is"


def test_more_questions_than_allowed_have_to_wait(stuck):
    client, _ = stuck
    keys = [client.ask(BIRD), client.ask(BIRD)]
    refused = client.post(ASK, {"question": BIRD})
    assert refused.status == 429 and int(refused.headers["retry-after"]) > 0
    assert "2 questions are under way" in refused.json["error"]
    follow = client.post(ASK, {"question": BIRD, "follow_up": keys[0]})
    assert follow.status == 400 and "not answered yet" in follow.json["error"]
    assert client.get(f"/data/questions/{keys[0]}/moments").status == 400
    for _ in range(2):
        client.post(f"/data/questions/{keys[0]}/stop")
    client.wait(keys[0])
    assert client.post(ASK, {"question": BIRD}).status == 201


def test_a_model_that_fails_is_said_and_holds_no_key(library, tmp_path, monkeypatch):
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
    assert all(events[-1].data[name] == row[name] != "" for name in ("error", "tried", "remedy"))
    assert not any("sk-abcdefghij" in text for text in texts)
