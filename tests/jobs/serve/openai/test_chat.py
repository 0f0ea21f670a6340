"""The official client of OpenAI against `kinodex serve`: answers, streams, videos, pictures, follow-ups, refusals."""

from __future__ import annotations

import base64
import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import openai
import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam

from kinodex.index.library import Library
from kinodex.jobs.models import ModelChoice
from kinodex.web.openai_chat import names_of
from tests.support.servers.chat_server import Behaviour, ChatServer
from tests.support.servers.rule_server import MODEL, Rules, RuleServer
from tests.support.servers.serve_server import Client, serving

TENTS = "What appears right after the red tents in the forest?"
OPTIONS = ["a white fish", "a purple dog", "a red star"]
LISTED = f"{TENTS}\nA. a white fish\nB. a purple dog\nC. a red star\nAnswer with the option's letter."
IN_FILM = {"kinodex": {"videos": ["film-01"]}}


@pytest.fixture(scope="module")
def chat(client: Client) -> Iterator[OpenAI]:
    with client_of(client) as opened:
        yield opened


def client_of(served: Client, key: str = "none") -> OpenAI:
    return OpenAI(base_url=f"{served.address}/v1", api_key=key, max_retries=0)


def ask(chat: OpenAI, content: Any, model: str = "library", **more: Any) -> Any:
    own = more.pop("kinodex", None)
    extra = None if own is None else {"kinodex": own}
    is_turns = isinstance(content, list) and "role" in content[0]
    messages: list[ChatCompletionMessageParam] = content if is_turns else [{"role": "user", "content": content}]
    return chat.chat.completions.create(model=model, messages=messages, extra_body=extra, **more)


def facts(client: Client, key: str) -> dict[str, Any]:
    """Facts that the server keeps of a question."""
    rows = client.get("/data/questions?library=0").json["rows"]
    return dict(next(row for row in rows if row["key"] == key))


def test_models_are_listed(chat: OpenAI) -> None:
    names = [each.id for each in chat.models.list()]
    assert names[:2] == ["library", "library:eea"]
    assert chat.models.retrieve("library:vca").owned_by == "kinodex"
    with pytest.raises(openai.NotFoundError) as caught:
        chat.models.retrieve("library:nobody")
    assert caught.value.code == "model_not_found"


def test_a_question_with_options_in_its_text(chat: OpenAI, client: Client) -> None:
    reply = ask(chat, f"video: film-01\n{LISTED}", temperature=0, max_tokens=16)
    (choice,) = reply.choices
    assert (choice.message.role, choice.message.content) == ("assistant", "B. a purple dog")
    assert (choice.finish_reason, reply.object, reply.model) == ("stop", "chat.completion", "library")
    own = reply.kinodex
    assert (own["status"], own["letter"], own["trace"]) == ("answered", "B", f"/#/trace/{own['key']}")
    assert [(each["title"], each["start_s"], each["end_s"]) for each in own["evidence"]] == [
        ("film-01", 21.0, 22.0),
        ("film-01", 24.0, 25.0),
    ]
    assert own["ledger"]["frames"] > 0
    assert reply.id == f"chatcmpl-{own['key']}"
    kept = client.get(f"/data/traces/{own['key']}").json["trace"]
    assert (kept["question"]["text"], kept["question"]["options"]) == (TENTS, OPTIONS), "as `kinodex eval` asks it"
    assert facts(client, own["key"])["videos"] == ["film-01"]


def test_an_open_question_and_fields_of_kinodex(chat: OpenAI, client: Client) -> None:
    own = {"videos": ["film-01"], "agent": "uniform", "settings": {"frames": 8}, "budget": {"frames": 3}, "cite": True}
    reply = ask(chat, "What colour is the bird at sea?", kinodex=own)
    assert reply.kinodex["ledger"]["frames"] == 3, "the budget is below the setting"
    assert facts(client, reply.kinodex["key"])["agent"] == "uniform"
    content = reply.choices[0].message.content
    assert "\n\nSeen in film-01 0:" in content
    given = ask(chat, TENTS, kinodex={"options": OPTIONS, "videos": ["film-01"]})
    assert given.choices[0].message.content == "B. a purple dog"
    plain = ask(chat, LISTED, kinodex={"options": [], "videos": ["film-01"]})
    assert plain.kinodex["letter"] is None, "an empty list: the text is taken as it is"


def test_a_stream_says_each_round_then_the_answer(chat: OpenAI) -> None:
    with ask(chat, LISTED, kinodex=IN_FILM["kinodex"], stream=True, stream_options={"include_usage": True}) as stream:
        chunks = list(stream)
    thoughts = [getattr(each.choices[0].delta, "reasoning_content", None) for each in chunks[:-1]]
    said = [each for each in thoughts if each]
    assert said[0].startswith("At first it ") and said[-1].startswith("It answered after ")
    assert len(said) == len(set(said)) > 2
    assert "".join(each.choices[0].delta.content or "" for each in chunks[:-1]) == "B. a purple dog"
    assert [each.choices[0].finish_reason for each in chunks[:-1]] == [None] * (len(chunks) - 2) + ["stop"]
    assert chunks[-2].kinodex["letter"] == "B"
    assert (chunks[-1].choices, chunks[-1].usage.total_tokens) == ([], 0)
    assert len({each.id for each in chunks}) == 1
    with ask(chat, LISTED, kinodex={**IN_FILM["kinodex"], "reasoning": False}, stream=True) as stream:
        quiet = list(stream)
    assert [each.choices[0].delta.content for each in quiet] == ["", "B. a purple dog", None]


def test_a_follow_up_is_known_by_what_was_said(chat: OpenAI, client: Client) -> None:
    turns: list[dict[str, Any]] = [{"role": "user", "content": "What colour is the bird at sea?"}]
    first = ask(chat, turns, kinodex=IN_FILM["kinodex"])
    turns += [{"role": "assistant", "content": first.choices[0].message.content}]
    turns += [{"role": "user", "content": "And what appears right after the red tents in the forest?"}]
    second = ask(chat, turns)
    row = facts(client, second.kinodex["key"])
    assert (row["after"], row["videos"]) == (first.kinodex["key"], ["film-01"]), "about the same videos"
    by_id = ask(chat, "What colour is it?", kinodex={"after": first.id})
    assert facts(client, by_id.kinodex["key"])["after"] == first.kinodex["key"]


def system(name: str) -> dict[str, Any]:
    return {"role": "system", "content": f"You know films.\nvideo: {name}"}


def sent(name: str) -> list[dict[str, Any]]:
    return [{"type": "video_url", "video_url": {"url": name}}, {"type": "text", "text": SAME}]


SAME = "How many frames are there?"


@pytest.mark.parametrize("how", ["field", "part", "system"])
@pytest.mark.parametrize("stream", [False, True])
def test_clients_who_say_the_same_of_other_videos_are_kept_apart(
    library: Path, tmp_path: Path, how: str, stream: bool
) -> None:
    with (
        ChatServer(lambda body: '{"answer": "Many."}') as server,
        serving([library], tmp_path, ModelChoice("tester", server.base_url), agent="blind") as served,
        client_of(served) as chat,
    ):

        def turn(name: str, turns: list[dict[str, Any]], **own: Any) -> dict[str, Any]:
            content = sent(name) if how == "part" else SAME
            said = [{"role": "user", "content": content}, *turns]
            said = [system(name), *said] if how == "system" else said
            own |= {"videos": [name]} if how == "field" else {}
            reply = ask(chat, said, kinodex=own, stream=stream)
            facts: dict[str, Any] = (list(reply)[-1] if stream else reply).kinodex
            return facts

        films = ("film-01", "film-02", "film-03")
        first = {name: turn(name, []) for name in films}
        follow: list[dict[str, Any]] = [
            {"role": "assistant", "content": "Many."},
            {"role": "user", "content": "And now?"},
        ]
        for name in films:
            row = facts(served, turn(name, follow)["key"])
            assert (row["after"], row["videos"]) == (first[name]["key"], [name])


def test_a_conversation_that_could_be_anothers_is_not_guessed(library: Path, tmp_path: Path) -> None:
    with (
        ChatServer(lambda body: '{"answer": "Many."}') as server,
        serving([library], tmp_path, ModelChoice("tester", server.base_url), agent="blind") as served,
        client_of(served) as chat,
    ):
        one, other = (ask(chat, SAME, kinodex={"videos": [name]}).kinodex["key"] for name in ("film-01", "film-02"))
        turns = [
            {"role": "user", "content": SAME},
            {"role": "assistant", "content": "Many."},
            {"role": "user", "content": "And now?"},
        ]
        with pytest.raises(openai.BadRequestError, match=f"kinodex.after={one} or {other}") as caught:
            ask(chat, turns)
        assert caught.value.code == "ambiguous_conversation"
        second = ask(chat, turns, kinodex={"after": other}).kinodex["key"]
        assert facts(served, second)["videos"] == ["film-02"]
        third = ask(chat, turns, kinodex={"videos": ["film-03"]}).kinodex["key"]
        assert (facts(served, third)["after"], facts(served, third)["videos"]) == (None, ["film-03"])
        again = ask(chat, SAME, kinodex={"videos": ["film-01"]}).kinodex["key"]
        fourth = ask(chat, turns, kinodex={"videos": ["film-01"]}).kinodex["key"]
        assert facts(served, fourth)["after"] == again, "of equal ones the latest"


def test_a_conversation_of_another_server_keeps_its_video(chat: OpenAI, client: Client) -> None:
    for said in ("video: film-02\nWho is there?", [*sent("film-02")]):
        turns = [
            {"role": "user", "content": said},
            {"role": "assistant", "content": "Nobody that I know."},
            {"role": "user", "content": "What is shown?"},
        ]
        row = facts(client, ask(chat, turns).kinodex["key"])
        assert (row["after"], row["videos"]) == (None, ["film-02"])


def test_turns_of_another_server_are_told(chat: OpenAI, client: Client) -> None:
    turns = [
        {"role": "user", "content": "Where are the tents?"},
        {"role": "assistant", "content": "In the forest."},
        {"role": "user", "content": "What colour are the tents?"},
    ]
    reply = ask(chat, turns, kinodex=IN_FILM["kinodex"])
    asked = client.get(f"/data/traces/{reply.kinodex['key']}").json["trace"]["question"]
    assert asked["earlier"] == [{"question": "Where are the tents?", "answer": "In the forest."}]
    assert facts(client, reply.kinodex["key"])["after"] is None


def test_a_picture_becomes_a_search(chat: OpenAI, client: Client, library: Path) -> None:
    opened = Library.open(str(library))
    film = opened.video("film-02")
    (frame,) = opened.frames_at(film.video_id, [14.0])
    url = f"data:image/jpeg;base64,{base64.b64encode(frame.jpeg).decode()}"
    content = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": url}}]
    reply = ask(chat, content)
    best = reply.kinodex["pictures"][0]
    assert (best["title"], best["time_s"]) == ("film-02", 14.0)
    asked = client.get(f"/data/traces/{reply.kinodex['key']}").json["trace"]["question"]["text"]
    assert asked.startswith("What is this?\nWith the question came a picture; it is most like these moments: 'film-02'")
    assert facts(client, reply.kinodex["key"])["videos"] == [
        opened.video(each).title for each in dict.fromkeys(each["video_id"] for each in reply.kinodex["pictures"])
    ]


@pytest.mark.parametrize(
    "name", ["film-02.mp4", "file:///somewhere/else/film-02.mp4", "/another/film-02.mp4", "film-02"]
)
def test_a_video_of_a_part_by_its_name(chat: OpenAI, client: Client, name: str) -> None:
    content = [{"type": "video_url", "video_url": {"url": name}}, {"type": "text", "text": "What is shown?"}]
    reply = ask(chat, content)
    assert facts(client, reply.kinodex["key"])["videos"] == ["film-02"]


def test_names_of_a_path() -> None:
    assert names_of("file:///a/b%20c.mp4") == ["file:///a/b%20c.mp4", "/a/b c.mp4", "b c.mp4"]
    assert names_of("http://host/film.mp4") == ["http://host/film.mp4"], "it would look as if that had been fetched"


@pytest.mark.parametrize(
    ("content", "more", "code", "says"),
    [
        ("Who?", {"model": "gpt-4o"}, "model_not_found", "the model 'gpt-4o' does not exist; the models are library"),
        ("", {}, None, "the question is empty"),
        ("Who?", {"n": 2}, None, "leave n out"),
        ("Who?", {"kinodex": {"agnet": "vca"}}, None, "kinodex.agnet: Extra inputs are not permitted"),
        ("Who?", {"kinodex": {"agent": "/tmp/own.py"}}, None, "there is no agent '/tmp/own.py'"),
        ("Who?", {"kinodex": {"agent": "videoseek"}}, None, "needs a language model"),
        ("Who?", {"kinodex": {"options": ["one"]}}, None, "2 to 26"),
        ("Who?", {"kinodex": {"budget": {"frames": 0}}}, None, "above 0, or leave it out"),
        (
            "Who?",
            {"kinodex": {"videos": ["film-09"]}},
            "video_not_found",
            "'film-09', which this library does not hold",
        ),
        ("Who?", {"kinodex": {"after": "../q1"}}, None, "give the id of an earlier completion"),
        ("Who?", {"kinodex": {"after": "q999999"}}, "not_found", "not the key of a question"),
        ([{"type": "image_url", "image_url": {"url": "http://127.0.0.1/x"}}], {}, "invalid_image_url", "not fetched"),
        ([{"type": "video_url", "video_url": {"url": "http://x/y.mp4"}}], {}, "video_not_found", "nothing is fetched"),
    ],
)
def test_refusals_have_openais_form(
    chat: OpenAI, content: Any, more: dict[str, Any], code: str | None, says: str
) -> None:
    with pytest.raises(openai.APIStatusError) as caught:
        ask(chat, content, **more)
    assert caught.value.status_code == (404 if code in ("model_not_found", "not_found") else 400)
    assert (caught.value.code, caught.value.type) == (code, "invalid_request_error")
    assert says in caught.value.message


def test_what_is_not_there_and_what_is_no_json(client: Client) -> None:
    for path in ("/v1/embeddings", "/v1/completions", "/v1/chat/completions/q1"):
        reply = client.post(path, {})
        assert (reply.status, reply.json["error"]["code"]) == (404, "unknown_url")
    reply = client.send("POST", "/v1/chat/completions", b"{", {"content-type": "application/json"})
    assert (reply.status, reply.json["error"]["type"]) == (400, "invalid_request_error")


def test_a_token_is_the_key(library: Path, tmp_path: Path) -> None:
    token = "a-token-of-some-length"
    with serving([library], tmp_path, token=token) as served:
        with client_of(served, "wrong") as wrong:
            with pytest.raises(openai.AuthenticationError) as caught:
                wrong.models.list()
            assert caught.value.code == "invalid_api_key"
        with client_of(served, token) as right:
            assert next(iter(right.models.list())).id == "library"


def test_a_model_that_fails_and_a_server_that_is_busy(library: Path, tmp_path: Path) -> None:
    held, reached = threading.Event(), threading.Event()

    def slow(body: dict[str, Any]) -> Behaviour:
        reached.set()
        held.wait(60)
        return Behaviour(status=401, body={"error": {"message": "no such key"}})

    with ChatServer(slow) as server:
        choice = ModelChoice("tester", server.base_url, cache=False)
        with serving([library], tmp_path, choice, at_once=1) as served, client_of(served) as chat:
            raised: list[openai.APIStatusError] = []

            def first() -> None:
                with pytest.raises(openai.APIStatusError) as caught:
                    ask(chat, "Who?")
                raised.append(caught.value)

            thread = threading.Thread(target=first)
            thread.start()
            assert reached.wait(60)
            with pytest.raises(openai.RateLimitError) as busy:
                ask(chat, "Who?")
            assert busy.value.code == "rate_limit_exceeded"
            assert int(busy.value.response.headers["retry-after"]) > 0
            held.set()
            thread.join()
            assert (raised[0].status_code, raised[0].code) == (502, "model_unusable")
            with pytest.raises(openai.APIError, match="no such key"):
                list(ask(chat, "Who?", stream=True))


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_stops_its_question(library: Path, tmp_path: Path, stream: bool) -> None:
    held, reached = threading.Event(), threading.Event()

    def never(body: dict[str, Any]) -> str:
        reached.set()
        held.wait(60)
        return "{}"

    with ChatServer(never) as server, serving([library], tmp_path, ModelChoice("tester", server.base_url)) as served:
        connection = http.client.HTTPConnection(urlsplit(served.address).netloc)
        body = {"model": "library", "stream": stream, "messages": [{"role": "user", "content": "Who?"}]}
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
        assert reached.wait(60)
        (running,) = served.questions.running
        connection.sock.close()
        connection.close()
        assert served.wait(running.key)["status"] == "budget_exhausted"
        assert running.answer is not None and running.answer.reason == "stopped"
        held.set()


def test_a_language_model_behind_it(library: Path, tmp_path: Path) -> None:
    with (
        RuleServer(Rules()) as server,
        serving([library], tmp_path, ModelChoice(MODEL, server.base_url)) as served,
        client_of(served) as chat,
    ):
        assert "library:videoseek" in [each.id for each in chat.models.list()]
        reply = ask(chat, LISTED, kinodex=IN_FILM["kinodex"])
    ledger = reply.kinodex["ledger"]
    assert reply.usage.prompt_tokens == ledger["input_tokens"] + ledger["estimated_tokens"] > 0
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens


def test_equal_options_of_a_benchmark_are_asked_all_the_same(chat: OpenAI, client: Client) -> None:
    reply = ask(chat, f"{TENTS}\nA. a purple dog\nB. a purple dog\nC. a red star", kinodex=IN_FILM["kinodex"])
    asked = client.get(f"/data/traces/{reply.kinodex['key']}").json["trace"]["question"]
    assert asked["options"] == ["a purple dog (option A)", "a purple dog (option B)", "a red star"]
