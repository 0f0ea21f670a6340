"""Servers that fail: what is tried again and for how long, and the one clear line for what is not."""

from __future__ import annotations

import asyncio
import email.utils
import logging
import socket
import time

import pytest

from agent.errors import BadSettings, KeyMissing, ModelError, ModelRejected, ModelUnknown, ModelUnreachable
from agent.models.openai_compatible import OpenAIModel
from agent.models.retries import retry_after_s
from agent.models.role_config import ROLES, Role, api_key, read_roles
from agent.variants.registry import VARIANTS
from tests.support.chat_server import Behaviour, ChatServer, failing, hanging, in_turn, rate_limited
from tests.support.wire import QUERIES, ask, discover, role


def line(error: pytest.ExceptionInfo[ModelError]) -> str:
    """The error's message, which must be one line."""
    text = str(error.value)
    assert "\n" not in text
    return text


def test_retry_after_is_honoured_in_seconds() -> None:
    with ChatServer(in_turn(rate_limited("1.5"), QUERIES)) as server:
        [exchange] = ask(server, discover())
    assert exchange.reply is not None
    first, second = server.seen
    assert second.at_s - first.at_s >= 1.5
    assert exchange.seconds >= 1.5


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("3", 3.0), ("0.5", 0.5), ("-1", 0.0), (email.utils.formatdate(1030), 30.0), ("soon", None), ("nan", None)],
)
def test_retry_after_is_read_as_a_number_or_a_date(header: str | None, seconds: float | None) -> None:
    assert retry_after_s(header, now_s=1000.0) == seconds


def test_a_retry_after_beyond_the_roles_patience_ends_at_once() -> None:
    with ChatServer(lambda _: rate_limited("3600")) as server, pytest.raises(ModelUnreachable) as caught:
        ask(server, discover(), give_up_after_s=5)
    assert len(server.seen) == 1
    assert "429" in line(caught)


@pytest.mark.parametrize(
    "said",
    [
        failing(500, "boom"),
        failing(503, "loading"),
        failing(408, "slow"),
        Behaviour(body={"error": {"message": "upstream", "code": 502}}),
        Behaviour(raw=b"{broken"),
        Behaviour(raw=b'{"choices": [{"text": "an older protocol"}]}'),
        Behaviour(raw=b"\xff\xfe\x00"),
    ],
)
def test_what_may_pass_is_tried_again(said: Behaviour, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), ChatServer(in_turn(said, QUERIES)) as server:
        [exchange] = ask(server, discover())
    assert exchange.reply is not None
    assert len(server.seen) == 2
    assert "attempt 2 of 5" in caplog.text


def test_attempts_are_bounded() -> None:
    with ChatServer(lambda _: failing(500, "boom\nat line 3")) as server, pytest.raises(ModelUnreachable) as caught:
        ask(server, discover(), attempts=2)
    assert len(server.seen) == 2
    assert "500" in line(caught)


def test_a_spent_quota_is_not_tried_again() -> None:
    said = failing(429, "You exceeded your current quota.", code="insufficient_quota")
    with ChatServer(lambda _: said) as server, pytest.raises(ModelRejected) as caught:
        ask(server, discover())
    assert len(server.seen) == 1
    assert "quota" in line(caught)


def test_a_server_that_hangs_is_an_error_in_time() -> None:
    started = time.monotonic()
    with ChatServer(lambda _: hanging(30)) as server, pytest.raises(ModelUnreachable) as caught:
        ask(server, discover(), timeout_s=0.3, attempts=2)
    assert time.monotonic() - started < 5
    assert len(server.seen) == 2
    assert "within 0.3 s" in line(caught)


def test_a_server_that_hung_once_is_asked_again() -> None:
    with ChatServer(in_turn(hanging(30), QUERIES)) as server:
        [exchange] = ask(server, discover(), timeout_s=0.5)
    assert exchange.reply is not None


def test_nobody_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    settings = Role(model="tester", base_url=url, attempts=2)
    with pytest.raises(ModelUnreachable) as caught:
        asyncio.run(OpenAIModel(settings).ask(discover()))
    assert line(caught).startswith(f"nobody answers at {url}")
    assert "start the server or correct base_url" in line(caught)


def test_an_unknown_model_is_met_with_the_nearest_names() -> None:
    models = ("qwen3-vl-8b-instruct", "qwen3-vl-32b-instruct", "whisper-large")
    with ChatServer(lambda _: QUERIES, models=models) as server, pytest.raises(ModelUnknown) as caught:
        ask(server, discover(), model="Qwen3-VL-8B")
    assert line(caught).startswith("127.0.0.1 has no model 'Qwen3-VL-8B'; the nearest of the 3 it lists: qwen3-vl-8b-")
    assert len(server.seen) == 1


def test_a_wrong_path_says_where_chat_completions_are_looked_for() -> None:
    with ChatServer(lambda _: QUERIES) as server, pytest.raises(ModelRejected) as caught:
        ask(server, discover(), base_url=server.base_url.removesuffix("/v1"))
    assert "usually ends in /v1" in line(caught)


def test_a_web_page_is_not_a_completion() -> None:
    page = Behaviour(raw=b"<html>\nWelcome</html>", headers={"Content-Type": "text/html"})
    with ChatServer(lambda _: page) as server, pytest.raises(ModelUnreachable) as caught:
        ask(server, discover(), attempts=1)
    assert "<html> Welcome</html>" in line(caught)


def test_a_refused_key_is_an_error_at_once_and_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WRONG_KEY", "sk-not-this-one")
    with ChatServer(lambda _: QUERIES, key="right") as server, pytest.raises(ModelRejected) as caught:
        ask(server, discover(), key_env="WRONG_KEY")
    assert "WRONG_KEY" in line(caught)
    assert "sk-not-this-one" not in line(caught)
    assert len(server.seen) == 1


def test_the_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "right")
    with ChatServer(lambda _: QUERIES, key="right") as server:
        [exchange] = ask(server, discover(), key_env="MY_KEY")
    assert exchange.reply is not None


@pytest.mark.parametrize("host", ["api.openai.com", "8.8.8.8"])
def test_a_missing_key_is_named_before_anything_is_asked(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(KeyMissing) as caught:
        OpenAIModel(Role(model="m", base_url=f"https://{host}/v1"))
    assert host in line(caught)
    assert "OPENAI_API_KEY is not set" in line(caught)


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8000", "[::1]:8000", "192.168.1.7", "vllm:8000"])
def test_a_server_of_ones_own_needs_no_key(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert api_key(Role(model="m", base_url=f"http://{host}/v1"))


def test_a_request_that_is_too_large_is_not_made_smaller_in_secret() -> None:
    said = failing(400, "max_tokens is too large: 5000. This model's maximum context length is 4096 tokens.")
    with ChatServer(lambda _: said) as server, pytest.raises(ModelRejected) as caught:
        ask(server, discover(), max_tokens=5000)
    assert len(server.seen) == 1
    assert "4096" in line(caught)


def test_no_more_requests_are_in_flight_than_the_role_allows() -> None:
    async def run(server: ChatServer) -> None:
        async with OpenAIModel(role(server, at_once=3)) as model:
            await asyncio.gather(*(model.ask(discover()) for _ in range(12)))

    with ChatServer(lambda _: Behaviour(content='{"queries": ["a"]}', after_s=0.1)) as server:
        asyncio.run(run(server))
    assert len(server.seen) == 12
    assert server.most_at_once == 3


def test_requests_side_by_side_step_down_together() -> None:
    async def run(server: ChatServer) -> None:
        async with OpenAIModel(role(server)) as model:
            exchanges = await asyncio.gather(*(model.ask(discover()) for _ in range(6)))
            assert all(exchange.reply for exchange in exchanges)

    with ChatServer(lambda _: QUERIES, rejects=["json_schema"]) as server:
        asyncio.run(run(server))
    formats = [seen.body["response_format"]["type"] for seen in server.seen]
    assert formats.count("json_object") == 6


def test_a_cancelled_request_is_cancelled_at_once() -> None:
    async def run(server: ChatServer) -> None:
        async with OpenAIModel(role(server)) as model, asyncio.timeout(0.3):
            await model.ask(discover())

    started = time.monotonic()
    with ChatServer(lambda _: rate_limited("20")) as server, pytest.raises(TimeoutError):
        asyncio.run(run(server))
    assert time.monotonic() - started < 3


def test_a_closed_model_may_be_used_in_another_loop() -> None:
    async def run(model: OpenAIModel) -> None:
        async with model:
            assert (await model.ask(discover())).reply is not None

    with ChatServer(lambda _: QUERIES) as server:
        model = OpenAIModel(role(server))
        asyncio.run(run(model))
        asyncio.run(run(model))


def test_roles_take_what_they_leave_out_from_the_default_one() -> None:
    shared = {"base_url": "http://localhost:8000/v1/", "model": "large", "price": {"input": 1.0}}
    roles = read_roles({"default": shared, "reward": {"model": "small"}})
    assert (roles["reward"].model, roles["reward"].base_url) == ("small", "http://localhost:8000/v1")
    assert roles["reward"].price.input == 1.0
    assert roles["default"].model == "large"


@pytest.mark.parametrize("settings", [{"polcy": {"model": "m"}}, {"model": "m"}])
def test_only_roles_may_stand_where_roles_are_named(settings: dict) -> None:
    with pytest.raises(BadSettings, match="the roles are default, policy"):
        read_roles(settings)


def test_every_agent_names_roles_that_can_be_set() -> None:
    roles = {role for variant in VARIANTS for role in variant.roles}
    assert {"policy", "reward"} <= roles <= set(ROLES)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model": "m", "temprature": 1}, ["temprature", "temperature"]),
        ({"base_url": "localhost:8000", "model": "m"}, ["base_url", "localhost:8000", "http://HOST:PORT/v1"]),
        ({}, ["model"]),
        ({"model": "m", "max_tokens": 0}, ["max_tokens", "0", "greater than 0"]),
    ],
)
def test_settings_that_make_no_sense_are_told_in_one_line(settings: dict, words: list[str]) -> None:
    with pytest.raises(BadSettings) as caught:
        read_roles({"policy": settings})
    text = str(caught.value)
    assert "\n" not in text
    assert all(word in text for word in ["policy", *words])
