"""Requests at once: as many as a server answers together, shared by the models of an address, fewer after delays."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable

import pytest

from kinodex.agent.models.openai_model import OpenAIModel
from kinodex.agent.models.slots import FIRST, Slots, slots_at
from kinodex.agent.protocol.exchange import Exchange
from tests.support.servers.chat_server import ChatServer, hanging, in_turn
from tests.support.servers.wire import QUERIES, ask, discover, role

pytestmark = pytest.mark.usefixtures("quick_tries")


def one_at_a_time(seconds: float) -> Callable[[dict], dict]:
    """Reply as a server with one slot: the others wait in its queue."""
    slot = threading.Lock()

    def reply(_: dict) -> dict:
        with slot:
            time.sleep(seconds)
            return QUERIES

    return reply


def ask_many(server: ChatServer, count: int, **settings: object) -> list[Exchange]:
    async def run() -> list[Exchange]:
        async with OpenAIModel(role(server, **settings)) as model:
            return await asyncio.gather(*(model.ask(discover()) for _ in range(count)))

    return asyncio.run(run())


def test_a_server_of_one_request_at_a_time_loses_none_of_many() -> None:
    with ChatServer(one_at_a_time(0.05)) as server:
        exchanges = ask_many(server, 24, at_once=24, timeout_s=0.5)
    assert all(each.reply is not None for each in exchanges)
    assert len(server.seen) == 24 and server.most_at_once <= FIRST


def test_a_server_that_answers_many_together_gets_as_many_as_the_role_allows() -> None:
    def reply(_: dict) -> dict:
        time.sleep(0.25)
        return QUERIES

    with ChatServer(reply) as server:
        ask_many(server, 60, at_once=16)
    assert server.most_at_once == 16


def test_after_a_time_out_a_request_has_twice_the_time_and_the_user_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    replies = in_turn(hanging(3600.0), hanging(0.6), hanging(3600.0), QUERIES)
    with caplog.at_level(logging.WARNING), ChatServer(replies) as server:
        exchanges = ask(server, discover(), discover(), timeout_s=0.4, attempts=5)
    assert [each.invalid for each in exchanges][1:] == [None] and len(server.seen) == 4
    assert caplog.text.count("gives no reply in 0.4 s; each such request is sent once more, with 0.8 s") == 1
    assert "one request goes out at once: raise the role's timeout_s (0.4), lower its at_once (8)" in caplog.text


def test_requests_that_run_out_of_time_together_halve_what_goes_out_once() -> None:
    slots = Slots()

    async def run() -> None:
        began_s = time.monotonic()
        async with slots.taken(8, 1.0), slots.taken(8, 1.0), slots.taken(8, 1.0), slots.taken(8, 1.0):
            assert [slots.narrow(began_s) for _ in range(4)] == [2, 2, 2, 2]
            assert slots.narrow(time.monotonic()) == 1

    asyncio.run(run())


def test_a_request_that_is_given_up_while_it_waits_leaves_its_slot_to_the_next() -> None:
    slots, done = Slots(), []

    async def work(name: str) -> None:
        async with slots.taken(1, 1.0):
            await asyncio.sleep(0.02)
            done.append(name)

    async def run() -> None:
        tasks = [asyncio.create_task(work(name)) for name in "abc"]
        await asyncio.sleep(0.01)
        tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(run())
    assert done == ["a", "c"] and not slots.is_full


def test_the_models_of_an_address_share_its_slots_in_whatever_thread_they_are_asked() -> None:
    assert slots_at("http://a/v1") is not slots_at("http://b/v1")
    with ChatServer(one_at_a_time(0.02)) as server:
        shared = slots_at(server.base_url)
        threads = [threading.Thread(target=ask_many, args=(server, 8)) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert shared is slots_at(server.base_url)
    assert len(server.seen) == 32 and server.most_at_once <= 8
