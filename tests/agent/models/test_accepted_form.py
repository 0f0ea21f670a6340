"""The form of requests that a server accepts: each refusal, over a real server, and what is sent after it."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

from kinodex.agent.errors import AllRejected, ModelRejected
from kinodex.agent.models.openai_model import OpenAIModel
from kinodex.agent.requests.tree import Queries
from tests.support.servers.chat_server import Behaviour, ChatServer, Reply, calling, failing, in_turn
from tests.support.servers.wire import GO, HOME, QUERIES, SCORES, Walk, ask, discover, frame, one_line, role, score


@pytest.mark.parametrize(
    ("rejects", "rungs", "calls"),
    [
        ([], ["json_schema"], 1),
        (["json_schema"], ["json_schema", "json_object"], 2),
        (["json_schema", "json_object"], ["json_schema", "json_object", None], 3),
    ],
)
def test_the_ladder_goes_down_to_what_the_server_takes_and_stays_there(rejects, rungs, calls) -> None:
    with ChatServer(lambda _: QUERIES, rejects=rejects) as server:
        first, second = ask(server, discover(), discover())
    assert first.reply == second.reply == Queries(queries=QUERIES["queries"])
    formats = [seen.body.get("response_format", {}).get("type") for seen in server.seen]
    assert formats == [*rungs, rungs[-1]]
    assert ("JSON schema" in server.seen[-1].text) == (calls > 1)


def test_parameters_that_the_server_rejects_are_left_out_once_and_for_all() -> None:
    with ChatServer(lambda _: QUERIES, rejects=["max_tokens", "temperature", "seed"]) as server:
        ask(server, discover(), discover(), seed=1, max_tokens=50)
    assert len(server.seen) == 5
    for seen in server.seen[-2:]:
        assert seen.body["max_completion_tokens"] == 50
        assert not {"max_tokens", "temperature", "seed"} & set(seen.body)


@pytest.mark.parametrize("rejects", ["tools", "tool_choice"])
def test_an_endpoint_that_refuses_tools_is_asked_for_json_from_then_on(
    rejects: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), ChatServer(lambda _: GO, rejects=[rejects]) as server:
        first, second = ask(server, Walk(), Walk())
    assert first.reply == second.reply == HOME
    assert [bool(seen.tools) for seen in server.seen] == [True, False, False]
    assert server.seen[1].schema == "Step"
    assert caplog.text.count("takes no tools") == 1


def test_the_json_ladder_goes_on_below_the_tools() -> None:
    with ChatServer(lambda _: GO, rejects=["tools", "json_schema", "json_object"]) as server:
        [exchange] = ask(server, Walk())
    assert exchange.reply == HOME
    assert [seen.body.get("response_format", {}).get("type") for seen in server.seen] == [
        None,
        "json_schema",
        "json_object",
        None,
    ]
    assert "JSON schema" in server.seen[-1].text


def test_parallel_calls_are_a_parameter_that_may_be_left_out() -> None:
    with ChatServer(lambda _: calling(GO), rejects=["parallel_tool_calls"]) as server:
        first, second = ask(server, Walk(), Walk())
    assert first.reply == second.reply == HOME
    assert ["parallel_tool_calls" in seen.body for seen in server.seen] == [True, False, False]
    assert all(seen.tools for seen in server.seen)


def test_tools_of_the_users_own_that_are_refused_are_an_error() -> None:
    schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    own = {"tools": [{"type": "function", "function": {"name": "fly", "description": "Up.", "parameters": schema}}]}
    with ChatServer(lambda _: failing(400, "no such tool")) as server, pytest.raises(ModelRejected, match="no such"):
        ask(server, discover(), extra=own)


def test_requests_side_by_side_step_down_together() -> None:
    async def run(server: ChatServer) -> None:
        async with OpenAIModel(role(server)) as model:
            exchanges = await asyncio.gather(*(model.ask(discover()) for _ in range(6)))
            assert all(exchange.reply for exchange in exchanges)

    with ChatServer(lambda _: QUERIES, rejects=["json_schema"]) as server:
        asyncio.run(run(server))
    formats = [seen.body["response_format"]["type"] for seen in server.seen]
    assert formats.count("json_object") == 6


FORMAT = "response_format"
WORDED: list[tuple[str, Behaviour]] = [
    ("message", failing(400, "'response_format' of this type is unavailable")),
    ("detail", Behaviour(status=422, body={"detail": "Unexpected fields in the request: {'response_format'}"})),
    ("details", Behaviour(status=422, body={"detail": [{"loc": ["body", "response_format"], "msg": "extra"}]})),
    ("bare", Behaviour(status=400, body={"error": "'response_format.type' must be 'text'"})),
    ("failure", failing(500, "response_format type must be text")),
    ("failed", Behaviour(status=500, raw=b"KeyError: 'json_schema'")),
    ("nested", failing(400, "Provider returned error", metadata={"raw": '{"error": {"message": "no json_object"}}'})),
    ("hidden", Behaviour(body={"error": {"code": 400, "message": "response_format is not supported"}})),
]


@pytest.mark.parametrize("refused", [each for _, each in WORDED], ids=[name for name, _ in WORDED])
def test_a_format_is_refused_in_many_ways_and_asked_for_in_words_at_once(refused: Behaviour) -> None:
    with ChatServer(lambda body: refused if FORMAT in body else QUERIES) as server:
        first, second = ask(server, discover(), discover())
    assert first.reply == second.reply == Queries(queries=QUERIES["queries"])
    assert [FORMAT in seen.body for seen in server.seen] == [True, True, False, False]
    assert "JSON schema" in server.seen[-1].text


def test_a_format_of_the_users_own_that_is_refused_is_an_error() -> None:
    said = failing(400, "response_format is not supported")
    with ChatServer(lambda _: said) as server, pytest.raises(ModelRejected, match="take response_format out of the"):
        ask(server, discover(), extra={FORMAT: {"type": "json_object"}})
    assert len(server.seen) == 1


def refusing_pictures(refused: Behaviour, most: int, reply: dict) -> Reply:
    """A server that refuses more than so many pictures."""
    return lambda body: refused if json.dumps(body).count('"image_url": {') > most else reply


@pytest.mark.parametrize(
    ("refused", "most"),
    [
        (failing(400, "At most 2 image(s) may be provided in one request."), 2),
        (failing(500, "vision model only supports a single image per message"), 1),
        (failing(400, "Provider returned error", metadata={"raw": "supports at most 1 image per prompt."}), 1),
        (failing(400, "Too many images in request."), 4),
    ],
)
def test_a_server_of_few_pictures_gets_contact_sheets_from_its_first_refusal_on(
    refused: Behaviour, most: int, caplog: pytest.LogCaptureFixture
) -> None:
    frames = [frame(number) for number in range(1, 9)]
    with caplog.at_level(logging.WARNING), ChatServer(refusing_pictures(refused, most, SCORES)) as server:
        first, second = ask(server, score(frames), score(frames))
    assert first.reply is not None
    assert second.reply is not None
    assert [len(seen.frames) for seen in server.seen] == [8, most, most]
    assert (first.usage.sheets, first.usage.left_out_frames) == (most, 0)
    for number in range(1, 9):
        assert f"frame {number} at {number}.00 s" in server.seen[-1].text
    assert caplog.text.count(f"takes {most} pictures in a request") == 1
    assert server.problems == []


def test_a_limit_that_the_role_names_needs_no_refusal() -> None:
    with ChatServer(refusing_pictures(failing(400, "no"), 1, SCORES)) as server:
        [exchange] = ask(server, score([frame(number) for number in range(1, 30)]), images=1)
    assert len(server.seen) == 1
    assert (exchange.usage.sheets, exchange.usage.left_out_frames) == (1, 13)


@pytest.mark.parametrize(
    "refused",
    [
        failing(500, "image input is not supported - hint: you may need to provide the mmproj"),
        failing(404, "No endpoints found that support image input"),
        failing(400, "unknown variant `image_url`, expected `text` at line 1"),
        failing(400, "At most 0 image(s) may be provided in one request."),
    ],
)
def test_a_model_that_does_not_see_is_an_error_at_once_with_what_to_do(refused: Behaviour) -> None:
    with ChatServer(lambda _: refused) as server, pytest.raises(ModelRejected) as caught:
        ask(server, score())
    assert "'tester' at 127.0.0.1 takes no pictures" in one_line(caught)
    assert "a model with vision" in one_line(caught)
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("refused", "kind", "words"),
    [
        (failing(400, "maximum context length is 9 tokens (64 in the messages, 20 in the functions)"), ModelRejected,
         "longer than 'tester'"),
        (failing(500, "the request exceeds the available context size."), ModelRejected, "longer than 'tester'"),
        (Behaviour(status=402, body={"detail": "Insufficient Balance"}), AllRejected, "add credit"),
        (failing(429, "quota", code="insufficient_quota"), AllRejected, "add credit"),
        (failing(400, "filtered", code="content_filter"), ModelRejected, "a filter at 127.0.0.1"),
    ],
)  # fmt: skip
def test_a_refusal_that_no_other_form_helps_is_an_error_at_once(refused: Behaviour, kind: type, words: str) -> None:
    with ChatServer(lambda _: refused) as server, pytest.raises(kind, match=words):
        ask(server, Walk())
    assert len(server.seen) == 1


def test_no_message_has_another_speaker_than_user_and_assistant() -> None:
    """Chat templates of some models (Gemma) refuse a system message, and two of one speaker in a row."""
    with ChatServer(in_turn("nonsense", QUERIES)) as server:
        [bad] = ask(server, discover())
        ask(server, discover().__class__(**{**vars(discover()), "bad_reply": bad.raw, "complaint": "no", "attempt": 1}))
    assert [message["role"] for message in server.seen[1].body["messages"]] == ["user", "assistant", "user"]
