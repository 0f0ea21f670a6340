"""Errors of endpoints: what a server objects to, and the one clear line for the user."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from agent.errors import ModelRejected, ModelUnknown, ModelUnreachable
from agent.models import provider_errors
from agent.models.openai_compatible import OpenAIModel
from agent.models.role_config import Role
from tests.support.servers.chat_server import Behaviour, ChatServer, failing
from tests.support.servers.wire import GO, HOME, QUERIES, Walk, ask, discover, one_line

RECORDED = json.loads((Path(__file__).parents[2] / "data" / "server_refusals.json").read_text())
"""Bodies of refusals that users of real servers reported, each with its source, and the words that it is known by."""
PARAMETERS = ("max_tokens", "max_completion_tokens", "temperature", "seed", "parallel_tool_calls")


def refusal(recorded: dict[str, Any]) -> openai.APIStatusError:
    """The error that the installed client makes of a recorded body."""

    async def ask_once() -> None:
        body = recorded["body"]
        content = body if isinstance(body, str) else json.dumps(body)
        transport = httpx2.MockTransport(lambda request: httpx2.Response(recorded["status"], text=content))
        async with httpx2.AsyncClient(transport=transport) as http:
            client = openai.AsyncOpenAI(api_key="-", base_url="http://nowhere/v1", max_retries=0, http_client=http)
            await client.post("/chat/completions", body={}, cast_to=object)

    with pytest.raises(openai.APIStatusError) as caught:
        asyncio.run(ask_once())
    return caught.value


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda each: f"{each['server']} {'+'.join(each['words'])}")
def test_what_a_real_server_objects_to_is_recognised(recorded: dict[str, Any]) -> None:
    error, objects_to = refusal(recorded), recorded["objects_to"]
    text = json.dumps(recorded["body"]).lower()
    assert all(word in text for word in recorded["words"])
    rejected = provider_errors.rejected_parameter(error, PARAMETERS)
    assert (rejected is not None) == (objects_to == "parameter")
    assert rejected is None or rejected in recorded["words"]
    if objects_to in ("format", "limit"):
        assert provider_errors.rejects_format(error) == (objects_to == "format")
    if objects_to == "tools":
        assert provider_errors.rejects_tools(error)
    if objects_to == "model":
        assert provider_errors.may_reject_model(error)
    if objects_to == "quota":
        assert not provider_errors.is_transient(error)


@pytest.mark.parametrize(
    ("objects_to", "words"),
    [
        ("limit", provider_errors.LIMIT_WORDS),
        ("format", provider_errors.FORMAT_WORDS),
        ("tools", provider_errors.TOOL_WORDS),
        ("model", provider_errors.NO_MODEL_WORDS),
        ("quota", (provider_errors.NO_MONEY,)),
    ],
)
def test_each_word_of_the_tables_comes_from_a_recorded_refusal(objects_to: str, words: tuple[str, ...]) -> None:
    recorded = {word for each in RECORDED if each["objects_to"] == objects_to for word in each["words"]}
    assert set(words) == recorded


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
def test_errors_that_may_pass(status: int) -> None:
    assert provider_errors.is_transient(refusal({"status": status, "body": {"error": {"message": "busy"}}}))


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_errors_that_do_not_pass(status: int) -> None:
    assert not provider_errors.is_transient(refusal({"status": status, "body": {"error": {"message": "no"}}}))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "no such thing"}}, "400: no such thing"),
        ({"error": "no such thing"}, "400: no such thing"),
        ({"detail": [{"msg": "no such thing"}]}, '400: {"detail": [{"msg": "no such thing"}]}'),
        ("<html>no such thing</html>", "400"),
    ],
)
def test_a_servers_own_words_are_passed_on_whatever_the_form_of_its_body(body: object, message: str) -> None:
    role = Role(model="tester", base_url="http://nowhere/v1")
    error = provider_errors.status_error(role, refusal({"status": 400, "body": body}), None)
    assert str(error) == f"nowhere refuses the request to 'tester' ({message}); change the role's settings"


def test_text_is_clipped_to_one_line() -> None:
    assert provider_errors.clip("a\n b") == "a b"
    assert len(provider_errors.clip("x" * 1000)) == provider_errors.CLIPPED_CHARACTERS


def test_nobody_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    settings = Role(model="tester", base_url=url, attempts=2)
    with pytest.raises(ModelUnreachable) as caught:
        asyncio.run(OpenAIModel(settings).ask(discover()))
    assert one_line(caught).startswith(f"nobody answers at {url}")
    assert "start the server or correct base_url" in one_line(caught)


def test_an_unknown_model_is_met_with_the_nearest_names() -> None:
    models = ("qwen3-vl-8b-instruct", "qwen3-vl-32b-instruct", "whisper-large")
    with ChatServer(lambda _: QUERIES, models=models) as server, pytest.raises(ModelUnknown) as caught:
        ask(server, discover(), model="Qwen3-VL-8B")
    assert one_line(caught).startswith(
        "127.0.0.1 has no model 'Qwen3-VL-8B'; the nearest of the 3 it lists: qwen3-vl-8b-"
    )
    assert len(server.seen) == 1


def test_a_wrong_path_says_where_chat_completions_are_looked_for() -> None:
    with ChatServer(lambda _: QUERIES) as server, pytest.raises(ModelRejected) as caught:
        ask(server, discover(), base_url=server.base_url.removesuffix("/v1"))
    assert "usually ends in /v1" in one_line(caught)


def test_a_web_page_is_not_a_completion() -> None:
    page = Behaviour(raw=b"<html>\nWelcome</html>", headers={"Content-Type": "text/html"})
    with ChatServer(lambda _: page) as server, pytest.raises(ModelUnreachable) as caught:
        ask(server, discover(), attempts=1)
    assert "<html> Welcome</html>" in one_line(caught)


def test_a_refused_key_is_an_error_at_once_and_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WRONG_KEY", "sk-not-this-one")
    with ChatServer(lambda _: QUERIES, key="right") as server, pytest.raises(ModelRejected) as caught:
        ask(server, discover(), key_env="WRONG_KEY")
    assert "WRONG_KEY" in one_line(caught)
    assert "sk-not-this-one" not in one_line(caught)
    assert len(server.seen) == 1


def test_a_request_that_is_too_large_is_not_made_smaller_in_secret() -> None:
    said = failing(400, "max_tokens is too large: 5000. This model's maximum context length is 4096 tokens.")
    with ChatServer(lambda _: said) as server, pytest.raises(ModelRejected) as caught:
        ask(server, discover(), max_tokens=5000)
    assert len(server.seen) == 1
    assert "4096" in one_line(caught)


@pytest.mark.parametrize(
    "refusal",
    [
        failing(400, "registry/tester does not support tools"),
        failing(404, "No endpoints found that support tool use."),
        failing(400, "Failed to call a function. Please adjust your prompt.", code="tool_use_failed"),
        failing(500, "tools param requires --jinja flag"),
        failing(501, "Only 'auto' or 'none' tool_choice is supported"),
    ],
)
def test_refusals_as_servers_word_them(refusal: Behaviour) -> None:
    with ChatServer(lambda request: refusal if "tools" in request else GO) as server:
        [exchange] = ask(server, Walk(), attempts=1)
    assert exchange.reply == HOME
