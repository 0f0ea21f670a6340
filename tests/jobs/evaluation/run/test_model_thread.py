"""The thread of the models: calls that nobody waits for any more end without a log line."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading

import pytest

from kinodex.agent.errors import ModelRejected
from kinodex.jobs.eval import solve


def test_an_error_that_comes_after_its_caller_has_gone_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    async def fails_late() -> None:
        try:
            began.set()
            await asyncio.sleep(60)
        finally:
            raise ModelRejected("too late")

    async def gone() -> None:
        call = asyncio.ensure_future(solve._call_in(wire, fails_late()))
        await asyncio.to_thread(began.wait)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    began = threading.Event()
    with solve._running_loop() as wire:
        asyncio.run(gone())
    gc.collect()
    assert caplog.text == ""


def test_an_error_comes_to_whoever_waits() -> None:
    async def fails() -> None:
        raise ModelRejected("no")

    with solve._running_loop() as wire, pytest.raises(ModelRejected, match="no"):
        asyncio.run(solve._call_in(wire, fails()))


def test_the_switch_interval_is_given_back_by_the_last_run() -> None:
    before = sys.getswitchinterval()
    first, second = solve._quick_switches.held(), solve._quick_switches.held()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert sys.getswitchinterval() == pytest.approx(solve.SWITCH_S)
    second.__exit__(None, None, None)
    assert sys.getswitchinterval() == before
