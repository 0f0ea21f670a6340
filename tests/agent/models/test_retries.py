"""Retries: which failures are tried again, for how long, and after which wait."""

from __future__ import annotations

import email.utils
import logging
import time

import pytest

from agent.errors import ModelRejected, ModelUnreachable
from agent.models.retries import retry_after_s
from tests.support.chat_server import Behaviour, ChatServer, failing, hanging, in_turn, rate_limited
from tests.support.wire import QUERIES, ask, discover, one_line

HANGING_S = 60.0


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
    assert "429" in one_line(caught)


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
    assert "500" in one_line(caught)


def test_a_spent_quota_is_not_tried_again() -> None:
    said = failing(429, "You exceeded your current quota.", code="insufficient_quota")
    with ChatServer(lambda _: said) as server, pytest.raises(ModelRejected) as caught:
        ask(server, discover())
    assert len(server.seen) == 1
    assert "quota" in one_line(caught)


def test_a_server_that_hangs_is_an_error_in_time() -> None:
    started = time.monotonic()
    with ChatServer(lambda _: hanging(HANGING_S)) as server, pytest.raises(ModelUnreachable) as caught:
        ask(server, discover(), timeout_s=0.3, attempts=2)
    assert time.monotonic() - started < HANGING_S
    assert len(server.seen) == 2
    assert "within 0.3 s" in one_line(caught)


def test_a_server_that_hung_once_is_asked_again() -> None:
    with ChatServer(in_turn(hanging(HANGING_S), QUERIES)) as server:
        [exchange] = ask(server, discover(), timeout_s=0.5)
    assert exchange.reply is not None
