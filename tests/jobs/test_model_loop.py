"""A loop of its own for models: what is opened in it is closed with it, and calls come from threads and other loops."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager

import pytest

from kinodex.agent.errors import KeyMissing
from kinodex.jobs.model_loop import ModelLoop


def test_what_is_opened_is_closed_in_the_same_thread_after_the_calls_that_go_on() -> None:
    steps, threads = list[str](), set[int]()

    @asynccontextmanager
    async def opening() -> AsyncIterator[str]:
        threads.add(threading.get_ident())
        try:
            yield "opened"
        finally:
            threads.add(threading.get_ident())
            steps.append("closed")

    async def goes_on() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            steps.append("cancelled")

    began = threading.Event()
    with ModelLoop() as loop:
        assert loop.open(opening()) == "opened"
        call = loop.submit(goes_on())
        began.wait(60)
    assert steps == ["cancelled", "closed"] and call.cancelled()
    assert len(threads) == 1 and threading.get_ident() not in threads
    with pytest.raises(CancelledError):
        loop.submit(goes_on())


def test_what_fails_to_open_raises_its_error_and_the_thread_ends() -> None:
    @asynccontextmanager
    async def opening() -> AsyncIterator[None]:
        raise KeyMissing("no key")
        yield

    before = threading.active_count()
    with pytest.raises(KeyMissing, match="no key"), ModelLoop() as loop:
        loop.open(opening())
    assert threading.active_count() == before
