"""Settings of roles: what they take from the default one, their keys, their prices, and clear errors."""

from __future__ import annotations

import asyncio
import json
import math
from http.server import BaseHTTPRequestHandler

import pytest
from pydantic import ValidationError

from kinodex.agent.errors import BadSettings
from kinodex.agent.models.openai_model import OpenAIModel
from kinodex.agent.models.roles import Price, Role, read_roles
from tests.support.loopback import serve_handler
from tests.support.servers.chat_server import ChatServer
from tests.support.servers.wire import QUERIES, ask, discover


def test_roles_take_what_they_leave_out_from_the_default_one_and_nonsense_is_told_in_one_line() -> None:
    shared = {"base_url": "http://localhost:8000/v1/", "model": "large", "price": {"input": 1.0}}
    roles = read_roles({"default": shared, "reward": {"model": "small"}})
    assert (roles["reward"].model, roles["reward"].base_url) == ("small", "http://localhost:8000/v1")
    assert (roles["reward"].price.input, roles["default"].model) == (1.0, "large")
    wrong: list[tuple[dict, list[str]]] = [
        ({"model": "m", "temprature": 1}, ["temprature", "temperature"]),
        ({"base_url": "localhost:8000", "model": "m"}, ["base_url", "localhost:8000", "http://HOST:PORT/v1"]),
        ({"base_url": "http://localhost:99999/v1", "model": "m"}, ["base_url", "99999", "0-65535"]),
        ({}, ["model"]),
        ({"model": "m", "max_tokens": 0}, ["max_tokens", "0", "greater than 0"]),
    ]
    for settings, words in wrong:
        with pytest.raises(BadSettings) as caught:
            read_roles({"policy": settings})
        assert "\n" not in str(caught.value)
        assert all(word in str(caught.value) for word in ["policy", *words])


def test_the_usual_variables_of_the_official_client_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    with ChatServer(lambda _: QUERIES, key="sk-mine") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
        monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
        monkeypatch.setenv("OPENAI_PROJECT_ID", "project-1")
        role = Role(model="tester")
        assert role.base_url == server.base_url
        [exchange] = ask(server, discover(), base_url=role.base_url)
        headers = server.seen[0].headers
    assert exchange.reply is not None
    assert (headers["openai-organization"], headers["openai-project"]) == ("org-1", "project-1")
    assert Role(model="m", base_url="http://localhost:8/v1").base_url == "http://localhost:8/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", " ")
    assert Role(model="m").base_url == "https://api.openai.com/v1"


def test_requests_go_through_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Proxy(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.path)
            self.rfile.read(int(self.headers["Content-Length"]))
            body = json.dumps({"choices": [{"message": {"content": json.dumps(QUERIES)}}]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Requests are recorded, not printed."""

    with serve_handler(Proxy) as address:
        monkeypatch.setenv("HTTP_PROXY", address)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        role = Role(model="m", base_url="http://models.internal/v1", attempts=1)
        exchange = asyncio.run(OpenAIModel(role).ask(discover()))
    assert exchange.reply is not None
    assert asked == ["http://models.internal/v1/chat/completions"]


@pytest.mark.parametrize("value", [math.inf, math.nan, -1.0])
def test_a_price_is_a_number_of_money(value: float) -> None:
    with pytest.raises(ValidationError, match="input"):
        Price(input=value)
