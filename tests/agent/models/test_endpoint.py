"""One endpoint: it learns once how the server wants requests written, and retries what may pass, for a while."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
import threading
from pathlib import Path

import pytest

from kinodex.agent.errors import ModelUnreachable
from kinodex.agent.models.endpoint import trusted_certificates
from kinodex.agent.models.openai_model import OpenAIModel
from tests.support.servers.chat_server import Behaviour, ChatServer, failing, hanging, in_turn, rate_limited
from tests.support.servers.wire import QUERIES, ask, discover, one_line, role

pytestmark = pytest.mark.usefixtures("quick_tries")


def test_no_more_requests_are_in_flight_than_the_role_allows() -> None:
    async def run(server: ChatServer) -> None:
        async with OpenAIModel(role(server, at_once=3)) as model:
            await asyncio.gather(*(model.ask(discover()) for _ in range(12)))

    three = threading.Barrier(3)

    def reply(_: dict) -> dict:
        three.wait(timeout=60)  # broken, and no reply, if fewer are let through
        return QUERIES

    with ChatServer(reply) as server:
        asyncio.run(run(server))
    assert len(server.seen) == 12
    assert server.most_at_once == 3


def test_a_request_is_cancelled_or_given_up_in_time() -> None:
    async def run(server: ChatServer) -> None:
        async with OpenAIModel(role(server)) as model, asyncio.timeout(0.3):
            await model.ask(discover())

    with ChatServer(lambda _: rate_limited("60")) as server, pytest.raises(TimeoutError):
        asyncio.run(run(server))
    with ChatServer(lambda _: hanging(3600.0)) as server, pytest.raises(ModelUnreachable) as caught:
        ask(server, discover(), timeout_s=0.3, attempts=2)
    assert len(server.seen) == 2 and "within 0.3 s" in one_line(caught)
    with ChatServer(lambda _: rate_limited("3600")) as server, pytest.raises(ModelUnreachable) as impatient:
        ask(server, discover(), give_up_after_s=5)
    assert len(server.seen) == 1 and "429" in one_line(impatient)


def test_certificates_are_loaded_once_for_each_place_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    usual = trusted_certificates()
    assert trusted_certificates() is usual and usual.verify_mode is ssl.CERT_REQUIRED
    own = tmp_path / "own.pem"
    own.write_text(ssl.DER_cert_to_PEM_cert(usual.get_ca_certs(binary_form=True)[0]))
    monkeypatch.setenv("SSL_CERT_FILE", str(own))
    assert len(trusted_certificates().get_ca_certs()) == 1
    monkeypatch.undo()
    assert trusted_certificates() is usual


def test_retry_after_is_honoured_in_seconds() -> None:
    with ChatServer(in_turn(rate_limited("1.5"), QUERIES)) as server:
        [exchange] = ask(server, discover())
    first, second = server.seen
    assert exchange.reply is not None and second.at_s - first.at_s >= 1.5 <= exchange.seconds


def test_what_may_pass_is_tried_again_and_said_without_a_key_that_the_server_repeats(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MINE", "marked-key-1")
    passing = (
        failing(500, "boom"),
        failing(503, "busy, marked-key-1"),
        failing(408, "slow"),
        Behaviour(body={"error": {"message": "upstream", "code": 502}}),
        Behaviour(raw=b"{broken"),
        Behaviour(raw=b'{"choices": [{"text": "an older protocol"}]}'),
        Behaviour(raw=b"\xff\xfe\x00"),
    )
    replies = [each for said in passing for each in (said, QUERIES)]
    with caplog.at_level(logging.WARNING), ChatServer(in_turn(*replies)) as server:
        exchanges = ask(server, *[discover()] * len(passing), key_env="MINE")
    assert all(each.reply is not None for each in exchanges) and len(server.seen) == len(replies)
    assert caplog.text.count("attempt 2 of 5") == len(passing)
    assert "busy, ***" in caplog.text and "marked" not in caplog.text


def test_a_refused_connection_is_tried_again_only_where_somebody_has_answered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    last = Behaviour(json.dumps(QUERIES), headers={"Connection": "close"})

    async def run() -> None:
        with ChatServer(lambda _: last) as server:
            away = OpenAIModel(role(server, attempts=2))
            await away.ask(discover())
        with pytest.raises(ModelUnreachable):
            await away.ask(discover())
        assert "attempt 2 of 2" in caplog.text, "it may be starting again"
        caplog.clear()
        await away.close()
        absent = OpenAIModel(role(server))
        with pytest.raises(ModelUnreachable) as caught:
            await absent.ask(discover())
        await absent.close()
        assert "nobody answers at" in one_line(caught)
        assert caplog.text == "", "nothing listens there"

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
