"""Waits that a server asks for: in every form in which servers say it, and what is done with them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from email.utils import formatdate
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.errors import ModelUnreachable
from kinodex.agent.models.waits import asked_wait_s, duration_s
from tests.support.servers.chat_server import Behaviour, ChatServer, failing, in_turn, rate_limited
from tests.support.servers.wire import QUERIES, ask, discover, one_line

NOW_S = 1_750_000_000.0
RECORDED = json.loads((Path(__file__).parents[2] / "data" / "server_refusals.json").read_text())
QUOTA = "Quota exceeded for metric: generate_content_free_tier_requests, limit: 5\nPlease retry in 25.5s."


def of_gemini(delay: object, message: str = "Quota exceeded") -> list[Any]:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}]
    return [{"error": {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": details}}]


def said(message: str) -> dict[str, Any]:
    return {"error": {"message": message}}


@pytest.mark.parametrize(
    ("headers", "body", "wait_s"),
    [
        ({"retry-after": "7"}, said("try again in 1s"), 7.0),
        ({"retry-after": formatdate(NOW_S + 90, usegmt=True)}, None, 90.0),
        ({"retry-after": "soon"}, said("try again in 2s"), 2.0),
        ({"retry-after-ms": "1500", "retry-after": "7"}, None, 1.5),
        ({}, of_gemini("25s"), 25.0),
        ({}, of_gemini("0.5s", "Please retry in 9s."), 0.5),
        ({}, of_gemini(None, QUOTA), 25.5),
        ({}, said("Please try again in 1m2.3s. Visit https://..."), 62.3),
        ({}, said("Please try again in 6m0s."), 360.0),
        ({}, said("Please try again in 644ms."), 0.644),
        ({}, said("Too busy: retry after 25 seconds"), 25.0),
        ({}, said("Rate limit hit. Please wait 2 minutes"), 120.0),
        ({}, said("try again in 5 more attempts"), None),
        ({}, said("try again later"), None),
        ({}, {"error": {"metadata": {"raw": "upstream: please retry in 3 s"}}}, 3.0),
        ({}, "Try again in 4s", 4.0),
        (
            {
                "x-ratelimit-remaining-requests": "12",
                "x-ratelimit-reset-requests": "1h",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "1m2.5s",
            },
            None,
            62.5,
        ),
        ({"x-ratelimit-reset": str(int((NOW_S + 30) * 1000)), "x-ratelimit-remaining": "0"}, None, 30.0),
        ({"x-ratelimit-reset": str(NOW_S + 30)}, None, 30.0),
        ({"ratelimit-reset": "17"}, None, 17.0),
        ({"anthropic-ratelimit-tokens-reset": "2025-06-15T15:06:50Z"}, None, 10.0),
        ({"x-ratelimit-reset-tokens": "odd"}, {"error": 7}, None),
        ({"retry-after": "nan"}, None, None),
        ({"retry-after": "-3"}, None, 0.0),
    ],
)
def test_a_wait_is_read_wherever_a_server_says_it(
    headers: Mapping[str, str], body: object, wait_s: float | None
) -> None:
    found = asked_wait_s(429, headers, body, NOW_S)
    assert found == (None if wait_s is None else pytest.approx(wait_s))


def test_quotas_say_nothing_of_a_failure() -> None:
    assert asked_wait_s(503, {"x-ratelimit-reset-tokens": "60s"}, None, NOW_S) is None
    assert asked_wait_s(503, {"retry-after": "60"}, None, NOW_S) == 60.0


def test_durations() -> None:
    assert [duration_s(text) for text in ("25s", "1h2m3s", "20 seconds", "1 minute", "250 milliseconds")] == [
        *(25.0, 3723.0, 20.0, 60.0),
        0.25,
    ]
    assert [duration_s(text) for text in ("", "25", "s", "25 apples", "None")] == [None] * 5


def test_what_real_servers_ask_is_understood() -> None:
    asked = {each["source"]: each["wait_s"] for each in RECORDED if "wait_s" in each}
    assert len(asked) >= 2
    for each in RECORDED:
        assert asked_wait_s(each["status"], {}, each["body"], NOW_S) == asked.get(each["source"]), each


def test_a_wait_that_stands_in_the_body_alone_is_kept() -> None:
    busy = Behaviour(status=429, body=of_gemini("1.5s", "Please retry in 1.5s."))
    with ChatServer(in_turn(busy, busy, QUERIES)) as server:
        [exchange] = ask(server, discover(), attempts=1)
    assert exchange.reply is not None, "a try that the server asked for is none of those that are counted"
    times = [each.at_s for each in server.seen]
    assert all(later - earlier >= 1.5 for earlier, later in pairwise(times))


def test_a_wait_beyond_the_users_limit_is_said_and_not_begun() -> None:
    began_s = time.monotonic()
    busy = Behaviour(status=429, body=of_gemini("3600s"))
    with ChatServer(lambda _: busy) as server, pytest.raises(ModelUnreachable) as caught:
        ask(server, discover(), give_up_after_s=5)
    assert len(server.seen) == 1 and time.monotonic() - began_s < 5
    assert "asks for a wait of 3,600 s: raise the role's give_up_after_s" in one_line(caught)


def test_a_server_that_asks_for_no_wait_again_and_again_is_asked_less_and_less() -> None:
    with ChatServer(lambda _: rate_limited("0")) as server, pytest.raises(ModelUnreachable):
        ask(server, discover(), give_up_after_s=4)
    assert 2 <= len(server.seen) <= 5


def test_tries_that_nobody_asked_for_are_counted() -> None:
    with ChatServer(lambda _: failing(503, "loading")) as server, pytest.raises(ModelUnreachable):
        ask(server, discover(), attempts=2)
    assert len(server.seen) == 2
