"""The official client of OpenAI against `kinodex serve`: answers, streams, videos, pictures, follow-ups, refusals."""

from __future__ import annotations

import asyncio
import base64
import http.client
import io
import json
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import openai
import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import Response as OpenAIResponse
from openai.types.responses import ResponseStreamEvent
from PIL import Image
from pydantic import TypeAdapter
from starlette.responses import Response

from kinodex.agent.answer import Answer, Status
from kinodex.agent.catalogue import variant_named
from kinodex.agent.errors import BadQuestion, ModelUnreachable
from kinodex.agent.evidence import Evidence
from kinodex.agent.limits.ledger import Ledger
from kinodex.agent.protocol.question import Earlier
from kinodex.index.errors import StorageError, UnknownVideo
from kinodex.index.library import Library
from kinodex.jobs.models import ModelChoice
from kinodex.requests import Ask
from kinodex.server.responses import NotGiven
from kinodex.web.failures import QuestionFault
from kinodex.web.openai.chat_completions import ChatBody, Completion
from kinodex.web.openai.errors import RequestRefused, answering, error_body
from kinodex.web.openai.messages import CHARACTERS, EARLIER, Conversation
from kinodex.web.openai.models import chat_models, find_model, library_names
from kinodex.web.openai.option_texts import read_options
from kinodex.web.openai.own_fields import OwnFields
from kinodex.web.openai.picture_search import (
    MOMENTS,
    MOST_PICTURES,
    PICTURES,
    VIDEOS,
    Moment,
    PictureSearch,
    in_words,
    read_picture,
    spread,
)
from kinodex.web.openai.question import Asked, names_of
from kinodex.web.openai.request import Reply, pieces
from kinodex.web.openai.responses import ResponseBody, ResponseReply
from kinodex.web.openai.video_lines import take_videos
from kinodex.web.openai.written_answer import usage, write
from kinodex.web.questions import MoneySpent, TooManyQuestions
from kinodex.web.running import Running
from tests.support.servers.chat_server import ChatServer, failing
from tests.support.servers.gate import Gate
from tests.support.servers.serve_server import Client, serving

BIRD = "What colour is the bird at sea?"
OPTIONS = ["red", "black", "white"]
LISTED = f"{BIRD}\nA. red\nB. black\nC. white\nAnswer with the option's letter."
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


def test_models_are_listed(chat):
    names = [each.id for each in chat.models.list()]
    assert names[:2] == ["library", "library:eea"]
    assert chat.models.retrieve("library:vca").owned_by == "kinodex"
    with pytest.raises(openai.NotFoundError) as caught:
        chat.models.retrieve("library:nobody")
    assert caught.value.code == "model_not_found"


def test_a_question_with_options_in_its_text(chat, client):
    reply = ask(chat, f"video: film-01\n{LISTED}", temperature=0, max_tokens=16)
    (choice,) = reply.choices
    assert (choice.message.role, choice.message.content) == ("assistant", "B. black")
    assert (choice.finish_reason, reply.object, reply.model) == ("stop", "chat.completion", "library")
    own = reply.kinodex
    assert (own["status"], own["letter"], own["trace"]) == ("answered", "B", f"/#/trace/{own['key']}")
    assert [(each["title"], each["start_s"], each["end_s"]) for each in own["evidence"]] == [("film-01", 15.0, 16.0)]
    assert own["ledger"]["frames"] > 0
    assert reply.id == f"chatcmpl-{own['key']}"
    kept = client.get(f"/data/traces/{own['key']}").json["trace"]
    assert (kept["question"]["text"], kept["question"]["options"]) == (BIRD, OPTIONS), "as `kinodex eval` asks it"
    assert facts(client, own["key"])["videos"] == ["film-01"]


def test_an_open_question_and_fields_of_kinodex(chat, client):
    own = {"videos": ["film-01"], "agent": "uniform", "settings": {"frames": 8}, "budget": {"frames": 3}}
    reply = ask(chat, "What colour is the bird at sea?", kinodex=own)
    assert reply.kinodex["ledger"]["frames"] == 3, "the budget is below the setting"
    assert facts(client, reply.kinodex["key"])["agent"] == "uniform"
    content = reply.choices[0].message.content
    assert "\n\nSeen in film-01 0:" in content
    given = ask(chat, BIRD, kinodex={"options": OPTIONS, "videos": ["film-01"]})
    assert given.choices[0].message.content == "B. black"
    plain = ask(chat, LISTED, kinodex={"options": [], "videos": ["film-01"]})
    assert plain.kinodex["letter"] is None, "an empty list: the text is taken as it is"


def test_a_stream_says_each_round_then_the_answer(chat):
    with ask(chat, LISTED, kinodex=IN_FILM["kinodex"], stream=True, stream_options={"include_usage": True}) as stream:
        chunks = list(stream)
    thoughts = [getattr(each.choices[0].delta, "reasoning_content", None) for each in chunks[:-1]]
    said = [each for each in thoughts if each]
    assert said[0].startswith("At first it ") and said[-1].startswith("It answered after ")
    assert len(said) == len(set(said)) > 2
    assert "".join(each.choices[0].delta.content or "" for each in chunks[:-1]) == "B. black"
    cited: Any = [getattr(each.choices[0].delta, "annotations", None) for each in chunks[:-1]][-2]
    assert [each["url_citation"]["title"] for each in cited] == ["film-01 0:15.0 to 0:16.0"]
    assert [each.choices[0].finish_reason for each in chunks[:-1]] == [None] * (len(chunks) - 2) + ["stop"]
    assert chunks[-2].kinodex["letter"] == "B"
    assert (chunks[-1].choices, chunks[-1].usage.total_tokens) == ([], 0)
    assert len({each.id for each in chunks}) == 1
    with ask(chat, LISTED, kinodex={**IN_FILM["kinodex"], "reasoning": False}, stream=True) as stream:
        quiet = list(stream)
    assert [each.choices[0].delta.content for each in quiet] == ["", "B. black", None]


STREAM_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
MESSAGE_EVENTS = [
    *("output_item.added", "content_part.added", "output_text.delta", "output_text.annotation.added"),
    *("output_text.done", "content_part.done", "output_item.done"),
]
SUMMARY = [f"reasoning_summary_{each}" for each in ("part.added", "text.delta", "text.done", "part.done")]


@pytest.mark.slow
def test_responses_whole_as_events_and_followed(chat, client):
    def respond(said: Any, **more: Any) -> Any:
        return chat.responses.create(model="library", input=said, **more)

    film = {"kinodex": IN_FILM["kinodex"]}
    whole = respond(LISTED, extra_body=film, tools=[TOOL], metadata={"a": "b"}, store=False)
    OpenAIResponse.model_validate(whole.model_dump(), strict=True, extra="allow")
    assert (whole.output_text, whole.status, whole.id) == (
        "B. black",
        "completed",
        f"resp_{whole.kinodex['key']}",
    )
    assert whole.metadata == {"a": "b"}
    thought, message = whole.output
    assert thought.summary[0].text.startswith("At first it ")
    (part,) = message.content
    assert [(each.type, each.title) for each in part.annotations] == [("url_citation", "film-01 0:15.0 to 0:16.0")]
    events = list(respond([{"role": "user", "content": LISTED}], extra_body=film, stream=True))
    for number, each in enumerate(events):
        STREAM_EVENT.validate_python(each.model_dump(), strict=True)
        assert each.sequence_number == number
    kinds = [each.type.removeprefix("response.") for each in events]
    rounds = len(events[-1].response.output[0].summary)
    assert kinds == [
        *("created", "in_progress", "output_item.added", *SUMMARY * rounds, "output_item.done"),
        *(*MESSAGE_EVENTS, "completed"),
    ]
    assert events[-1].response.output_text == "B. black"
    with chat.responses.stream(model="library", input=LISTED, extra_body=film) as stream:
        assert stream.get_final_response().output_text == "B. black", "the client's own helper follows it"
    second = respond("And what is the colour of the bird at sea?", previous_response_id=whole.id)
    row = facts(client, second.kinodex["key"])
    assert (row["follow_up"], row["videos"]) == (whole.kinodex["key"], ["film-01"])
    assert "Seen in film-01 " in second.output_text
    turns = [{"role": "user", "content": LISTED}, *(each.model_dump() for each in whole.output)]
    third = respond([*turns, {"role": "user", "content": "And then?"}], instructions="Be short.")
    assert facts(client, third.kinodex["key"])["follow_up"] is not None, "known by what was said"
    plain = respond(LISTED, extra_body={"kinodex": {**IN_FILM["kinodex"], "reasoning": False}})
    assert [each.type for each in plain.output] == ["message"]
    for said, more, param in (([], {}, "input"), ("Who?", {"previous_response_id": "../q1"}, "kinodex.follow_up")):
        with pytest.raises(openai.BadRequestError) as caught:
            respond(said, **more)
        assert caught.value.param == param


def system(name: str) -> dict[str, Any]:
    return {"role": "system", "content": f"You know films.\nvideo: {name}"}


def sent(name: str) -> list[dict[str, Any]]:
    """A part as a kit sends it: the path of its own copy."""
    place = f"file:///somewhere/else/{name}.mp4"
    return [{"type": "video_url", "video_url": {"url": place}}, {"type": "text", "text": SAME}]


SAME, OTHER = "How many frames are there?", "How many films are there?"


@pytest.mark.slow
def test_clients_who_say_the_same_of_other_videos_are_kept_apart_or_have_to_name_theirs(library, tmp_path):
    with (
        ChatServer(lambda body: '{"answer": "Many."}') as server,
        serving([library], tmp_path, ModelChoice("tester", server.base_url), agent="blind") as served,
        client_of(served) as chat,
    ):

        def turn(how: str, stream: bool, name: str, turns: list[dict[str, Any]]) -> dict[str, Any]:
            said = [{"role": "user", "content": sent(name) if how == "part" else SAME}, *turns]
            said = [system(name), *said] if how == "system" else said
            reply = ask(chat, said, kinodex={"videos": [name]} if how == "field" else {}, stream=stream)
            facts: dict[str, Any] = (list(reply)[-1] if stream else reply).kinodex
            return facts

        assert "library:videoseek" in [each.id for each in chat.models.list()], "there is a language model"
        films = ("film-01", "film-02", "film-03")
        follow = [{"role": "assistant", "content": "Many."}, {"role": "user", "content": "And now?"}]
        for how, stream in (("field", False), ("field", True), ("part", False), ("part", True), ("system", False)):
            first = {name: turn(how, stream, name, []) for name in films}
            for name in films:
                row = facts(served, turn(how, stream, name, follow)["key"])
                assert (row["follow_up"], row["videos"]) == (first[name]["key"], [name]), (how, stream)
        again = [{"role": "user", "content": OTHER}, *follow]
        one, other = (ask(chat, OTHER, kinodex={"videos": [name]}).kinodex["key"] for name in films[:2])
        with pytest.raises(openai.BadRequestError, match=f"kinodex.follow_up={one} or {other}") as caught:
            ask(chat, again)
        assert caught.value.code == "ambiguous_conversation", "it is not guessed"
        second = ask(chat, again, kinodex={"follow_up": f"chatcmpl-{other}"}).kinodex["key"]
        assert facts(served, second)["videos"] == ["film-02"]
        third = facts(served, ask(chat, again, kinodex={"videos": ["film-03"]}).kinodex["key"])
        assert (third["follow_up"], third["videos"]) == (None, ["film-03"])
        latest = ask(chat, OTHER, kinodex={"videos": ["film-01"]}).kinodex["key"]
        fourth = ask(chat, again, kinodex={"videos": ["film-01"]}).kinodex["key"]
        assert facts(served, fourth)["follow_up"] == latest, "of equal ones the latest"


def test_a_conversation_of_another_server_keeps_its_video(chat, client):
    for said in ("video: film-02\nWho is there?", [*sent("film-02")]):
        turns = [
            {"role": "user", "content": said},
            {"role": "assistant", "content": "Nobody that I know."},
            {"role": "user", "content": "What is shown?"},
        ]
        row = facts(client, ask(chat, turns).kinodex["key"])
        assert (row["follow_up"], row["videos"]) == (None, ["film-02"])
    reply = ask(chat, turns, kinodex=IN_FILM["kinodex"])
    asked = client.get(f"/data/traces/{reply.kinodex['key']}").json["trace"]["question"]
    assert [each["answer"] for each in asked["earlier"]] == ["Nobody that I know."], "turns are told"


def test_a_picture_becomes_a_search(chat, client, library):
    opened = Library.open(str(library))
    (frame,) = opened.frames_at(opened.video("film-02").video_id, [14.0])
    parts = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": as_url(frame.jpeg)}}]
    own = ask(chat, parts).kinodex
    assert (own["pictures"][0]["title"], own["pictures"][0]["time_s"]) == ("film-02", 14.0)
    asked = client.get(f"/data/traces/{own['key']}").json["trace"]["question"]["text"]
    assert asked.startswith("What is this?\nWith the question came a picture; it is most like these moments: 'film-02'")
    assert facts(client, own["key"])["videos"] == list(dict.fromkeys(each["title"] for each in own["pictures"]))


def test_refusals_have_openais_form(chat, client):
    for sent_content, more, code, says in (
        ("Who?", {"model": "gpt-4o"}, "model_not_found", "'gpt-4o' does not exist; the models are library"),
        ("", {}, None, "the question is empty"),
        ("Who?", {"n": 2}, None, "n: got 2; a question has one answer, so leave it out"),
        ("Who?", {"kinodex": {"agnet": "vca"}}, None, "kinodex: got agnet, which is not taken here"),
        ("Who?", {"kinodex": {"agent": "/tmp/own.py"}}, None, "there is no agent '/tmp/own.py'"),
        ("Who?", {"kinodex": {"videos": ["film-09"]}}, "video_not_found", "which this library does not hold"),
        ("Who?", {"kinodex": {"follow_up": "../q1"}}, None, "give the id of an earlier completion"),
        ("Who?", {"kinodex": {"follow_up": "q999999"}}, "not_found", "not the key of a question"),
        ([{"type": "image_url", "image_url": {"url": "http://127.0.0.1/x"}}], {}, "invalid_image_url", "not fetched"),
        ([{"type": "video_url", "video_url": {"url": "http://x/y.mp4"}}], {}, "video_not_found", "nothing is fetched"),
    ):
        with pytest.raises(openai.APIStatusError) as caught:
            ask(chat, sent_content, **more)
        assert caught.value.status_code == (404 if code in ("model_not_found", "not_found") else 400), says
        assert (caught.value.code, caught.value.type) == (code, "invalid_request_error"), says
        assert says in caught.value.message
    for path in ("/v1/embeddings", "/v1/completions", "/v1/chat/completions/q1"):
        reply = client.post(path, {})
        assert (reply.status, reply.json["error"]["code"]) == (404, "unknown_url"), path
    reply = client.send("POST", "/v1/chat/completions", b"{", {"content-type": "application/json"})
    assert (reply.status, reply.json["error"]["type"]) == (400, "invalid_request_error")


def test_a_model_that_fails(library, tmp_path):
    with (
        ChatServer(lambda body: failing(401, "no such key")) as server,
        serving([library], tmp_path, ModelChoice("tester", server.base_url, cache=False)) as served,
        client_of(served) as chat,
    ):
        with pytest.raises(openai.APIStatusError) as caught:
            ask(chat, "Who?")
        assert (caught.value.status_code, caught.value.code) == (502, "model_unusable")
        with pytest.raises(openai.APIError, match="no such key"):
            list(ask(chat, "Who?", stream=True))


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_stops_its_question(library, tmp_path, stream):
    gate = Gate()
    with ChatServer(gate) as server, serving([library], tmp_path, ModelChoice("tester", server.base_url)) as served:
        connection = http.client.HTTPConnection(urlsplit(served.address).netloc)
        body = {"model": "library", "stream": stream, "messages": [{"role": "user", "content": "Who?"}]}
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
        assert gate.reached.wait(60)
        (running,) = served.questions.running
        connection.sock.close()
        connection.close()
        assert served.wait(running.key)["status"] == "budget_exhausted"
        assert running.answer is not None and running.answer.reason == "stopped"
        gate.open.set()


# What a request may hold, and the question that is found in it.


def read(*messages: tuple[str, Any]) -> Conversation:
    turns = [{"role": role, "content": content} for role, content in messages]
    return ChatBody.model_validate({"model": "m", "messages": turns}).conversation()


LEAST = {"model": "m", "messages": [{"role": "user", "content": "Who?"}]}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "a", "schema": {}}}
BOTH: list[dict[str, Any]] = [
    *({"temperature": 0}, {"top_p": 1}, {"seed": 1}, {"stop": ["\n"]}, {"logit_bias": {}}, {"user": "me"}),
    *({"metadata": {"a": "b"}}, {"store": True}, {"service_tier": "auto"}, {"max_tokens": 1}, {"top_logprobs": 0}),
    *({"safety_identifier": "me"}, {"prompt_cache_key": "x"}, {"parallel_tool_calls": True}, {"verbosity": "low"}),
    *({"tools": [TOOL]}, {"tools": [TOOL], "tool_choice": "auto"}, {"tools": [TOOL], "tool_choice": "none"}),
    {"tools": [TOOL], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [TOOL]}},
]
CHAT_ALONE: list[dict[str, Any]] = [
    *({"n": 1}, {"n": None}, {"logprobs": False}, {"response_format": {"type": "text"}}, {"modalities": ["text"]}),
    *({"presence_penalty": 1}, {"media_io_kwargs": {"video": {}}}, {"functions": [{"name": "f"}]}),
    *({"reasoning_effort": "low"}, {"prediction": {"type": "content", "content": ""}}, {"function_call": "auto"}),
]
RESPONSES_ALONE: list[dict[str, Any]] = [
    *({"text": {"format": {"type": "text"}}}, {"background": False}, {"truncation": "auto"}, {"max_output_tokens": 9}),
    *({"reasoning": {"effort": "low", "summary": "auto"}}, {"include": ["reasoning.encrypted_content"]}),
]
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"tool_choice": "required", "tools": [TOOL]}, "tool_choice"),
    ({"tool_choice": {"type": "function", "function": {"name": "f"}}, "tools": [TOOL]}, "tool_choice"),
    ({"top_logprobs": 2}, "top_logprobs"),
]
REFUSED_IN_CHAT: list[tuple[dict[str, Any], str]] = [
    *(({"n": 2}, "n"), ({"logprobs": True}, "logprobs"), ({"modalities": ["text", "audio"]}, "modalities")),
    *(({"response_format": each}, "response_format") for each in ({"type": "json_object"}, SCHEMA)),
    ({"function_call": {"name": "f"}, "functions": [{"name": "f"}]}, "function_call"),
]
REFUSED_IN_RESPONSES: list[tuple[dict[str, Any], str]] = [
    *(({"background": True}, "background"), ({"conversation": "conv_1"}, "conversation")),
    *(({"prompt": {"id": "p"}}, "prompt"), ({"include": ["message.output_text.logprobs"]}, "include")),
    ({"text": {"format": {"type": "json_schema", "name": "a", "schema": {}}}}, "text.format"),
]


def test_what_means_nothing_here_is_taken_and_what_the_reply_could_not_hold_is_refused(client):
    for more in (*BOTH, *CHAT_ALONE):
        assert ChatBody.model_validate({**LEAST, **more}).kinodex == OwnFields(), more
    for more in (*BOTH, *RESPONSES_ALONE):
        assert ResponseBody.model_validate({"model": "m", "input": "Who?", **more}).kinodex == OwnFields(), more
    chat = {**LEAST, "model": "library"}
    responses = {"model": "library", "input": "Who?"}
    for path, least, cases in (
        ("chat/completions", chat, [*REFUSED, *REFUSED_IN_CHAT]),
        ("responses", responses, [*REFUSED, *REFUSED_IN_RESPONSES]),
    ):
        for more, param in cases:
            reply = client.post(f"/v1/{path}", {**least, **more})
            assert reply.status == 400, more
            error = reply.json["error"]
            assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", param, None)
            assert error["message"].startswith(f"{param}: got ") and error["message"].endswith("so leave it out")


def test_the_last_turn_of_the_user_is_the_question():
    found = read(
        ("system", "You are a helpful assistant."),
        ("user", "Who comes in?"),
        ("assistant", "A man."),
        (
            "user",
            [{"type": "image_url", "image_url": {"url": "data:,"}}, {"type": "video_url", "video_url": "walk.mp4"}],
        ),
        ("user", [{"type": "text", "text": "Is this he?"}]),
    )
    assert (found.question, found.videos, found.pictures) == ("Is this he?", ("walk.mp4",), ("data:,",))
    assert (found.instructions, found.earlier) == (
        "You are a helpful assistant.",
        (Earlier("Who comes in?", "A man."),),
    )
    turns = [each for n in range(20) for each in (("user", f"q{n}"), ("assistant", f"a{n}"))]
    earlier = read(*turns, ("user", "last?")).earlier
    assert len(earlier) == EARLIER and earlier[-1] == Earlier("q19", "a19"), "only the last turns are told"
    for part in (
        {"type": "video_url", "video_url": {"url": "walk"}},
        {"type": "video_url", "video_url": "walk"},
        {"type": "input_video", "input_video": "walk"},
        {"type": "input_video", "input_video": {"data": "walk"}},
        {"type": "video", "video": "walk"},
        {"type": "file", "file": {"filename": "walk", "file_data": "data:video/mp4;base64,AA=="}},
        {"type": "file", "file": {"file_id": "walk"}},
        {"type": "input_file", "filename": "walk"},
    ):
        assert read(("user", [{"type": "text", "text": "Who?"}, part])).videos == ("walk",), part
    assert names_of("file:///a/b%20c.mp4") == ["file:///a/b%20c.mp4", "/a/b c.mp4", "b c.mp4"]
    assert names_of("http://host/film.mp4") == ["http://host/film.mp4"], "it would look as if that had been fetched"


def test_messages_that_cannot_be_understood_are_refused():
    for messages, says in (
        ([("assistant", "Hello.")], "the last message has to be the user's"),
        ([("system", "Hello.")], "the last message has to be the user's"),
        ([("user", "x"), ("tool", "42")], "the last message has to be the user's"),
        ([("user", [{"type": "input_audio", "input_audio": {}}])], "'input_audio'; parts are text"),
        ([("user", [{"type": "text"}])], "without a text"),
        ([("user", [{"type": "image_url", "image_url": {}}])], "without an address"),
        ([("user", "x" * (CHARACTERS + 1))], "more than 200,000 characters"),
    ):
        with pytest.raises(RequestRefused, match=says):
            read(*messages)


KITE, COLOURS = "What colour is the kite?", ("red", "light blue")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
WRITTEN: list[tuple[str, str, tuple[str, ...]]] = [
    *(
        (text, KITE, COLOURS)
        for text in (
            "What colour is the kite?\nA. red\nB. light blue",
            "What colour is the kite?\n(A) red\n(B) light blue\n"
            "Answer with the option's letter from the given choices directly.",
            "Question: What colour is the kite?\nOptions:\nA) red\nB) light blue\n\nAnswer:",
            "Question: What colour is the kite?\nOptions:\nA. red\nB. light blue\n"
            "Please select the correct answer from the options above. \n",
            "Select the best answer to the following multiple-choice question based on the video. Respond with only "
            "the letter (A, B, C, or D) of the correct option.\nWhat colour is the kite?\nA. red\nB. light blue\n"
            "The best answer is:",
            "What colour is the kite?\n  A: red\n  B: light\nblue\nAnswer the question with A or B.",
            "What colour is the kite? (A) red (B) light blue",
            "What colour is the kite?\r\nA. red\r\nB. light blue\r\n",
        )
    ),
    *(
        (text, text, ())
        for text in (
            KITE,
            "What does the sign say?\nA. Miller",
            "Who is (A) in the picture?",
            "B. is written on the door, what stands on the wall?\nC. or D.",
            "I. What comes first?\nA.\nB.",
            "Who says this?\nA: Hello.\nB: Hi.\nA: Are you well?",
            "Who says this?\nA: Hello.\nB: Hi.\nA: Well?\nB: Yes.",
        )
    ),
    *(
        (f"Does it rain?\nA. yes\nB. no\n{order}", f"Does it rain?\n{order}", ("yes", "no"))
        for order in ("Explain why.", "Please explain your choice", "Then describe the scene.")
    ),
    ("Which one?\nA. one\nB. two\nD. four", "Which one?\nD. four", ("one", "two")),
    ("Which one?\nA. one\nB. two\n\nThe man wears a hat.", "Which one?\nThe man wears a hat.", ("one", "two")),
    ("Choose the option that comes first.\nA. one\nB. two", "Choose the option that comes first.", ("one", "two")),
    ("Which?\nA. He sits.\nB. He runs.\nHe is in the yard.", "Which?\nHe is in the yard.", ("He sits.", "He runs.")),
    ("Which?\n" + "\n".join(f"{each}. the {each}" for each in LETTERS), "Which?", tuple(f"the {x}" for x in LETTERS)),
]


def test_options_are_read_as_kits_write_them():
    for text, question, options in WRITTEN:
        written = read_options(text)
        assert (written.text, written.options) == (question, options), text


def test_lines_that_name_known_videos_are_taken():
    known = {"a walk", "sea, by night", "x.mp4"}.__contains__
    assert take_videos("video: a walk\nWho comes?", known) == ("Who comes?", ("a walk",))
    assert take_videos("Who comes?\nVideos: x.mp4, 'a walk'", known) == ("Who comes?", ("x.mp4", "a walk"))
    assert take_videos("Video: sea, by night\nWho?", known) == ("Who?", ("sea, by night",))
    for text in ("video: the second one\nWho comes?", "videos: a walk, another", "In which video: a walk or x.mp4?"):
        assert take_videos(text, known) == (text, ())


def test_names_of_models_are_unique_and_an_unknown_one_is_refused():
    uris = ["/home/me/films/", "films", "s3://bucket/films?versionId=3", "a:b", "/", "films-2"]
    assert library_names(uris) == ("films", "films-2", "films-3", "a-b", "library", "films-2-2")
    models = chat_models(["films"], variant_named("vca"), has_language=False)
    names = [each.name for each in models]
    assert names[:3] == ["films", "films:vca", "films:eea"] and len(set(names)) == len(names)
    assert "films:videoseek" not in names, "it needs language"
    assert not {"films:random", "films:blind"} & {*names}, "they are controls: they see nothing of the videos"
    assert "films:videoseek" in [
        each.name for each in chat_models(["films"], variant_named("blind"), has_language=True)
    ]
    assert (find_model(models, "films").agent, find_model(models, "films:eea").agent) == (None, "eea")
    with pytest.raises(RequestRefused) as caught:
        find_model(models, "gpt-4o")
    status, body = error_body(caught.value)
    assert (status, body["error"]["code"], body["error"]["param"]) == (404, "model_not_found", "model")
    assert "films, films:vca" in body["error"]["message"]


# Pictures of a request: only what is in the request itself is read, and it is found again in the library.


def as_url(encoded: bytes, kind: str = "jpeg") -> str:
    return f"data:image/{kind};base64,{base64.b64encode(encoded).decode()}"


def png(width: int = 4, height: int = 2, mode: str = "RGB") -> bytes:
    written = io.BytesIO()
    Image.new(mode, (width, height), (1, 2, 3) if mode == "RGB" else 0).save(written, "PNG")
    return written.getvalue()


def test_a_picture_in_the_request_is_decoded_and_no_address_is_fetched():
    picture = read_picture(as_url(png(), "png"))
    assert picture.shape == (2, 4, 3) and picture[0, 0].tolist() == [1, 2, 3]
    for url, says in (
        *((f"{place}/x.png", "addresses are not fetched") for place in ("http://127.0.0.1:1", "https://example.com")),
        ("file:///etc/passwd", "addresses are not fetched"),
        ("/etc/passwd", "addresses are not fetched"),
        ("data:text/html;base64,AA==", "addresses are not fetched"),
        ("HTTP://169.254.169.254/latest/meta-data", "addresses are not fetched"),
        (as_url(b"no picture"), "cannot read the picture"),
        ("data:image/png;base64,%%%", "cannot read the picture"),
        (as_url(png(8000, 8000, "1")), "8000 x 8000 pixels; give one of at most"),
    ):
        with pytest.raises(RequestRefused, match=says) as caught:
            read_picture(url)
        assert caught.value.code == ("invalid_image_url" if "fetched" in says else "invalid_image"), url[:40]
        assert "0x" not in str(caught.value), "the address of an object"
    urls = [str(number) for number in range(64)]
    chosen = spread(urls)
    assert (len(chosen), chosen[0], chosen[-1]) == (PICTURES, "0", "63")
    assert spread(urls[:3]) == urls[:3]
    with pytest.raises(RequestRefused, match="at most 256"):
        spread(["x"] * (MOST_PICTURES + 1))


def test_stored_frames_are_found_where_they_are(library):
    opened = Library.open(str(library))
    rows = opened.videos()
    frames = [opened.frames_at(row.video_id, [14.0])[0] for row in rows[:2]]
    search = PictureSearch([str(library)], None)
    urls = [as_url(frame.jpeg) for frame in frames]

    async def both() -> tuple[list[Moment], list[Moment], list[Moment]]:
        whole = await search.moments(0, urls, [])
        part = await search.moments(0, urls[:1], [rows[1].video_id])
        return whole, part, await search.moments(0, [], [])

    whole, part, none = asyncio.run(both())
    assert {(each.video_id, each.time_s) for each in whole[:2]} == {(each.video_id, each.time_s) for each in frames}
    assert all(each.score > 0.98 for each in whole[:2])
    assert len(whole) <= MOMENTS and len({each.video_id for each in whole}) <= VIDEOS
    assert {each.video_id for each in part} == {rows[1].video_id} and none == []
    moments = [Moment("a", "walk", 31.5, 0.9), Moment("b", "sea", 3723.0, 0.5)]
    assert in_words(moments, 1) == (
        "With the question came a picture; it is most like these moments: 'walk' at 0:31; 'sea' at 1:02:03."
    )
    assert in_words(moments[:1], 3).startswith("With the question came 3 pictures; they are most like")


def test_pictures_of_a_question_are_decoded_one_at_a_time(library):
    encoded = io.BytesIO()
    Image.new("RGB", (2000, 2000), "red").save(encoded, "PNG")
    search, urls = PictureSearch([str(library)], None), [as_url(encoded.getvalue())] * 12
    asyncio.run(search.moments(0, urls[:1], []))
    tracemalloc.start()
    asyncio.run(search.moments(0, urls, []))
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 6 * 3 * 2000 * 2000


# Answers and errors in OpenAI's form.


def asked_of(library: Path, options: tuple[str, ...] = (), **own: Any) -> Asked:
    running = Running("q7", 0, Ask(question="Who?", options=options), datetime(2026, 1, 2, tzinfo=UTC))
    return Asked(running, "m", Library.open(str(library)), own=OwnFields(**own), site="http://here/")


def answer_with(status: Status, text: str | None, option: int | None, *evidence: Evidence) -> Answer:
    return Answer(status, text, option, evidence, 1, Ledger())


def test_an_answer_becomes_a_text_with_citations_usage_and_fields(library):
    asked = asked_of(library, ("one", "two"))
    none: list[Status] = ["insufficient_evidence", "budget_exhausted", "invalid"]
    for status in none:
        assert write(asked, answer_with(status, None, None)).text.startswith("No answer: ")
    film = asked.library.video("film-01").video_id
    seen = [Evidence(film, float(n), n + 1.5) for n in range(7)]
    chosen, options = answer_with("answered", "it is two", 1, *seen), ("one", "two")
    for own, text in (
        ({}, "B. two"),
        ({"cite": True}, "B. two\n\nSeen in film-01 0:00.0 to 0:01.5, film-01 0:01.0 to 0:02.5"),
    ):
        written = write(asked_of(library, options, **own), chosen)
        assert written.text.startswith(text), "programs look for the letter, and compare the whole"
        assert [each.title for each in written.citations[:2]] == [
            "film-01 0:00.0 to 0:01.5",
            "film-01 0:01.0 to 0:02.5",
        ]
    answer, asked = answer_with("answered", "A man.", None, *seen), asked_of(library)
    text, cited = (written := write(asked, answer)).text, written.citations
    assert text.startswith("A man.\n\nSeen in film-01 0:00.0 to 0:01.5, film-01 0:01.0 to 0:02.5, ")
    assert text.endswith("0:04.0 to 0:05.5 and 2 more.")
    assert [text[each.start_index : each.end_index] for each in cited] == [each.title for each in cited]
    assert cited[1].url == f"http://here/#/library/0/video/{film}/1"
    bare = write(asked_of(library, cite=False), answer)
    assert (bare.text, {(each.start_index, each.end_index) for each in bare.citations}) == ("A man.", {(0, 6)})
    reply = Completion(asked, False).whole(replace(answer, ledger=Ledger(input_tokens=10, output_tokens=3)))
    assert reply["usage"]["total_tokens"] == 13
    assert (reply["id"], reply["created"], reply["kinodex"]["trace"]) == ("chatcmpl-q7", 1767312000, "/#/trace/q7")
    assert reply["kinodex"]["evidence"][1] == {"video_id": film, "title": "film-01", "start_s": 1.0, "end_s": 2.5}
    for estimated in (0, 5):
        ledger = Ledger(input_tokens=10, output_tokens=3, cached_tokens=4, estimated_tokens=estimated)
        counted = usage(ledger, "prompt", "completion")
        assert (counted["prompt_tokens"], counted["completion_tokens"]) == (10 + estimated, 3)
        assert (counted["total_tokens"], counted["prompt_tokens_details"]["cached_tokens"]) == (ledger.tokens, 4)


def test_a_stream_shows_that_it_lives_and_ends_with_an_answer_or_an_error_or_its_reader(library):
    asked, failed, left = (asked_of(library) for _ in range(3))
    answers: list[Answer] = []

    async def silent() -> list[bytes]:
        found = []
        async for piece in pieces(asked, Completion(asked, True), answers.append, beat_s=0.01):
            found.append(piece)
            if found.count(b": still at work\n\n") == 2:
                asked.running.end(answer_with("answered", "A man.", None))
        return found

    found = asyncio.run(silent())
    assert found[-1] == b"data: [DONE]\n\n"
    chunks = [json.loads(each[6:]) for each in found if each.startswith(b"data: {")]
    deltas = [{"role": "assistant", "content": ""}, {"content": "A man.", "annotations": []}, {}]
    assert [each["choices"][0]["delta"] for each in chunks[:-1]] == deltas
    assert (chunks[-1]["choices"], chunks[-1]["usage"]["total_tokens"], len(answers)) == ([], 0, 1)
    failed.running.end(ModelUnreachable("the model is away"))

    async def whole(reply: Reply) -> list[bytes]:
        return [each async for each in pieces(failed, reply, answers.append)]

    found = asyncio.run(whole(Completion(failed)))
    assert json.loads(found[-2][6:])["error"]["message"] == "the model is away"
    assert (found[-1], len(answers)) == (b"data: [DONE]\n\n", 1)
    body = ResponseBody.model_validate({"model": "m", "input": "Who?"})
    last = json.loads(asyncio.run(whole(ResponseReply(failed, body)))[-1].partition(b"data: ")[2])
    assert (last["type"], last["response"]["status"]) == ("response.failed", "failed")
    assert last["response"]["error"] == {"code": "server_error", "message": "the model is away"}

    async def leave() -> None:
        stream = pieces(left, Completion(left), answers.append, beat_s=0.01)
        await anext(stream)
        await anext(stream)
        await stream.aclose()

    asyncio.run(leave())
    assert left.running.state == "stopping"


def test_errors_have_status_type_and_code():
    refused, server = "invalid_request_error", "server_error"
    for error, status, kind, code in (
        (RequestRefused("no", "n", "odd", 404), 404, refused, "odd"),
        (BadQuestion("no"), 400, refused, None),
        (UnknownVideo("no"), 400, refused, "video_not_found"),
        (NotGiven("no"), 404, refused, "not_found"),
        (TooManyQuestions("no"), 429, "rate_limit_error", "rate_limit_exceeded"),
        (MoneySpent("no", 30.5), 429, "insufficient_quota", "insufficient_quota"),
        (ModelUnreachable("no"), 502, server, "model_unusable"),
        (QuestionFault("no"), 500, server, None),
        (StorageError("no"), 503, server, "library_unusable"),
    ):
        said = {"message": "no", "type": kind, "param": "n" if code == "odd" else None, "code": code}
        assert error_body(error) == (status, {"error": said})

        async def answered(error: Exception = error) -> Response:
            async def raises(request: Any) -> Response:
                raise error

            return await answering(raises)(cast("Any", None))

        response = asyncio.run(answered())
        assert (response.status_code, json.loads(bytes(response.body))) == (status, {"error": said})
        again = response.headers.get("retry-after")
        assert again == {"insufficient_quota": "31", "rate_limit_error": "11"}.get(kind), kind
